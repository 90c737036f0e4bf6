/** What is searched for in the tree on the screen, and what of it matches. */
import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { api } from "../../api/index.ts";
import { byName, Letters, matcherOf, namesOf, search, serverPattern } from "../../logic/flame/search.ts";
import type { Tree } from "../../logic/tree/tree.ts";
import { fields } from "../address/page.ts";
import { flamegraph, single } from "../answers/explore.ts";
import { ask, selection } from "../question/question.ts";
import { resource } from "../question/resource.ts";
import { nextSlice, whenIdle } from "./slices.ts";
import { focus, sent, tree, upright } from "./tree.ts";

export const matching = computed(() => matcherOf(fields.match.value));

/** What tells whether a name is searched for; null where nothing is, or where the expression is broken. */
export const matcher = computed(() => {
  const wanted = matching.value;
  return wanted !== null && "matcher" in wanted ? wanted.matcher : null;
});

interface MatchedNames {
  tree: Tree;
  /** A flag a text of the tree. */
  names: Uint8Array;
}

/** The texts that a search looks at: names in the graph, and of what the table shows. */
const searchedNames = computed(() => {
  const [shown, taken] = [tree.value.tree, upright.value];
  if (shown === null) return null;
  const isOwn = taken === null || taken === shown || taken.strings !== shown.strings;
  const names = isOwn ? namesOf(shown) : namesOf(shown, taken);
  return { shown, names, letters: new Letters(shown.strings, names) };
});

let newestNames: MatchedNames | null = null;

/** Which names match. Another letter often changes none of them: then nothing that follows is done again. */
const matchedNames = computed<MatchedNames | null>(() => {
  const [searched, wanted] = [searchedNames.value, matching.value];
  if (searched === null || wanted === null || "error" in wanted) {
    newestNames = null;
    return null;
  }
  const flags = searched.letters.matches(wanted);
  const known = newestNames?.tree === searched.shown ? newestNames.names : null;
  if (known === null || searched.names.some((id) => known[id] !== flags[id]))
    newestNames = { tree: searched.shown, names: flags };
  return newestNames;
});

/**
 * What tables follow a search by: behind the picture that shows a letter, and not while letters come faster than
 * pictures. Their rows cost as much as the graph does. Where it is not a letter that changed, they follow at once:
 * another tree, a search that a link brought, or its end.
 */
function behindPicture<T>(source: ReadonlySignal<T | null>) {
  const followed = signal<T | null>(null);
  const start = () => {
    let text = fields.match.peek();
    effect(() => {
      const now = source.value;
      const isLetter = text !== fields.match.peek();
      text = fields.match.peek();
      if (now === null || !isLetter) {
        followed.value = now;
        return;
      }
      let isNewest = true;
      const frame = requestAnimationFrame(() => {
        void nextSlice().then(() => {
          if (isNewest) followed.value = now;
        });
      });
      return () => {
        isNewest = false;
        cancelAnimationFrame(frame);
      };
    });
  };
  return { followed: followed as ReadonlySignal<T | null>, start };
}

const namesBehind = behindPicture(matchedNames);
const matcherBehind = behindPicture(matcher);
export const tableNames = namesBehind.followed;
export const tableMatcher = matcherBehind.followed;

export function startSearch(): void {
  // Before the first letter of a search, where there is time.
  effect(() => {
    const shown = tree.value.tree;
    if (shown === null) return;
    whenIdle(() => byName(shown));
  });
  namesBehind.start();
  matcherBehind.start();
}

export const searchResult = computed(() => {
  const matched = matchedNames.value;
  return matched === null ? null : search(matched.tree, matched.names, focus.value.node);
});

/** Whether the server is asked for a search: where the tree on the screen was trimmed. */
const isMatchAsked = computed(
  () =>
    single.value !== null &&
    sent.value.tree?.trimmed === true &&
    matcher.value !== null &&
    fields.transform.value === "",
);

/** The share of a search in the whole profile. */
export const wholeMatch = resource(() => {
  if (!isMatchAsked.value) return null;
  const { from: begin, until: end } = flamegraph.data.value ?? { from: 0, until: 0 };
  const parameters = {
    ...selection.value,
    from: begin,
    until: end,
    min_share: 1,
    match: serverPattern(fields.match.value),
  };
  return ask("match", parameters, (signal) => api.match(parameters, signal));
});

/** The same; null until it is known of this very search in this very graph. */
export const wholeFound = computed(() =>
  isMatchAsked.value && !wholeMatch.loading.value ? wholeMatch.data.value : null,
);
