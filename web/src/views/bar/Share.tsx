/** This page for somebody else: a link that shows the same at any time, and paper. */
import { useState } from "preact/hooks";
import { pairTexts } from "../../logic/time/windows.ts";
import { linkTo, page } from "../../state/address/page.ts";
import { pair } from "../../state/answers/compare.ts";
import { range } from "../../state/question/question.ts";
import { saveAs } from "../lazyViews.tsx";
import { copyText } from "../ui/clipboard.ts";
import { MenuAction } from "../ui/Menu.tsx";

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
  const closing = (take: () => void) => () => {
    close();
    take();
  };
  return (
    <>
      <ul class="menu-list">
        <MenuAction
          title="Copy link to this time"
          purpose="shows the same window whenever it is opened"
          id="share-fixed"
          onTake={() => copy(fixedLink())}
        />
        <MenuAction
          title="Copy link as it is"
          purpose="a range up to now stays one"
          onTake={() => copy(location.href)}
        />
        <MenuAction
          title="Save as an HTML file"
          purpose="one file, which needs no server"
          onTake={closing(() => saveAs("html"))}
        />
        {page.value.view !== "nodes" && (
          <MenuAction title="Save as PNG" purpose="what is in sight" onTake={closing(() => saveAs("png"))} />
        )}
        <MenuAction title="Print" purpose="light colours, without controls" onTake={closing(() => print())} />
      </ul>
      <div class="share-said" role="status" data-testid="share-said">
        {said}
      </div>
    </>
  );
}
