/** What can be done with a frame: the same by key, from its menu and from its panel. */
import { exactPattern } from "../../logic/flame/search.ts";
import { fitName } from "../../logic/text/names.ts";
import { type Transform, transformsText, withTransform } from "../../logic/transform/list.ts";
import { isNoFunction, rowMatchers } from "../../logic/tree/rows.ts";
import { frameName, kindName, moduleName, ROOT, type Tree } from "../../logic/tree/tree.ts";
import { navigate, page } from "../../state/address/page.ts";
import { flamegraph } from "../../state/answers/explore.ts";
import { sourceShown } from "../../state/moments/sourceShown.ts";
import { transforms } from "../../state/screen/tree.ts";
import { valueActions } from "../chart/ValueMenu.tsx";
import type { FrameAction } from "../flame/FrameMenu.tsx";
import { findName, zoomTo } from "../frame/steps.ts";

/** Milliseconds before a function that are looked at; no less than samples are apart. */
const BEFORE_MS = [100, 500, 1000] as const;

function usualBefore(): string {
  const apart = (flamegraph.data.value?.period_ns ?? 0) / 1e6;
  return String(BEFORE_MS.find((ms) => ms >= apart) ?? BEFORE_MS[0]);
}

/** The timeline with what ran on the same CPU shortly before a function. */
function ranBefore(name: string): void {
  navigate({
    view: "timeline",
    hit: exactPattern(name),
    before: page.value.before || usualBefore(),
    match: "",
    transform: "",
    focus: "",
    frame: "",
    zoom: "",
    box: "",
  });
}

/** Another tree has other paths: the zoom is given up with it. */
export function setTransforms(list: readonly Transform[]): void {
  navigate({ transform: transformsText(list), focus: "" });
}

function addTransform(added: Transform): void {
  setTransforms(withTransform(transforms.value, added));
}

const NAME_ROOM = 36;

/** The actions that make sense on this frame, the most usual first. Copying is the view's own: it tells how it went. */
export function frameActions(shown: Tree, node: number): FrameAction[] {
  const name = frameName(shown, node);
  const module = moduleName(shown, node);
  const kind = kindName(shown, node);
  const isFunction = !isNoFunction(kind);
  const source = sourceShown.value;
  const short = fitName(name, NAME_ROOM);
  const does = (key: string, label: string, hint: string, run: () => void) => ({ key, label, hint, run });
  const on = (op: "focus" | "hide" | "sandwich") => () => addTransform({ op, name });
  const zoom = does("Enter", "Zoom", "This frame and what it calls fill the width", () => zoomTo(node));
  const within = rowMatchers(shown, node);
  const row = kind === "label" ? within.pop() : undefined;
  if (row !== undefined) return [zoom, ...valueActions({ ...row, mode: null }, within)];
  return [
    ...(node !== ROOT ? [zoom] : []),
    ...(isFunction
      ? [
          does("o", `Focus on ${short}`, "Focus: stacks through this function, wherever it is called", on("focus")),
          does("s", "Callers and callees", "Sandwich: all its callers above it, all its callees below", on("sandwich")),
          does("h", `Hide ${short}`, "Leave its frames out; what they spent counts for their callers", on("hide")),
        ]
      : []),
    ...(isFunction && module !== ""
      ? [
          does("m", `Collapse ${fitName(module, NAME_ROOM)}`, "Neighbouring frames of this module become one", () =>
            addTransform({ op: "collapse", name: module }),
          ),
        ]
      : []),
    ...treeActions(),
    ...(source !== null && source.name === name && source.module === module
      ? [does("l", "Open source", source.href, () => void open(source.href, "_blank", "noopener,noreferrer"))]
      : []),
    ...(isFunction ? [does("f", "Find this function", "Search for exactly this name", () => findName(name))] : []),
    ...(isFunction && shown.diff === null
      ? [
          does("b", "Preceding samples", `The ${BEFORE_MS} ms before its samples, on the same CPU`, () =>
            ranBefore(name),
          ),
        ]
      : []),
  ];
}

/** What is done to the whole tree; chosen again, it is undone. */
export function treeActions(): FrameAction[] {
  const isShown = page.value.runtime_frames === "show";
  const has = (op: Transform["op"]) => transforms.value.some((one) => one.op === op);
  return [
    {
      key: "r",
      label: has("merge") ? "Show recursion" : "Merge recursion",
      hint: "A function that calls itself directly is one frame",
      run: () => addTransform({ op: "merge", name: "" }),
    },
    {
      key: "i",
      label: has("invert") ? "From the root" : "Invert",
      hint: "From the leaf to its callers",
      run: () => addTransform({ op: "invert", name: "" }),
    },
    {
      key: "w",
      label: isShown ? "Fold runtimes' frames" : "Show runtimes' frames",
      hint: "C functions of an interpreter or virtual machine between the functions that it runs",
      run: () => navigate({ runtime_frames: isShown ? "" : "show", focus: "" }),
    },
  ];
}
