/** The history of the selected frame by version: a line each, on one scale, over all that is kept. */
import { useMemo } from "preact/hooks";
import { sparkPath } from "../../logic/series/spark.ts";
import { versionLines } from "../../logic/series/versionHistory.ts";
import { plural } from "../../logic/text/format.ts";
import { plainLine } from "../../logic/text/plain.ts";
import { rangeText } from "../../logic/time/time.ts";
import { compareVersionsOf } from "../../state/moments/said.ts";
import { versionHistory } from "../../state/moments/versionHistory.ts";
import { present } from "../../state/question/question.ts";
import { historyLevel } from "../../state/screen/units.ts";

const SPARK = { width: 260, height: 24 };
const NAME_ROOM = 60;
const MOST = 20;

export function VersionHistory() {
  const answer = versionHistory.data.value;
  const lines = useMemo(() => (answer === null ? [] : versionLines(answer)), [answer]);
  if (answer === null) return <p class="dim">{versionHistory.error.value?.message ?? "…"}</p>;
  const most = Math.max(0, ...lines.flatMap(({ cores }) => cores.map((level) => level ?? 0)));
  const shown = lines.slice(-MOST);
  const [last, before] = [lines.at(-1), lines.at(-2)];
  const { width, height } = SPARK;
  return (
    <div data-testid="version-history">
      <p class="dim">{rangeText({ from: answer.from, until: answer.until }, present.value)}</p>
      <ol class="version-lines">
        {shown.map(({ version, samples, cores, mean, first, last: end }) => (
          <li key={version} title={rangeText({ from: first, until: end }, present.value)}>
            <svg class="spark" width={width} height={height} viewBox={`0 -1 ${width} ${height + 2}`} aria-hidden="true">
              <path d={sparkPath(cores, width, height, most)} />
            </svg>
            <div>
              <b>
                <bdi>{version === "" ? "no version" : plainLine(version, NAME_ROOM)}</bdi>
              </b>{" "}
              {historyLevel(mean)} while it ran <span class="dim">({plural(samples, "sample")})</span>
            </div>
          </li>
        ))}
      </ol>
      {lines.length === 0 && <p class="dim">no samples in all that is kept</p>}
      {lines.length > shown.length && <p class="dim">{plural(lines.length - shown.length, "older version")}</p>}
      {last !== undefined && before !== undefined && last.version !== "" && before.version !== "" && (
        <button
          type="button"
          class="button tiny"
          onClick={() => compareVersionsOf(null, [before.version, last.version])}
        >
          Compare the last two
        </button>
      )}
    </div>
  );
}
