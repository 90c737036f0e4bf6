/**
 * The table of a view that has no graph, as text: the view says how it is made, as long as it is on the screen, to who
 * saves it as a file.
 */
import { signal } from "@preact/signals";
import type { TextTable } from "../../logic/picture/textTable.ts";

export const shownTable = signal<(() => TextTable) | null>(null);
