/**
 * The selector's text, with completion of labels and values. Enter or a completed value asks; a word is looked for
 * among the values of all labels, and what the server can't read is told below the box, while the page shows what it
 * did.
 */
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Completing } from "../../logic/labels/completing.ts";
import {
  formatSelector,
  type LabelMatcher,
  parseSelector,
  quote,
  tidySelector,
  wordOf,
} from "../../logic/labels/selector.ts";
import { returns } from "../../state/address/page.ts";
import { labels } from "../../state/answers/server.ts";
import type * as Meaning from "../../state/screen/meaning.ts";
import { meaning } from "../lazyViews.tsx";

interface Props {
  name: string;
  value: string;
  placeholder: string;
  error: { message: string; hint: string } | null;
  onSubmit: (query: string) => void;
}

const MOST = 200;
/** Letters from which on a word is looked for while it is typed. */
const LEAST_WORD = 2;
const MOST_MEANINGS = 20;
const MOST_FUNCTIONS = 5;
/** Of a choice that is a function: of the graph, or another one. No selector begins like this. */
const FUNCTION = "function ";
const ELSEWHERE = "function, not in this graph: ";
const OPERATORS = ["=", "!=", "=~", "!~"];

/** What is wrong with what was entered, and what to do. */
interface Said {
  message: string;
  hint: string;
}

const matcherText = ({ label, value }: { label: string; value: string }) => `${label}=${quote(value)}`;

function unknownWord(word: string): Said {
  return {
    message: `Nothing in this time is called “${word}”, nor contains it.`,
    hint:
      "Looked at were the values of all labels, such as service, process, pod and node, " +
      'and the functions of these days. A selector is {label="value"}.',
  };
}

