/** The selector's text, with completion of labels and values. Enter or a completed value asks. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import {
  type Completing,
  complete,
  completingAt,
  parseSelector,
  suggestions,
  tidySelector,
} from "../logic/selector.ts";
import { labels } from "../state/data.ts";
import { labelValues } from "../state/labels.ts";

interface Props {
  name: string;
  value: string;
  placeholder: string;
  error: { message: string; hint: string } | null;
  onSubmit: (query: string) => void;
}

const MOST = 200;
const OPERATORS = ["=", "!=", "=~", "!~"];

export function QueryBox({ name, value, placeholder, error, onSubmit }: Props) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(value);
  const [offer, setOffer] = useState<{ of: string; at: Completing; caret: number; list: string[] } | null>(null);
  const [picked, setPicked] = useState(-1);
  const asked = useRef<AbortController | null>(null);

  useEffect(() => setText(value), [value]);
  useEffect(() => () => asked.current?.abort(), []);

  const close = () => {
    asked.current?.abort();
    setOffer(null);
    setPicked(-1);
  };
  const suggest = async (now: string, caret: number) => {
    asked.current?.abort();
    const mine = new AbortController();
    asked.current = mine;
    const at = completingAt(now, caret);
    // What was offered for another place must not be taken while the server is asked.
    if (at.what !== offer?.at.what) setOffer(null);
    const all =
      at.what === "label"
        ? (labels.data.value?.labels ?? [])
        : at.what === "operator"
          ? OPERATORS
          : await labelValues(at.label);
    if (mine.signal.aborted) return;
    const list = suggestions(all, at.prefix, MOST);
    setPicked(-1);
    setOffer(list.length > 0 ? { of: now, at, caret, list } : null);
  };
  const submit = (now: string) => {
    close();
    const tidy = tidySelector(now);
    setText(tidy);
    onSubmit(tidy);
  };
  const take = (choice: string) => {
    if (offer === null) return;
    // Of the text that the offer was made for: more may have been typed while the server was asked.
    const done = complete(offer.of, offer.caret, offer.at, choice);
    setText(done.text);
    // At once, and not with the next frame: keys that come before it would find the caret at the old place.
    const element = input.current as HTMLInputElement;
    element.value = done.text;
    element.focus();
    element.setSelectionRange(done.caret, done.caret);
    if (offer.at.what === "value" && parseSelector(done.text) !== null) submit(done.text);
    else void suggest(done.text, done.caret);
  };
  useEffect(() => document.getElementById(`${id}-${picked}`)?.scrollIntoView({ block: "nearest" }), [picked]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      const choice = offer?.list[picked];
      if (choice === undefined) submit(text);
      else take(choice);
    } else if (event.key === "Tab" && offer !== null && picked >= 0) take(offer.list[picked] as string);
    else if (event.key === "Escape") {
      if (offer === null) setText(value);
      close();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && offer === null) {
      void suggest(text, input.current?.selectionStart ?? text.length);
    } else if (event.key === "ArrowDown" && offer !== null) setPicked((picked + 1) % offer.list.length);
    else if (event.key === "ArrowUp" && offer !== null)
      setPicked(((picked + offer.list.length + 1) % (offer.list.length + 1)) - 1);
    else return;
    event.preventDefault();
  };

  return (
    <div class={`querybox${error === null ? "" : " bad"}`}>
      <input
        ref={input}
        type="text"
        role="combobox"
        aria-label={name}
        aria-expanded={offer !== null}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={picked >= 0 ? `${id}-${picked}` : undefined}
        aria-invalid={error !== null}
        aria-describedby={error === null ? undefined : `${id}-error`}
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
        placeholder={placeholder}
        value={text}
        data-testid={name === "Selector" ? "query" : undefined}
        onInput={(event) => {
          setText(event.currentTarget.value);
          void suggest(event.currentTarget.value, event.currentTarget.selectionStart ?? 0);
        }}
        onClick={(event) => void suggest(text, event.currentTarget.selectionStart ?? text.length)}
        onKeyDown={onKeyDown}
        onBlur={close}
      />
      {text !== "" && (
        <button type="button" class="clear" aria-label={`Clear ${name}`} title="Everything" onClick={() => submit("")}>
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
      {error !== null && (
        <div class="querybox-error" id={`${id}-error`} role="alert">
          <b>{error.message}</b> {error.hint}
        </div>
      )}
    </div>
  );
}
