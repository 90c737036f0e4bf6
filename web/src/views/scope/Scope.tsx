/** What is selected, step by step: each step a menu of what it could be instead, and the one that comes next. */
import { faultsOf } from "../../logic/agents/grade.ts";
import { isBelow, nextLabel, type Path, pathOf, withoutMatcher } from "../../logic/labels/path.ts";
import { isOpen, navigate, page } from "../../state/address/page.ts";
import { byBehind } from "../../state/answers/advance.ts";
import { byLabels, comparing } from "../../state/answers/compare.ts";
import { observed } from "../../state/answers/explore.ts";
import { selectorFaults } from "../../state/answers/selector.ts";
import { labels } from "../../state/answers/server.ts";
import { PaletteButton } from "../bar/PaletteKey.tsx";
import { ProfileType } from "../bar/ProfileType.tsx";
import { QueryBox } from "../bar/QueryBox.tsx";
import { DataChip } from "../chart/DataChip.tsx";
import { layerName } from "../chart/LayerList.tsx";
import { Siblings } from "../lazyViews.tsx";
import { FoldButton } from "../ui/Fold.tsx";
import { NARROW, useMedia } from "../ui/hooks.ts";
import { Menu } from "../ui/Menu.tsx";

export function Scope() {
  const { query, view } = page.value;
  // All types are parts of threads' time.
  const hasType = view !== "threads";
  const isNarrow = useMedia(NARROW);
  const path = pathOf(query);
  const box = (
    <QueryBox
      name="Selector"
      value={query}
      placeholder='all samples — type a name, or {service="…"}'
      error={selectorFaults.value.query}
      onSubmit={(text) => navigate({ query: text, focus: "" })}
    />
  );
  return (
    <>
      <div class="scope" role="group" aria-label="Selection">
        {path !== null && <Crumbs path={path} />}
        {isNarrow ? (
          <FoldButton fold="filter" name="Selector as text" class="icon">
            +
          </FoldButton>
        ) : (
          box
        )}
        {!isNarrow && <PaletteButton />}
        {!isNarrow && hasType && <ProfileType />}
        {!comparing.value && <Data />}
      </div>
      {isNarrow && isOpen("filter") && (
        <div class="scope filter">
          {box}
          {hasType && <ProfileType />}
        </div>
      )}
    </>
  );
}

/** Of the one window that is looked at. */
function Data() {
  const source = observed.value;
  const answer = source?.data.value ?? null;
  if (source === null || answer === null || answer.samples === 0) return null;
  return <DataChip faults={faultsOf({ ...answer, window: answer })} isStale={source.stale.value} />;
}

function Crumbs({ path: { crumbs, filters } }: { path: Path }) {
  const { query, by, view } = page.value;
  const last = crumbs.at(-1);
  const absent = byLabels.value?.absentLabels.value ?? [];
  const known = (labels.data.value?.labels ?? []).filter((label) => !absent.includes(label));
  const below = nextLabel(last?.label ?? "node", known);
  // The chart may have gone further, past labels of one value.
  const isCharted = view === "explore" || view === "compare";
  const next = below !== null && isCharted && isBelow(by, below) ? by : below;
  return (
    <nav class="crumbs" aria-label="What is selected">
      <ol>
        <li>
          <button
            type="button"
            class="crumb"
            disabled={query === ""}
            onClick={() => navigate({ query: "", focus: "" })}
          >
            All
          </button>
        </li>
        {filters.map((one) => (
          <li key={`${one.label}${one.operator}${one.value}`} class="crumb-filter">
            <span class="crumb-text" title={`${one.label}${one.operator}${one.value}`}>
              <small>
                {one.label}
                {one.operator === "=" ? "" : ` ${one.operator}`}
              </small>{" "}
              <bdi>{layerName(one.value, 0, one.label)}</bdi>
            </span>
            <button
              type="button"
              aria-label={`Without the condition on ${one.label}`}
              onClick={() => navigate({ query: withoutMatcher(query, one), focus: "" })}
            >
              ✕
            </button>
          </li>
        ))}
        {crumbs.map(({ label, value, above, keepsBelow, without, query: upTo }) => (
          <li key={label}>
            <span aria-hidden="true">›</span>
            <Menu
              label={
                <>
                  <small>{label}</small> <bdi>{layerName(value, 0, label)}</bdi> ▾
                </>
              }
              name={`${label} ${value}: choose another`}
              class="crumb-menu"
              onNear={Siblings.preload}
            >
              {(close) => (
                <>
                  {upTo !== query && (
                    <button
                      type="button"
                      class="button crumb-all"
                      onClick={() => {
                        navigate({ query: upTo, focus: "", by: byBehind(label, upTo) });
                        close();
                      }}
                    >
                      All of {layerName(value, 0, label)}
                    </button>
                  )}
                  {without !== null && (
                    <button
                      type="button"
                      class="button crumb-all"
                      onClick={() => {
                        navigate({ query: without, focus: "" });
                        close();
                      }}
                    >
                      Any {label}
                    </button>
                  )}
                  <Siblings label={label} query={above} chosen={value} keepsBelow={keepsBelow} close={close} />
                </>
              )}
            </Menu>
          </li>
        ))}
        {next !== null && (
          <li>
            <span aria-hidden="true">›</span>
            <Menu
              label={<span class="dim">{next} ▾</span>}
              name={`Choose a ${next}`}
              class="crumb-menu"
              onNear={Siblings.preload}
            >
              {(close) => <Siblings label={next} query={query} chosen={null} close={close} />}
            </Menu>
          </li>
        )}
      </ol>
    </nav>
  );
}