export function QueryBox({ name, value, placeholder, error, onSubmit }: Props) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(value);
  const [offer, setOffer] = useState<{ of: string; at: Completing; caret: number; list: string[] } | null>(null);
  const [picked, setPicked] = useState(-1);
  const suggesting = useRef<AbortController | null>(null);
  /** What Enter began: other text alone ends it, and no list of suggestions. */
  const submitting = useRef<AbortController | null>(null);
  const [said, setSaid] = useState<Said | null>(null);
  /** There as soon as something is offered. */
  const known = useRef<typeof Meaning | null>(null);

  // With the render itself: after its picture somebody may have typed.
  useLayoutEffect(() => {
    setText(value);
    setSaid(null);
    // What is on its way is of another text.
    close();
  }, [value]);
  const leaveQuestion = () => {
    submitting.current?.abort();
    submitting.current = null;
  };
  // What Enter began before Back, or before something else was selected, must not select once it is answered.
  useLayoutEffect(leaveQuestion, [value, returns.value]);
  useEffect(
    () => () => {
      suggesting.current?.abort();
      leaveQuestion();
    },
    [],
  );

  /** Side A has no graph of its own to look into. */
  const functionsLike = (file: typeof Meaning, word: string, { functions }: Meaning.Meant) => {
    if (name !== "Selector") return [];
    const named = file.functionsNamed(word, functions, MOST_FUNCTIONS);
    return named.map((one) => (one.isElsewhere ? ELSEWHERE : FUNCTION) + one.name);
  };

  const close = () => {
    suggesting.current?.abort();
    setOffer(null);
    setPicked(-1);
  };
  const suggest = async (now: string, caret: number) => {
    suggesting.current?.abort();
    const mine = new AbortController();
    suggesting.current = mine;
    const file = await meaning();
    if (file === null || mine.signal.aborted) return;
    known.current = file;
    const at = file.completingAt(now, caret);
    // What was offered for another place must not be taken while the server is asked.
    if (at.what !== offer?.at.what) setOffer(null);
    const all =
      at.what === "label"
        ? (labels.data.value?.labels ?? [])
        : at.what === "operator"
          ? OPERATORS
          : await file.labelValues(at.label, at.prefix);
    if (mine.signal.aborted) return;
    const list = file.suggestions(all, at.prefix, MOST);
    setPicked(-1);
    const offered = (lists: string[]) => setOffer(lists.length > 0 ? { of: now, at, caret, list: lists } : null);
    offered(list);
    const word = wordOf(now);
    if (word === null || word.length < LEAST_WORD) return;
    const meant = await file.meantBy(word, MOST_MEANINGS, mine.signal);
    if (!mine.signal.aborted) offered([...list, ...meant.values.map(matcherText), ...functionsLike(file, word, meant)]);
  };
  // Who types before the labels are known is offered them once they are, but no longer who has entered the text.
  const hasLabels = labels.data.value !== null;
  useEffect(() => {
    const element = input.current;
    const isTyped = text !== value && said === null && submitting.current === null;
    if (hasLabels && isTyped && element !== null && document.activeElement === element)
      void suggest(text, element.selectionStart ?? text.length);
  }, [hasLabels]);
  /** Runs what Enter began, unless the text has changed meanwhile: what it gives is then of no use. */
  const submitted = async <T,>(run: (signal: AbortSignal) => Promise<T>): Promise<{ value: T } | null> => {
    close();
    leaveQuestion();
    const mine = new AbortController();
    submitting.current = mine;
    const value = await run(mine.signal);
    if (mine.signal.aborted) return null;
    submitting.current = null;
    // Suggestions that were asked for meanwhile would hide what is told.
    close();
    return { value };
  };
  /** Takes a selector that the server can read; what it can't is told, and the page stays as it is. */
  const submit = async (now: string) => {
    const tidy = tidySelector(now);
    setText(tidy);
    setSaid(null);
    const isRead = tidy === "" || tidy === value;
    const answer = await submitted(async (signal) =>
      isRead ? null : ((await (await meaning())?.refusalOf(tidy, signal)) ?? null),
    );
    if (answer === null) return;
    if (answer.value === null) onSubmit(tidy);
    else setSaid({ message: answer.value.message, hint: answer.value.hint });
  };
  /** A word is taken where one value is meant; of several each can be chosen. */
  const submitWord = async (word: string) => {
    const answer = await submitted(async (signal): Promise<{ values: LabelMatcher[]; functions: string[] } | null> => {
      const file = await meaning();
      known.current = file;
      if (file === null) return null;
      const meant = await file.meantBy(word, MOST_MEANINGS, signal);
      return { values: meant.values, functions: functionsLike(file, word, meant) };
    });
    if (answer === null) return;
    if (answer.value === null) {
      setSaid({ message: "A part of the page could not be loaded.", hint: "Load the page anew." });
      return;
    }
    const { values, functions } = answer.value;
    const [first, ...others] = values;
    if (first === undefined && functions.length === 0) setSaid(unknownWord(word));
    else if (first === undefined) {
      setSaid({
        message: `No value is called “${word}”, but functions are: choose one to find it.`,
        hint: "",
      });
      setOffer({ of: word, at: { what: "label", prefix: word, from: 0 }, caret: word.length, list: functions });
    } else if (others.length === 0 || first.value === word) void submit(formatSelector([first]));
    else {
      setSaid({ message: `Several values contain “${word}”: choose one.`, hint: "" });
      const at = { what: "label", prefix: word, from: 0 } as const;
      setOffer({ of: word, at, caret: word.length, list: values.map(matcherText) });
    }
  };
  const enter = (now: string) => {
    const word = wordOf(now);
    if (word === null) void submit(now);
    else void submitWord(word);
  };
  const take = (choice: string) => {
    if (offer === null) return;
    const kind = [ELSEWHERE, FUNCTION].find((one) => choice.startsWith(one));
    if (kind !== undefined) {
      close();
      setText(value);
      setSaid(null);
      known.current?.findFunction(choice.slice(kind.length));
      return;
    }
    if (offer.at.what === "label" && parseSelector(choice)?.length === 1) {
      input.current?.focus();
      void submit(tidySelector(choice));
      return;
    }
    // Of the text that the offer was made for: more may have been typed while the server was asked.
    if (known.current === null) return;
    const done = known.current.complete(offer.of, offer.caret, offer.at, choice);
    setText(done.text);
    // At once, and not with the next frame: keys that come before it would find the caret at the old place.
    const element = input.current as HTMLInputElement;
    element.value = done.text;
    element.focus();
    element.setSelectionRange(done.caret, done.caret);
    if (offer.at.what === "value" && parseSelector(done.text) !== null) void submit(done.text);
    else void suggest(done.text, done.caret);
  };
  useEffect(() => document.getElementById(`${id}-${picked}`)?.scrollIntoView({ block: "nearest" }), [picked]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      const choice = offer?.list[picked];
      if (choice === undefined) enter(text);
      else take(choice);
    } else if (event.key === "Tab" && offer !== null && picked >= 0) take(offer.list[picked] as string);
    else if (event.key === "Escape") {
      if (offer === null) {
        leaveQuestion();
        setText(value);
        setSaid(null);
      }
      close();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && offer === null) {
      void suggest(text, input.current?.selectionStart ?? text.length);
    } else if (event.key === "ArrowDown" && offer !== null) setPicked((picked + 1) % offer.list.length);
    else if (event.key === "ArrowUp" && offer !== null)
      setPicked(((picked + offer.list.length + 1) % (offer.list.length + 1)) - 1);
    else return;
    event.preventDefault();
  };

  const fault = said ?? error;
  return (
    <div class={`querybox${fault === null ? "" : " bad"}`}>
      <input
        ref={input}
        type="text"
        role="combobox"
        aria-label={name}
        aria-expanded={offer !== null}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={picked >= 0 ? `${id}-${picked}` : undefined}
        aria-invalid={fault !== null}
        aria-describedby={fault === null ? undefined : `${id}-error`}
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
        placeholder={placeholder}
        value={text}
        data-testid={name === "Selector" ? "query" : undefined}
        onFocus={() => void meaning()}
        onInput={(event) => {
          leaveQuestion();
          setText(event.currentTarget.value);
          setSaid(null);
          void suggest(event.currentTarget.value, event.currentTarget.selectionStart ?? 0);
        }}
        onClick={(event) => void suggest(text, event.currentTarget.selectionStart ?? text.length)}
        onKeyDown={onKeyDown}
        onBlur={close}
      />
      {text !== "" && (
        <button
          type="button"
          class="clear"
          aria-label={`Clear ${name}`}
          title="Everything"
          onClick={() => void submit("")}
        >
          ×
        </button>
      )}
      <div class="offers" id={`${id}-list`} role="listbox" aria-label="Suggestions" hidden={offer === null}>
        {offer?.list.map((choice, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input keeps the focus and takes the keys.
          <div
            key={choice}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === picked}
            tabIndex={-1}
            class={i === picked ? "picked" : ""}
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => take(choice)}
          >
            {choice === "" ? "(empty)" : choice}
          </div>
        ))}
      </div>
      {fault !== null && offer === null && (
        <div
          class={`querybox-error${said === null ? "" : " said"}`}
          id={`${id}-error`}
          role="alert"
          data-testid="selector-fault"
        >
          <b>{fault.message}</b> {fault.hint}
        </div>
      )}
    </div>
  );
}
