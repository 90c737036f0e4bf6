/**
 * Two flamegraphs side by side, each with a tree, a theme and a direction of its own, and with nothing of the page
 * around them. What each was asked to do is told in `asked`.
 */
import { render } from "preact";
import { useState } from "preact/hooks";
import { answerOf, diffOf } from "../src/logic/fixtures.ts";
import { measureOf } from "../src/logic/graph/measure.ts";
import { SAMPLES } from "../src/logic/text/unit.ts";
import { diffTreeOf, frameName, ROOT, type Tree, treeOf } from "../src/logic/tree/tree.ts";
import { Flamegraph } from "../src/views/flame/Flamegraph.tsx";
import { FrameMenu } from "../src/views/flame/FrameMenu.tsx";
import type { ColourBy } from "../src/views/flame/paint.ts";
import { Tooltip } from "../src/views/flame/Tooltip.tsx";
import "../src/style/base.css";
import "../src/style/graph.css";

export interface Asked {
  zoomed: string[];
  selected: (string | null)[];
  pointed: (string | null)[];
  acted: string[];
}

interface Props {
  name: "left" | "right";
  tree: Tree;
  theme: "light" | "dark";
  colourBy: ColourBy;
  flame: boolean;
}

const asked: Record<Props["name"], Asked> = {
  left: { zoomed: [], selected: [], pointed: [], acted: [] },
  right: { zoomed: [], selected: [], pointed: [], acted: [] },
};
Object.assign(globalThis, { asked });

/** What hands have begun, by whose graph it is. */
const resting = new WeakMap<object, ReturnType<typeof setTimeout>>();

function Side({ name, tree, theme, colourBy, flame }: Props) {
  const [focus, setFocus] = useState(ROOT);
  const [selected, setSelected] = useState<number | null>(null);
  const [part, setPart] = useState("");
  const told = asked[name];
  const nameOf = (node: number | null) => (node === null ? null : frameName(tree, node));
  const measure = {
    ...measureOf(name, { samples: 100, cpu_seconds: 5, cores: 1 }),
    samples: 100,
    unit: SAMPLES,
    sideNames: { names: ["before", "after"], inTurn: true } as const,
  };
  return (
    <div data-testid={name} style={{ display: "grid", height: "400px", minWidth: 0 }}>
      <Flamegraph
        tree={tree}
        subject={name}
        focus={focus}
        search={null}
        selected={selected}
        pointed={null}
        theme={theme}
        colourBy={colourBy}
        flame={flame}
        measure={measure}
        part={part}
        actionsOf={(node) => [
          { key: "h", label: `Hide ${nameOf(node)}`, hint: "", run: () => told.acted.push(`hide ${nameOf(node)}`) },
        ]}
        onZoom={(node) => {
          told.zoomed.push(nameOf(node) as string);
          setFocus(node);
          setSelected(node);
        }}
        onSelect={(node) => {
          told.selected.push(nameOf(node));
          setSelected(node);
        }}
        onPart={setPart}
        onceRested={({ by, take }) => {
          clearTimeout(resting.get(by));
          const timer = setTimeout(take, 220);
          resting.set(by, timer);
          return () => clearTimeout(timer);
        }}
        foot={null}
        tip={Tooltip}
        frameMenu={FrameMenu}
        onReset={() => {
          setFocus(ROOT);
          setSelected(null);
        }}
        onPoint={(pointed) => told.pointed.push(pointed)}
      />
    </div>
  );
}

const calls = [
  { name: "serve", self: 10, calls: [{ name: "parse", self: 50 }] },
  { name: "rest", self: 40 },
];
const changed = [
  { name: "walk", before: 40, self: 70 },
  { name: "idle", before: 60, self: 30 },
];

document.body.style.display = "grid";
document.body.style.gridTemplateColumns = "1fr 1fr";
render(
  <>
    <Side name="left" tree={treeOf(answerOf(calls))} theme="light" colourBy="kind" flame={false} />
    <Side name="right" tree={diffTreeOf(diffOf(changed), "both")} theme="dark" colourBy="difference" flame={true} />
  </>,
  document.body,
);
