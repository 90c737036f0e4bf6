/**
 * What stands beside the graph, as tabs: the selected frame, tables, lists. Where nobody chose, it is the selected
 * frame, else the first tab; what is taken in a tab keeps it.
 */
import type { ComponentChildren } from "preact";
import { navigate, page } from "../../state/address/page.ts";
import { selected } from "../../state/screen/selection.ts";
import { isTreeStale } from "../../state/screen/tree.ts";

export interface Tab {
  id: string;
  title: string;
  /** What it tells, where its title may say too little. */
  hint?: string;
  content: () => ComponentChildren;
  /** What it shows is of an earlier question; left out: as the tree is. */
  isStale?: () => boolean;
}

/** The tab of the selected frame. */
export const FRAME = "frame";

/** The frames themselves, as a tab of a phone. */
export const FRAMES = "frames";

/** Which tab is in sight. */
export function tabOf(tabs: readonly Tab[]): Tab | undefined {
  return tabs.find(({ id }) => id === page.value.tab) ?? usualOf(tabs);
}

function usualOf(tabs: readonly Tab[]): Tab | undefined {
  const frame = selected.value === null ? undefined : tabs.find(({ id }) => id === FRAME);
  return frame ?? tabs[0];
}

interface BarProps {
  tabs: readonly Tab[];
  /** The one in sight; none where something else is. */
  chosen: string;
  onChoose: (id: string) => void;
}

const idOf = (id: string) => `tab-${id}`;
const PANEL = "pane-panel";

export function TabBar({ tabs, chosen, onChoose }: BarProps) {
  const onKeyDown = (event: KeyboardEvent) => {
    const at = tabs.findIndex(({ id }) => id === chosen);
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = event.key === "Home" ? tabs[0] : event.key === "End" ? tabs.at(-1) : tabs[at + by];
    if ((by === 0 && event.key !== "Home" && event.key !== "End") || next === undefined) return;
    event.preventDefault();
    onChoose(next.id);
    document.getElementById(idOf(next.id))?.focus();
  };
  return (
    <div class="pane-tabs" role="tablist" aria-label="Beside the graph" onKeyDown={onKeyDown}>
      {tabs.map(({ id, title, hint }) => (
        <button
          key={id}
          id={idOf(id)}
          type="button"
          role="tab"
          title={hint}
          aria-selected={id === chosen}
          aria-controls={id === chosen && id !== FRAMES ? PANEL : undefined}
          tabIndex={id === chosen || (chosen === "" && id === tabs[0]?.id) ? 0 : -1}
          onClick={() => onChoose(id)}
        >
          {title}
        </button>
      ))}
    </div>
  );
}

/** Chooses a tab; what would be in sight anyway needs no place in the address. */
export function chooseTab(tabs: readonly Tab[], id: string): void {
  navigate({ tab: usualOf(tabs)?.id === id ? "" : id });
}

export function PanePanel({ tab }: { tab: Tab }) {
  return (
    <div
      class="pane-panel"
      role="tabpanel"
      id={PANEL}
      aria-labelledby={idOf(tab.id)}
      aria-busy={(tab.isStale ?? (() => isTreeStale.value))()}
    >
      {tab.content()}
    </div>
  );
}

export function Pane({ tabs }: { tabs: readonly Tab[] }) {
  const tab = tabOf(tabs);
  if (tab === undefined) return null;
  return (
    <div class="pane" data-testid="pane">
      <TabBar tabs={tabs} chosen={tab.id} onChoose={(id) => chooseTab(tabs, id)} />
      <PanePanel tab={tab} />
    </div>
  );
}
