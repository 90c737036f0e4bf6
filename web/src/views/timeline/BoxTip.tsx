/** What one frame of a timeline stands for: whose it was, where, and when. */
import { kindOf, kindWord } from "../../logic/colour.ts";
import { type Chart, momentText, sampleFrom } from "../../logic/flame/timeline.ts";
import { duration, plural } from "../../logic/text/format.ts";
import { frameName, kindName, moduleName } from "../../logic/tree/tree.ts";
import { useBeside } from "../ui/beside.ts";

export interface BoxText {
  name: string;
  where: string;
  when: string;
}

export function boxText({ tree, samples, boxOf }: Chart, from: number, box: number, spanNs: number): BoxText {
  const start = tree.start[box] as number;
  const module = moduleName(tree, box);
  const sample = Math.min(sampleFrom(samples, start), boxOf.length - 1);
  const who = `${samples.thread[sample] ?? ""} (${samples.tid[sample] ?? "?"}) on CPU ${samples.cpu[sample] ?? "?"}`;
  const lasted = `${plural(tree.total[box] as number, "sample")} over ${duration((tree.weight[box] as number) / 1e9)}`;
  return {
    name: frameName(tree, box),
    where: `${kindWord(kindOf(kindName(tree, box), false))}${module === "" ? "" : ` · ${module}`}, ${who}`,
    when: `${lasted} from ${momentText(from, start, Math.min(spanNs, 1e9))}`,
  };
}

export function BoxTip({ text, x, y }: { text: BoxText; x: number; y: number }) {
  const element = useBeside(x, y);
  return (
    <div class="tooltip" ref={element} aria-hidden="true" data-testid="tooltip">
      <div class="tooltip-name">{text.name}</div>
      <div class="tooltip-where">{text.where}</div>
      <div>{text.when}</div>
    </div>
  );
}
