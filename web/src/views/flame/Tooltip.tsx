/** What one frame stands for, beside the pointer. */
import { kindOf, kindWord, MARK } from "../../logic/colour.ts";
import { changeText, factor } from "../../logic/compare/changeText.ts";
import { normText, normUnit } from "../../logic/compare/norm.ts";
import { bothText, changeWords, sideText } from "../../logic/compare/sideNames.ts";
import type { Sliver } from "../../logic/flame/layout.ts";
import { coresOf, secondsOf, type WindowMeasure } from "../../logic/graph/measure.ts";
import { count, duration, levelText, percent, plural, shareOf } from "../../logic/text/format.ts";
import { amountHead, amountShort, amountText, rateHead, rateShort, timeHead } from "../../logic/text/unit.ts";
import { titleOf } from "../../logic/tree/rows.ts";
import { changeOf, isOfSelf, kindName, moduleName, ROOT, type Tree } from "../../logic/tree/tree.ts";
import { useBeside } from "../ui/beside.ts";

export interface TooltipProps {
  tree: Tree;
  node: number;
  /** The frames that are drawn together here, `node` the widest of them. */
  sliver: Sliver | null;
  focus: number;
  x: number;
  y: number;
  measure: WindowMeasure;
  /** What its figures are of, where that needs words. */
  about?: string;
}

export function Tooltip({ tree, node, sliver, focus, x, y, measure, about }: TooltipProps) {
  const element = useBeside(x, y);
  const kind = kindOf(kindName(tree, node), false);
  const module = moduleName(tree, node);
  const inlined = tree.inlined[node] === 1 ? ", inlined" : "";
  return (
    <div class="tooltip" ref={element} aria-hidden="true" data-testid="tooltip">
      {sliver !== null && (
        <div class="tooltip-sliver">
          {plural(sliver.frames, "frame")} here, too thin to be drawn apart, with{" "}
          {tree.diff === null
            ? amountText(sliver.samples, measure.unit)
            : bothText(count(sliver.baseSamples), amountText(sliver.samples, measure.unit), measure.sideNames)}
          . The widest:
        </div>
      )}
      <div class="tooltip-name" dir="auto">
        {titleOf(tree, node)}
      </div>
      <div class="tooltip-where">
        {kind === "root"
          ? "everything in this window"
          : kind === "label"
            ? `all samples of this ${module}`
            : `${kindWord(kind)}${inlined}${module === "" ? "" : ` · ${module}`}`}
      </div>
      {about !== undefined && <div class="tooltip-where">{about}</div>}
      {tree.diff === null ? (
        <OneSide tree={tree} node={node} focus={focus} measure={measure} />
      ) : (
        <BothSides tree={tree} node={node} measure={measure} />
      )}
    </div>
  );
}

function OneSide({ tree, node, focus, measure }: Pick<TooltipProps, "tree" | "node" | "focus" | "measure">) {
  const total = tree.total[node] as number;
  const self = tree.self[node] as number;
  const { unit } = measure;
  const row = (label: string, samples: number) => (
    <tr>
      <th>{label}</th>
      {unit.name !== "nanoseconds" && <td>{unit.isTime ? count(samples) : amountShort(samples, unit)}</td>}
      {unit.isTime && <td>{duration(secondsOf(samples, measure))}</td>}
      <td>{rateShort(coresOf(samples, measure), unit)}</td>
      <td>{percent(shareOf(samples, measure.samples))}</td>
      {focus !== ROOT && <td>{percent(shareOf(samples, tree.total[focus] as number))}</td>}
    </tr>
  );
  return (
    <table>
      <thead>
        <tr>
          <th />
          {unit.name !== "nanoseconds" && <th>{amountHead(unit)}</th>}
          {unit.isTime && <th>{timeHead(unit)}</th>}
          <th>{rateHead(unit)}</th>
          <th>of total</th>
          {focus !== ROOT && <th>of zoomed</th>}
        </tr>
      </thead>
      <tbody>
        {row("total", total)}
        {tree.shape === "upright" && row("self", self)}
      </tbody>
    </table>
  );
}

type Column = ArrayLike<number>;

export function BothSides({ tree, node, measure }: Pick<TooltipProps, "tree" | "node" | "measure">) {
  const diff = tree.diff;
  if (diff === null) return null;
  const { normalize, unit, sideNames } = measure;
  const change = changeOf(tree, node);
  const ofSelf = isOfSelf(tree, node);
  const before = (ofSelf ? diff.baseSelfNorm : diff.baseNorm)[node] as number;
  const after = (ofSelf ? diff.selfNorm : diff.norm)[node] as number;
  // Samples stand there anyway.
  const told = measure.choice === "samples" ? { ...measure, choice: "" as const } : measure;
  const difference = (v: number) => changeText(v, told);
  const counts = (v: number) => (unit.name === "samples" ? count(v) : amountShort(v, unit));
  // A share alone would hide how much it is.
  const hasLevels = normUnit(told) === "share" && normalize !== "absolute" && unit.isTime;
  const levels = hasLevels ? (measure.sideCores ?? null) : null;
  const rateOf = (value: number, cores: number) => rateShort(normalize === "share" ? value * cores : value, unit);
  const row = (at: 0 | 1, total: Column, norm: Column, self: Column, selfNorm: Column) => (
    <tr>
      <th>{sideText(sideNames, at)}</th>
      <td>{counts(total[node] as number)}</td>
      {levels !== null && <td>{rateOf(norm[node] as number, levels[at])}</td>}
      <td>{normText(norm[node] as number, at, told)}</td>
      <td>{counts(self[node] as number)}</td>
      <td>{normText(selfNorm[node] as number, at, told)}</td>
    </tr>
  );
  return (
    <>
      <table>
        <thead>
          <tr>
            <th />
            <th>{amountHead(unit)}</th>
            {levels !== null && <th>{rateHead(unit)}</th>}
            <th>{normUnit(told)}</th>
            <th>self {amountHead(unit)}</th>
            <th>self {normUnit(told)}</th>
          </tr>
        </thead>
        <tbody>
          {row(0, diff.baseTotal, diff.baseNorm, diff.baseSelf, diff.baseSelfNorm)}
          {row(1, tree.total, diff.norm, tree.self, diff.selfNorm)}
        </tbody>
      </table>
      <div class={`tooltip-verdict ${change}`}>
        <b>
          {MARK[change]} {ofSelf && "self "}
          {difference(diff.delta[node] as number)}
        </b>{" "}
        <span>{factor(before, after)}</span>
        <span class="dim">
          {levelText(diff.confidence)}: {difference(diff.low[node] as number)} to{" "}
          {difference(diff.high[node] as number)}
        </span>
        <span>{changeWords(sideNames, change)}</span>
      </div>
    </>
  );
}
