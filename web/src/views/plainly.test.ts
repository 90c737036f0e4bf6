import { h } from "preact";
import { expect, it } from "vitest";
import { showPlainly } from "./plainly.ts";

it("names what is not seen in what is read, and leaves values as they are", () => {
  showPlainly();
  const evil = "pay\u202edab";
  const made = h("input", { title: evil, "aria-label": evil, placeholder: evil, value: evil, id: evil });
  const shown = "pay⟨U+202E⟩dab";
  expect(made.props).toMatchObject({ title: shown, "aria-label": shown, placeholder: shown, value: evil, id: evil });
  const View = ({ title }: { title: string }) => title;
  // What a view is given it may ask the server with.
  expect(h(View, { title: evil }).props.title).toBe(evil);
});
