/**
 * Frame names in little room. A name that does not fit loses what says least first: arguments, then template and
 * generic parameters, then the leading scopes; only then is it cut.
 */

const ELLIPSIS = "…";

/** The longest form that has at most `room` characters; empty where not even three fit. */
export function fitName(name: string, room: number): string {
  if (name.length <= room) return name;
  if (room < 3) return "";
  for (const shorter of shorterForms(name)) if (shorter.length <= room) return shorter;
  const last = lastForm(name);
  return `${last.slice(0, room - 1)}${ELLIPSIS}`;
}

function* shorterForms(name: string): Generator<string> {
  const plain = withoutNested(name, "(", ")");
  yield plain;
  const bare = withoutNested(plain, "<", ">");
  yield bare;
  let rest = bare;
  for (;;) {
    const shorter = withoutFirstScope(rest);
    if (shorter === null) return;
    yield shorter;
    rest = shorter;
  }
}

function lastForm(name: string): string {
  let last = name;
  for (const form of shorterForms(name)) if (form !== "") last = form;
  return last;
}

/** `a::b::c` to `b::c`, `a/b.c` to `b.c`, `<a::T as b::Trait>::f` to `Trait::f`. */
function withoutFirstScope(name: string): string | null {
  const qualified = /^<(?:.* as )?([^<>]+)(?:<.*>)?>(::.+)$/.exec(name);
  if (qualified !== null) return (qualified[1] as string).replace(/^.*::/, "") + qualified[2];
  const scope = /^[^:/]*?(::|\/)/.exec(name);
  if (scope === null || scope[0].length >= name.length) return null;
  const rest = name.slice(scope[0].length);
  // "A closure" alone says nothing: it keeps the function that it stands in.
  return rest.startsWith("{") ? null : rest;
}

/** Drops bracketed parts, except where they open the name (`<T as Trait>::f`, `(anonymous namespace)::f`). */
function withoutNested(name: string, open: string, close: string): string {
  let depth = 0;
  let out = "";
  for (let i = 0; i < name.length; i++) {
    const c = name[i] as string;
    const arrow = c === ">" && name[i - 1] === "-";
    if (c === open && out !== "" && !out.endsWith("operator")) depth++;
    if (depth === 0) out += c;
    if (c === close && !arrow && depth > 0) depth--;
  }
  if (depth !== 0 || out === "") return name;
  return out.replace(/::(?=::|$)/g, "").trimEnd();
}
