/** What all flows need: a page that reports every error, and a machine with something to see. */
import { test as base, type Locator, type Page, expect as playwrights } from "@playwright/test";
import { type Windows, windowsOfRun } from "./windows.ts";

export type { Windows };

/** In pixels of the page's view. */
export interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Longer than the page waits before it writes the address. */
const RESTED_MS = 500;

/** Before each next look, the last again and again: by itself a poll soon looks once a second only. */
const LOOKS_MS = [100, 250];

const poll: typeof playwrights.poll = (actual, options) =>
  playwrights.poll(actual, { intervals: LOOKS_MS, ...(typeof options === "string" ? { message: options } : options) });

/** Playwright's, with polls that look more often: flows wait for hundreds of pictures. */
export const expect = new Proxy(playwrights, {
  get: (all, name) => (name === "poll" ? poll : Reflect.get(all, name)),
});

export const test = base.extend<{ page: Page; allowErrors: RegExp[]; windows: Windows }>({
  allowErrors: [[], { option: true }],
  // biome-ignore lint/correctness/noEmptyPattern: fixtures are known by what they take.
  windows: ({}, use) => use(windowsOfRun()),
  // Every flow fails on an error in the console, on an exception, and on what the security policy forbids.
  page: async ({ page, allowErrors }, use) => {
    const errors: string[] = [];
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") errors.push(message.text());
    });
    page.on("pageerror", (error) => errors.push(String(error)));
    await use(page);
    expect(errors.filter((text) => !allowErrors.some((allowed) => allowed.test(text)))).toEqual([]);
  },
});

/** Keeps back what the page asks for at such an address, until what is returned is called. */
export async function held(page: Page, address: string | RegExp): Promise<() => void> {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(address, async (route) => {
    await released;
    await route.continue();
  });
  return release;
}

/** As `RESTS_MS` of `state/address/page.ts`. */
const RESTS_MS = 220;

export interface Resting {
  /** How many gestures wait for the hand to rest. */
  begun: () => Promise<number>;
  /** The hand rests: what was begun is taken, all at once. */
  rest: () => Promise<void>;
}

/** Hands rest when the flow says so, and not after a pause: to be called before the page is opened. */
export async function restless(page: Page): Promise<Resting> {
  await page.addInitScript((pause) => {
    const [set, clear] = [window.setTimeout.bind(window), window.clearTimeout.bind(window)];
    const waiting = new Map<number, () => void>();
    // No timer of the browser has such a number.
    let last = 2 ** 40;
    const begin = (run: () => void, ms?: number, ...rest: unknown[]) => {
      if (ms !== pause) return set(run, ms, ...rest);
      waiting.set(++last, run);
      return last;
    };
    const end = (timer?: number) => {
      if (timer === undefined || !waiting.delete(timer)) clear(timer);
    };
    const rest = () => {
      const all = [...waiting.values()];
      waiting.clear();
      for (const run of all) run();
    };
    Object.assign(window, { setTimeout: begin, clearTimeout: end, hands: { begun: () => waiting.size, rest } });
  }, RESTS_MS);
  type Hands = { hands: { begun: () => number; rest: () => void } };
  return {
    begun: () => page.evaluate(() => (window as unknown as Hands).hands.begun()),
    rest: () => page.evaluate(() => (window as unknown as Hands).hands.rest()),
  };
}

/** Asks everything anew, as a live page does by itself: no pointer moves, and what has the focus keeps it. */
export async function askAnew(page: Page): Promise<void> {
  await page
    .getByRole("button", { name: "Refresh", exact: true })
    .evaluate((button) => (button as HTMLButtonElement).click());
}

/** The address of a view over a window. */
export function at(range: { from: number; until: number }, more: Record<string, string> = {}): string {
  return `/?${new URLSearchParams({ from: String(range.from), until: String(range.until), ...more })}`;
}

export function comparison({ before, after }: Windows, more: Record<string, string> = {}): string {
  return at(after, {
    view: "compare",
    baseFrom: String(before.from),
    baseUntil: String(before.until),
    ...more,
  });
}

