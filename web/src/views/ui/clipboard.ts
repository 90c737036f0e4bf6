/** Copies a text; false where the browser refuses. */
export async function copyText(text: string): Promise<boolean> {
  // Pages that came without TLS have no `navigator.clipboard`.
  if (navigator.clipboard === undefined) return copySelected(text);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** The older way: what is selected, in a field that nobody sees. */
function copySelected(text: string): boolean {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.className = "visually-hidden";
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}
