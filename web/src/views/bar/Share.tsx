/** This page for somebody else: a link that shows the same at any time, and paper. */
import { useState } from "preact/hooks";
import { pairTexts } from "../../logic/time/windows.ts";
import { linkTo, page } from "../../state/address/page.ts";
import { pair } from "../../state/answers/compare.ts";
import { range } from "../../state/question/question.ts";
import { saveAs } from "../lazyViews.tsx";
import { copyText } from "../ui/clipboard.ts";

/** `now-15m` would be another time for who opens the link later. */
function fixedLink(): string {
  const { from, until } = range.value;
  const { view } = page.value;
  if (view === "nodes") return location.origin + linkTo({});
  const fixed = view === "compare" ? pairTexts(pair.value) : { from: String(from), until: String(until) };
  return location.origin + linkTo({ ...fixed, live: false });
}

export function ShareChoices({ close }: { close: () => void }) {
  const [said, setSaid] = useState("");
  const copy = (link: string) =>
    void copyText(link).then((done) => setSaid(done ? "Copied." : `The browser did not allow copying: ${link}`));
  return (
    <>
      <ul class="menu-list">
        <li>
          <button type="button" data-testid="share-fixed" onClick={() => copy(fixedLink())}>
            <b>Copy link to this time</b>
            <small>shows the same window whenever it is opened</small>
          </button>
        </li>
        <li>
          <button type="button" onClick={() => copy(location.href)}>
            <b>Copy link as it is</b>
            <small>a range up to now stays one</small>
          </button>
        </li>
        {(page.value.view === "nodes" ? (["html"] as const) : (["html", "png"] as const)).map((kind) => (
          <li key={kind}>
            <button
              type="button"
              onClick={() => {
                close();
                saveAs(kind);
              }}
            >
              <b>Save as {kind === "html" ? "an HTML file" : "PNG"}</b>
              <small>{kind === "html" ? "one file, which needs no server" : "what is in sight"}</small>
            </button>
          </li>
        ))}
        <li>
          <button
            type="button"
            onClick={() => {
              close();
              print();
            }}
          >
            <b>Print</b>
            <small>light colours, without controls</small>
          </button>
        </li>
      </ul>
      <div class="share-said" role="status" data-testid="share-said">
        {said}
      </div>
    </>
  );
}
