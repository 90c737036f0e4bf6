/** The selected frame's function, or place, by version, over all that the server keeps. */
import { computed } from "@preact/signals";
import { api } from "../../api/index.ts";
import { ofAllVersions } from "../../logic/compare/versions.ts";
import { closerRange } from "../../logic/series/versionHistory.ts";
import { LONGEST_MS } from "../../logic/time/windows.ts";
import { fields } from "../address/page.ts";
import { ask, lengths, ownFrames, present } from "../question/question.ts";
import { resource } from "../question/resource.ts";
import { isSettled, settledPlace } from "../screen/frame.ts";

const MOST_VERSIONS = 50;
/** Each looks closer at what was covered. */
const LOOKS = 3;

const asked = resource(() => {
  const place = settledPlace.value;
  if (fields.split.value !== "version" || place === null) return null;
  const parameters = {
    type: fields.type.value,
    query: ofAllVersions(place.query),
    ...place.match,
    ...lengths.value,
    ...ownFrames.value,
  };
  return ask("versions of a frame", parameters, async (signal) => {
    const until = present.peek();
    let window = { from: until - LONGEST_MS, until };
    for (let look = 1; ; look++) {
      const answer = await api.series({ ...parameters, ...window, by: "version", limit: MOST_VERSIONS }, signal);
      const closer = closerRange(answer);
      if (closer === null || look === LOOKS) return answer;
      window = { from: Math.max(closer.from, window.from), until };
    }
  });
});

/** What was asked of another frame, or place, is no history of this one. */
export const versionHistory = {
  start: asked.start,
  data: computed(() => (isSettled.value && !asked.stale.value ? asked.data.value : null)),
  error: asked.error,
};
