/**
 * Links from a frame to its source, by templates that a person gives for modules. In: templates, and where a frame
 * stands. Out: an address, or why there is none. What fills a template is a part of an address and can be nothing else:
 * a file's name comes from programs that nobody vouches for.
 */

export interface Template {
  /** Of which modules: a name, or a pattern with `*`. */
  module: string;
  /** `https://…/{commit}/{file}#L{line}`. */
  url: string;
  /** What stands for `{commit}`; empty: the version. */
  commit: string;
}

export interface SourcePosition {
  module: string;
  file: string;
  /** 0 where it is not known. */
  line: number;
  version: string;
}

const NAMES = ["commit", "file", "line", "module", "version"] as const;
/** In an address a placeholder has to stand behind the host: a program must not choose whom its viewers ask. */
const MODEL: Record<(typeof NAMES)[number], string> = { commit: "c", file: "f", line: "1", module: "m", version: "v" };

/** Why a template is none; empty where it is one. */
export function templateFault(url: string): string {
  const strange = [...url.matchAll(/\{([^{}]*)\}/g)].find(
    ([, name]) => !(NAMES as readonly string[]).includes(name ?? ""),
  );
  if (strange !== undefined) return `${strange[0]} is none of {commit}, {file}, {line}, {module}, {version}`;
  const authority = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1];
  if (authority === undefined) return "it has to begin with https:// or http://";
  if (/[{}\\@\s]/.test(authority)) return "the host has to be given in full, without a placeholder or a name before @";
  try {
    const filled = new URL(url.replace(/\{(\w+)\}/g, (_, name: keyof typeof MODEL) => MODEL[name]));
    if (filled.protocol !== "https:" && filled.protocol !== "http:") return "it has to be https or http";
  } catch {
    return "it is no address";
  }
  return url.includes("{file}") ? "" : "it lacks {file}";
}

/** The first template whose module fits; the last part of a path counts as its name. */
export function templateFor(templates: readonly Template[], module: string): Template | null {
  const name = module.replace(/^.*\//, "");
  const fits = (pattern: string) => {
    const parts = pattern.split("*").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    const whole = new RegExp(`^${parts.join(".*")}$`, "s");
    return whole.test(module) || whole.test(name);
  };
  return templates.find((one) => fits(one.module)) ?? null;
}

/** A path's parts, none of which leads up or is empty: `../../etc` is no way out of a repository. */
function fileText(file: string): string {
  return file
    .replaceAll("\\", "/")
    .split("/")
    .filter((part) => part !== "" && part !== "." && part !== "..")
    .map(encoded)
    .join("/");
}

/** As `encodeURIComponent`, with what it leaves alone, and with halves of characters as what stands for none. */
function encoded(text: string): string {
  const whole = text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
  return encodeURIComponent(whole).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** The address of a place; null where the template is none, or what it asks for is not known. */
export function sourceLink({ url, commit }: Template, place: SourcePosition): string | null {
  if (templateFault(url) !== "" || place.file === "") return null;
  const values: Record<string, string> = {
    commit: encoded(commit || place.version),
    file: fileText(place.file),
    line: String(place.line > 0 ? Math.floor(place.line) : 1),
    module: encoded(place.module.replace(/^.*\//, "")),
    version: encoded(place.version),
  };
  for (const name of ["commit", "version", "file"])
    if (url.includes(`{${name}}`) && (values[name] ?? "") === "") return null;
  // One dot or two would be a way up, also encoded.
  for (const name of ["commit", "version", "module"]) if (/^\.{1,2}$/.test(values[name] ?? "")) return null;
  return new URL(url.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? "")).href;
}

/** Of a text that a browser kept, or that somebody pasted; what is none is left out. */
export function templatesOf(text: string | null): Template[] {
  try {
    const list: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(list)) return [];
    return list.flatMap((one) =>
      typeof one?.module === "string" && typeof one.url === "string" && typeof one.commit === "string"
        ? [{ module: one.module, url: one.url, commit: one.commit }]
        : [],
    );
  } catch {
    return [];
  }
}