/**
 * A selector by which the busy process is among the largest of what is selected, also on a machine that does much else.
 */
export const READERS = '{process=~"reader-.*"}';

/** The selector of the busy process. */
export function busyOnly({ busy }: Windows): string {
  return `{process="${busy}"}`;
}

/**
 * A canvas's colours as 0xRRGGBB, each with its number of pixels. Read from a copy: a canvas that is read again and
 * again Chromium warns of, and such a warning fails a test.
 */
export async function pixels(page: Page, canvas: string): Promise<Map<number, number>> {
  const counted = await page.getByTestId(canvas).evaluate((element) => {
    const { width, height } = element as HTMLCanvasElement;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    if (copy === null) return [];
    copy.drawImage(element as HTMLCanvasElement, 0, 0);
    const words = new Uint32Array(copy.getImageData(0, 0, width, height).data.buffer);
    const seen = new Map<number, number>();
    // Neighbours are mostly alike: a run of them is counted at once.
    for (let i = 0; i < words.length; ) {
      const begin = i;
      // Alpha, blue, green and red.
      const word = words[begin] as number;
      while (words[i] === word) i++;
      const colour = ((word & 0xff) << 16) | (word & 0xff00) | ((word >> 16) & 0xff);
      seen.set(colour, (seen.get(colour) ?? 0) + i - begin);
    }
    return [...seen];
  });
  return new Map(counted);
}

/** How many different colours a canvas shows, such as the flamegraph: a blank one has one. */
export async function colours(page: Page, canvas = "flamegraph"): Promise<number> {
  return (await pixels(page, canvas)).size;
}

export function parameter(page: Page, name: string): string | null {
  return new URL(page.url()).searchParams.get(name);
}

/** What is read once it is there and the same twice in a row. */
export async function settled(intervalMs: number, read: () => Promise<string | null>): Promise<string> {
  let last: string | null = null;
  await expect
    .poll(
      async () => {
        const before = last;
        last = await read();
        return last !== null && last === before;
      },
      { intervals: [intervalMs] },
    )
    .toBe(true);
  return last ?? "";
}

/**
 * A parameter once it rests: the address follows a gesture a moment later, so that one that is slow is written more
 * than once.
 */
export function rested(page: Page, name: string): Promise<string> {
  return settled(RESTED_MS, async () => parameter(page, name));
}

/** Where an element is once it stays there and has a size: what arrives after it may stand above it. */
export async function placeOf(element: Locator): Promise<Place> {
  const place = await settled(100, async () => {
    const box = await element.boundingBox();
    return box !== null && box.width > 0 && box.height > 0 ? JSON.stringify(box) : null;
  });
  return JSON.parse(place) as Place;
}

/** What is zoomed stands in the address and stays over a reload. */
export async function zoomStays(page: Page): Promise<void> {
  await expect(page.getByTestId("reset-zoom")).toBeVisible();
  const focus = await rested(page, "focus");
  await page.reload();
  await expect(page.getByTestId("reset-zoom")).toBeVisible();
  await expect.poll(() => parameter(page, "focus")).toBe(focus);
}

/**
 * Points at a place of a canvas until the tooltip says what is there: what arrives later, such as a notice above it,
 * may move the canvas from under the pointer.
 */
export async function pointAt(
  canvas: Locator,
  { x, y }: { x: number; y: number },
  text: string | RegExp,
): Promise<Locator> {
  const tooltip = canvas.page().getByTestId("tooltip");
  let aside = 1;
  await expect(async () => {
    aside = 1 - aside;
    await canvas.hover({ position: { x: x + aside, y } });
    await expect(tooltip).toContainText(text, { timeout: 1000 });
  }).toPass();
  return tooltip;
}

/** The same at the root frame. */
export function hoverRoot(page: Page): Promise<Locator> {
  return pointAt(page.getByTestId("flamegraph"), { x: 60, y: 10 }, "everything in this window");
}
