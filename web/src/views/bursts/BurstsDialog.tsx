/** Look closer: has nodes sampled at a high rate for a while, says what that may cost, and what became of each. */
import { useEffect, useId, useState } from "preact/hooks";
import type { ApiError } from "../../api/error.ts";
import {
  costText,
  limitOf,
  MOST_SECONDS,
  meantText,
  nodesMeant,
  nodesThatCan,
  requestOf,
  type Wish,
} from "../../logic/agents/bursts.ts";
import { formatSelector } from "../../logic/labels/selector.ts";
import { count, plural } from "../../logic/text/format.ts";
import { nodes } from "../../state/answers/agents.ts";
import { beginBursts, burstToken, followBursts, type Outcome } from "../../state/moments/bursts.ts";
import { lookedAt } from "../../state/moments/closer.ts";
import { useDialog } from "../ui/hooks.ts";
import { BurstList } from "./BurstList.tsx";

/** Of nodes that are offered while one is typed; any other can be typed, too. */
const MOST_OFFERED = 200;
const USUAL_HZ = 999;
const USUAL_SECONDS = "10";
const UNAUTHORIZED = 401;
/** The server takes no longer names, in bytes. */
const MOST_TEXT = 1_024;

interface Told {
  text: string;
  hint: string;
  isBad: boolean;
}

const NOTHING: Told = { text: "", hint: "", isBad: false };

/** What the place knows where the dialog was opened. */
function firstWish(): Wish {
  const { node, cpu = "", service = "", process = "", ...more } = lookedAt.peek();
  const can = nodesThatCan(nodes.data.peek()?.nodes ?? []);
  const only = can.length === 1 ? can[0]?.node : undefined;
  const chosen = node ?? only ?? "";
  const limit = limitOf(nodesMeant(chosen, can) ?? []) || limitOf(can);
  return {
    nodes: chosen,
    cpus: cpu,
    service,
    process,
    rest: formatSelector(Object.entries(more).map(([label, value = ""]) => ({ label, operator: "=" as const, value }))),
    frequency: String(limit > 0 ? Math.min(limit, USUAL_HZ) : USUAL_HZ),
    seconds: USUAL_SECONDS,
  };
}

function toldOf(outcome: Outcome): Told {
  if ("fault" in outcome) return faultTold(outcome.fault);
  const refused = outcome.bursts.filter(({ state }) => state === "refused");
  const begun = outcome.bursts.length - refused.length;
  const [first] = refused;
  return {
    text: `Asked of ${plural(begun, "node")}${refused.length > 0 ? `, refused for ${plural(refused.length, "node")}` : ""}.`,
    hint: first?.reason ?? "",
    isBad: refused.length > 0,
  };
}

/** Of a token the server's hint is for programs. */
const faultTold = ({ message, hint, status }: ApiError): Told => ({
  text: message,
  hint: status === UNAUTHORIZED ? "Give a token of --burst-token-file below, and ask again." : hint,
  isBad: true,
});

export function BurstsDialog({ onClose }: { onClose: () => void }) {
  const { leave, dialog } = useDialog(onClose);
  const [wish, setWish] = useState(firstWish);
  const [told, setTold] = useState(NOTHING);
  const [isAsking, setAsking] = useState(false);
  const [wantsToken, setWantsToken] = useState(burstToken.peek() !== "");
  useEffect(followBursts, []);

  const tell = (outcome: Outcome) => {
    setTold(toldOf(outcome));
    if ("fault" in outcome && outcome.fault.status === UNAUTHORIZED) setWantsToken(true);
  };
  const begin = () => {
    const request = requestOf(wish);
    if ("fault" in request) {
      setTold({ text: request.fault, hint: "", isBad: true });
      return;
    }
    setAsking(true);
    setTold(NOTHING);
    void beginBursts(request).then((outcome) => {
      setAsking(false);
      tell(outcome);
    });
  };
  return (
    <dialog class="help bursts" aria-label="Look closer" {...dialog}>
      <div class="help-body">
        <div class="help-head">
          <h2>Look closer</h2>
          <button type="button" class="button icon" aria-label="Close" onClick={leave}>
            ✕
          </button>
        </div>
        <p class="dim">
          A node is sampled at a high rate for a while, and goes back to its usual one by itself. Charts and differences
          over that time stay right; its marker is ◎.
        </p>
        <form
          class="burst-form"
          noValidate={true}
          onSubmit={(event) => {
            event.preventDefault();
            if (!isAsking) begin();
          }}
        >
          <Fields wish={wish} onChange={(change) => setWish({ ...wish, ...change })} />
          {wantsToken && (
            <label class="burst-wide">
              <span>Token</span>
              <input
                type="password"
                autoComplete="off"
                value={burstToken.value}
                data-testid="burst-token"
                onInput={(event) => {
                  burstToken.value = event.currentTarget.value.trim();
                }}
              />
              <small class="dim">One of --burst-token-file. It is forgotten with this page.</small>
            </label>
          )}
          <div class="burst-wide burst-begin">
            <button type="submit" class="button primary" disabled={isAsking} data-testid="burst-begin">
              Look closer
            </button>
            <p role="status" class={told.isBad ? "warn-text" : ""} data-testid="burst-told">
              {told.text}
              {told.hint !== "" && <small>{told.hint}</small>}
            </p>
          </div>
        </form>
        <BurstList onEnded={(outcome) => ("fault" in outcome ? tell(outcome) : setTold(NOTHING))} onShow={leave} />
      </div>
    </dialog>
  );
}

function Fields({ wish, onChange }: { wish: Wish; onChange: (change: Partial<Wish>) => void }) {
  const id = useId();
  const can = nodesThatCan(nodes.data.value?.nodes ?? []);
  const meant = nodesMeant(wish.nodes, can);
  const limit = limitOf(meant ?? can) || limitOf(can);
  const field = (key: keyof Wish, label: string, hint: string, more: Record<string, unknown> = {}) => (
    <label class={key === "nodes" || key === "rest" ? "burst-wide" : ""} key={key}>
      <span>{label}</span>
      <input
        type="text"
        autoComplete="off"
        spellcheck={false}
        maxLength={MOST_TEXT}
        value={wish[key]}
        data-testid={`burst-${key}`}
        onInput={(event) => onChange({ [key]: event.currentTarget.value })}
        {...more}
      />
      <small class="dim">{hint}</small>
    </label>
  );
  return (
    <>
      {field("nodes", "Node, or a selector of several", meantText(wish.nodes, meant), {
        list: `${id}-nodes`,
        placeholder: '{node=~"db-.*"}',
      })}
      <datalist id={`${id}-nodes`}>
        {can.slice(0, MOST_OFFERED).map(({ node }) => (
          <option key={node} value={node} />
        ))}
      </datalist>
      {field("cpus", "CPUs", "Such as 0,2-3", { placeholder: "all" })}
      {field("service", "Service", "Only its threads; all others as ever", { placeholder: "all" })}
      {field("process", "Process", "The same of a process's name", { placeholder: "all" })}
      {field("rest", "Of what else", "A selector by container, pod, unit, version, thread and the like", {
        placeholder: '{container="api",thread="worker"}',
      })}
      {limit > 0 &&
        field("frequency", "Samples a second", `Of each CPU, up to ${count(limit)}`, { inputMode: "numeric" })}
      {field("seconds", "Seconds", `Up to ${MOST_SECONDS}`, { inputMode: "numeric" })}
      <p class="burst-wide" data-testid="burst-cost">
        {costText(wish, meant)}
      </p>
    </>
  );
}
