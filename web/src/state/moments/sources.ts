/** Templates of source links, as this browser keeps them, and the link of the selected frame. */
import { effect, signal } from "@preact/signals";
import { parseSelector } from "../../logic/labels/selector.ts";
import { sourceLink, type Template, templateFor, templatesOf } from "../../logic/source/template.ts";
import { page } from "../address/page.ts";
import { framePlaces } from "../screen/frame.ts";
import { keep, kept } from "../screen/kept.ts";
import { sourceShown } from "./sourceShown.ts";

const KEPT = "source-templates";

const chosen = signal<readonly Template[] | null>(null);

export function templates(): readonly Template[] {
  chosen.value ??= templatesOf(kept(KEPT));
  return chosen.value;
}

export function setTemplates(next: readonly Template[]): void {
  chosen.value = next;
  keep(KEPT, JSON.stringify(next));
}

/** The version that is selected; empty where several may be. */
function selectedVersion(): string {
  const found = parseSelector(page.value.query)?.find(
    ({ label, operator }) => operator === "=" && /^"?(version|service\.version)"?$/.test(label),
  );
  return found?.value ?? "";
}

/** Null where no template is of this module, or does not know all that it asks for. */
export function linkOf(module: string, { file, from, until }: { file: string; from: number; until: number }) {
  const template = templateFor(templates(), module);
  if (template === null) return null;
  return sourceLink(template, { module, file, line: from > 0 ? from : until, version: selectedVersion() });
}

export function startSources(): void {
  effect(() => {
    const known = framePlaces.value;
    const key = known?.key ?? null;
    const links = (known?.places ?? []).flatMap(({ module, sources }) =>
      sources.map((source) => linkOf(module, source)),
    );
    const href = links.find((link) => link !== null) ?? null;
    sourceShown.value = key === null || href === null ? null : { name: key.name, module: key.module, href };
  });
}
