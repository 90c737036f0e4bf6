/**
 * Frame names in little room. A name that does not fit loses what says least first: what a compiler appended,
 * arguments, template and generic parameters, then the leading scopes. Only then is it cut, and keeps its end:
 * neighbours begin alike.
 */

const ELLIPSIS = "…";
/** Which copy of a function it is, as compilers call them. */
const COPY_OF = /((\.(cold|constprop|isra|llvm|lto_priv|part)(\.\d+)?)+|\{\{[^{}]*\}\})$/;
/** The closure of a function, or what a compiler made to call one. */
const CLOSURE = /(::\{[^{}]*\})+$/;
/**
 * A scope as Java, Go and Python write it. What comes behind the dot may also be a file's ending, a version, or a
 * closure: they say nothing alone.
 */
const DOTTED = /^[^.\s<[{]+\.(?!so\b|func\d|\d)(?=[^.\s]...)/;

/** Of longer names, what encloses the last letters is not looked at. */
const MOST_LOOKED_AT = 1_000;

/** Without arguments and generic parameters, and without what a compiler appended. */
export function bareName(name: string): string {
  return withoutNested(withoutNested(name.replace(COPY_OF, ""), "(", ")"), "<", ">");
}

/** The longest form that has at most `room` characters; empty where not even three fit. */
export function fitName(name: string, room: number): string {
  if (name.length <= room) return name;
  if (room < 3) return "";
  if (name.length > MOST_LOOKED_AT) {
    const bare = bareName(name);
    if (bare.length > MOST_LOOKED_AT) return ELLIPSIS + name.slice(1 - Math.min(room, MOST_LOOKED_AT));
    return fitName(bare, room);
  }
  for (const shorter of shorterForms(name)) if (shorter.length <= room) return shorter;
  const last = lastForm(name);
  return ELLIPSIS + last.slice(1 - room);
}

function* shorterForms(name: string): Generator<string> {
  const plain = withoutNested(name.replace(COPY_OF, ""), "(", ")");
  yield plain;
  const bare = withoutNested(plain, "<", ">");
  yield bare;
  let rest = bare;
  for (;;) {
    const shorter = withoutFirstScope(rest);
    if (shorter === null) break;
    yield shorter;
    rest = shorter;
  }
  yield rest.replace(CLOSURE, "");
}

function lastForm(name: string): string {
  let last = name;
  for (const form of shorterForms(name)) if (form !== "") last = form;
  return last;
}

/** `a::b::c` to `b::c`, `a/b.c` to `b.c`, `b.calls` to `calls`, `<a::T as b::Trait>::f` to `Trait::f`. */
function withoutFirstScope(name: string): string | null {
  const qualified = /^<(?:.* as )?([^<>]+)(?:<.*>)?>(::.+)$/.exec(name);
  if (qualified !== null) return (qualified[1] as string).replace(/^.*::/, "") + qualified[2];
  const scope = /^[^:/]*?(::|\/)/.exec(name) ?? DOTTED.exec(name);
  if (scope === null || scope[0].length >= name.length) return null;
  const rest = name.slice(scope[0].length);
  // "A closure" alone says nothing: it keeps the function that it stands in.
  return rest.startsWith("{") ? null : rest;
}

/**
 * Drops bracketed parts, except where they open the name or a part of it (`<T as Trait>::f`, `(anonymous
 * namespace)::f`, `kubelet.(*Pod).sync`).
 */
function withoutNested(name: string, open: string, close: string): string {
  let depth = 0;
  let out = "";
  for (let i = 0; i < name.length; i++) {
    const c = name[i] as string;
    const arrow = c === ">" && name[i - 1] === "-";
    if (c === open && out !== "" && !out.endsWith("operator") && !out.endsWith(".")) depth++;
    if (depth === 0) out += c;
    if (c === close && !arrow && depth > 0) depth--;
  }
  if (depth !== 0 || out === "") return name;
  return out.replace(/::(?=::|$)/g, "").trimEnd();
}

/** The order of names that are sorted: by their letters' codes, the same everywhere. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
