/** Call trees of a wanted size, the same ones each time: deep, uneven, with names of the length that real ones have. */
import type { Frame } from "../e2e/otlp.ts";

export interface Stack {
  frames: number[];
  samples: number;
}

const FUNCTIONS = 20_000;
const MODULES = 50;
const DEEPEST = 60;

export const FRAMES: Frame[] = Array.from({ length: FUNCTIONS }, (_, i) => ({
  name: `synthetic::module_${i % 300}::Type${i % 1700}::function${i}(int, char const*)`,
  module: `/usr/lib/libmodule${i % MODULES}.so`,
  kind: i % 9 === 0 ? "kernel" : i % 13 === 0 ? "jit" : "native",
}));

/** Stacks (leaf first) whose tree has about so many nodes: fewer where two siblings happen to have one name. */
export function stacksOf(nodes: number): Stack[] {
  let state = 12345;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const stacks: Stack[] = [];
  const path: number[] = [];
  for (let made = 1; made < nodes; ) {
    path.length = Math.max(0, path.length - Math.floor(random() ** 3 * 12) - 1);
    const more = 1 + Math.floor(random() * 9);
    for (let k = 0; k < more && made < nodes && path.length < DEEPEST; k++) {
      path.push(Math.floor(random() ** 2 * FUNCTIONS));
      made++;
    }
    stacks.push({ frames: [...path].reverse(), samples: 1 + Math.floor(random() ** 4 * 6) });
  }
  return stacks;
}
