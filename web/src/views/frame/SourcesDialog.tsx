/** Templates of source links, one a module or a pattern of modules; this browser keeps them. */
import { useState } from "preact/hooks";
import { sourceLink, type Template, templateFault } from "../../logic/source/template.ts";
import { setTemplates, templates } from "../../state/moments/sources.ts";
import { useDialog } from "../ui/hooks.ts";

const EXAMPLE = { module: "/opt/bin/shop", file: "src/walk.go", line: 42, version: "v15" };
const NEW: Template = {
  module: "*",
  url: "https://github.com/OWNER/NAME/blob/{commit}/{file}#L{line}",
  commit: "main",
};

const FIELDS = [
  ["module", "Module"],
  ["url", "Address"],
  ["commit", "{commit} is"],
] as const;

export function SourcesDialog({ onClose }: { onClose: () => void }) {
  const { leave, dialog } = useDialog(onClose);
  const [rows, setRows] = useState<readonly Template[]>(() => (templates().length > 0 ? templates() : [NEW]));
  const set = (at: number, change: Partial<Template>) =>
    setRows(rows.map((row, i) => (i === at ? { ...row, ...change } : row)));
  const isSound = rows.every(({ url }) => templateFault(url) === "");
  return (
    <dialog class="help saved" aria-label="Templates of source links" {...dialog}>
      <form
        class="help-body"
        data-testid="source-templates"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isSound) return;
          setTemplates(rows);
          leave();
        }}
      >
        <div class="help-head">
          <h2>Templates of source links</h2>
          <button type="button" class="button icon" aria-label="Close" onClick={leave}>
            ✕
          </button>
        </div>
        <p class="dim">
          The first whose module fits counts: a name, a path, or a pattern with *. {"{file}"}, {"{line}"}, {"{module}"},{" "}
          {"{version}"} (the one that is selected) and {"{commit}"} are filled in; without a commit of its own the
          version stands for it. This browser keeps them.
        </p>
        {rows.map((row, at) => {
          const fault = templateFault(row.url);
          const example = fault === "" ? sourceLink(row, EXAMPLE) : null;
          return (
            <fieldset key={at} class="source-row">
              {FIELDS.map(([field, title]) => (
                <label key={field} class={`source-${field}`}>
                  {title}
                  <input
                    type="text"
                    value={row[field]}
                    spellcheck={false}
                    autoComplete="off"
                    aria-invalid={field === "url" && fault !== ""}
                    onInput={(event) => set(at, { [field]: event.currentTarget.value })}
                  />
                </label>
              ))}
              <button type="button" class="button" onClick={() => setRows(rows.filter((_, i) => i !== at))}>
                Remove
              </button>
              <p class={fault === "" ? "dim" : "warn-text"} role="status">
                {fault === "" ? `Such as ${example ?? "nothing, without a version"}` : `This is no template: ${fault}.`}
              </p>
            </fieldset>
          );
        })}
        <div class="saved-form">
          <button type="button" class="button" onClick={() => setRows([...rows, NEW])}>
            Add a template
          </button>
          <span class="spring" />
          <button type="submit" class="button primary" disabled={!isSound}>
            Keep
          </button>
        </div>
      </form>
    </dialog>
  );
}
