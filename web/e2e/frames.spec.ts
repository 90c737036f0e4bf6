/** What can be done with frames, on samples that are known by construction: every figure is exact. */
import type { Page } from "@playwright/test";
import { drawn, stored, WINDOW } from "./known.ts";
import type { Frame } from "./otlp.ts";
import { at, expect, parameter, pixels, placeOf, pointAt, rested, test } from "./stack.ts";

const prog = (name: string): Frame => ({ name, module: "/opt/bin/prog" });
const lib = (name: string): Frame => ({ name, module: "/opt/lib/lib.so" });
/** The colour that marks matches on a light page. */
const HIT = 0xc026d3;

function panelOf(page: Page) {
  return page.getByTestId("frame-panel");
}

test.describe("what is done to the graph", () => {
  const stacks = [
    { frames: [prog("main"), prog("serve"), lib("parse")], samples: 40 },
    { frames: [prog("main"), prog("serve"), lib("parse"), lib("copy")], samples: 20 },
    { frames: [prog("main"), prog("walk"), prog("walk"), prog("walk")], samples: 30 },
    { frames: [prog("main"), prog("rest")], samples: 10 },
  ];
  /** A frame, what is done, its chip, its place in the address, and how many rows the whole tree has then. */
  const CHANGES = [
    ["walk", "Focus on walk", "focus on walk", "focus:walk", 30],
    ["copy", "Hide copy", "without copy", "hide:copy", 100],
    ["parse", "Collapse lib.so", "collapsed lib.so", "collapse:lib.so", 100],
    ["walk", "Merge recursion", "recursion merged", "merge", 100],
    ["walk", "Invert", "inverted: leaf first", "invert", 100],
    ["parse", "Callers and callees", "callers and callees of parse", "sandwich:parse", 60],
  ] as const;

  for (const [frame, action, chip, transform, samples] of CHANGES) {
    test(`${action}: a chip that can be removed`, async ({ page, request }) => {
      const query = await stored(request, `chip-${transform.replace(/\W/g, "-")}`, stacks);
      await page.goto(at(WINDOW, { ...query, frame }));
      await drawn(page);
      const chips = page.getByTestId("chips");
      await panelOf(page).getByRole("button", { name: action, exact: true }).click();
      await expect.poll(() => parameter(page, "transform")).toBe(transform);
      await expect(chips.getByRole("listitem").first()).toContainText(chip);
      if (samples === 100) await expect(chips).not.toContainText("of 100 samples");
      else await expect(chips).toContainText(`${samples} of 100 samples`);
      await page.reload();
      await expect(chips).toContainText(chip);
      await chips.getByTestId("chip").click();
      await expect.poll(() => parameter(page, "transform")).toBeNull();
      await expect(chips).toBeHidden();
      await page.goBack();
      await expect(chips).toContainText(chip);
    });
  }

  test("several stay in their order, each is removed by itself, or all at once", async ({ page, request }) => {
    const query = await stored(request, "chips", stacks);
    await page.goto(at(WINDOW, { ...query, transform: "hide:copy;merge;invert" }));
    await drawn(page);
    const chips = page.getByTestId("chips");
    await chips.getByRole("button", { name: /^Undo: recursion merged/ }).click();
    await expect.poll(() => parameter(page, "transform")).toBe("hide:copy;invert");
    await expect(chips.getByTestId("chip")).toHaveCount(2);
    await chips.getByRole("button", { name: "undo all" }).click();
    await expect.poll(() => parameter(page, "transform")).toBeNull();
    await page.goBack();
    await expect(chips.getByTestId("chip")).toHaveCount(2);
  });
});

test("next and previous match go through all, by buttons and by keys, and begin anew", async ({ page, request }) => {
  const query = await stored(request, "hits", [
    { frames: [prog("main"), prog("serve"), lib("copy_in")], samples: 60 },
    { frames: [prog("main"), prog("walk"), lib("copy_out")], samples: 30 },
    { frames: [prog("main"), prog("rest")], samples: 10 },
  ]);
  await page.goto(at(WINDOW, { ...query, match: "/^copy_/" }));
  await drawn(page);
  const said = page.getByTestId("selected-frame");
  await expect(page.getByTestId("found")).toContainText("90 samples in 2 frames");
  for (const name of ["copy_in", "copy_out", "copy_in"]) {
    await page.getByRole("button", { name: "Next match" }).click();
    await expect(said).toContainText(new RegExp(`^${name},`));
  }
  await page.getByRole("button", { name: "Previous match" }).click();
  await expect(said).toContainText(/^copy_out,/);
  await page.getByTestId("flamegraph").focus();
  await page.keyboard.press("n");
  await expect(said).toContainText(/^copy_in,/);
  await page.keyboard.press("N");
  await expect(said).toContainText(/^copy_out,/);
});

test("one sample of forty thousand is found, and seen", async ({ page, request }) => {
  const query = await stored(request, "thin", [
    { frames: [prog("main"), prog("large")], samples: 40_000 },
    { frames: [prog("main"), prog("needle")], samples: 1 },
  ]);
  await page.goto(at(WINDOW, { ...query, theme: "light", pane: "graph" }));
  await drawn(page);
  expect((await pixels(page, "flamegraph")).has(HIT)).toBe(false);
  await page.getByTestId("search").fill("needle");
  await expect(page.getByTestId("found")).toContainText("1 sample in 1 frame");
  // As high as its row, and two pixels wide.
  await expect.poll(async () => (await pixels(page, "flamegraph")).get(HIT) ?? 0).toBeGreaterThanOrEqual(30);
  expect((await pixels(page, "minimap")).get(HIT)).toBeGreaterThan(0);
});

test("a zoomed frame fills the width, in the picture and below the pointer, and its caller comes back", async ({
  page,
  request,
}) => {
  const query = await stored(request, "zoom", [
    { frames: [prog("main"), prog("serve"), prog("parse")], samples: 30 },
    { frames: [prog("main"), prog("walk")], samples: 30 },
    { frames: [prog("main"), prog("rest")], samples: 40 },
  ]);
  await page.goto(at(WINDOW, { ...query, theme: "light", pane: "graph", match: "parse" }));
  const box = await drawn(page);
  const graph = page.getByTestId("flamegraph");
  const row = (of: number) => 19 * of + 9;
  const right = { x: box.width - 30, y: row(3) };
  const marked = async () => (await pixels(page, "flamegraph")).get(HIT) ?? 0;
  await expect.poll(marked).toBeGreaterThan(0);
  const part = await marked();
  const caller = { x: box.width * 0.55, y: row(2) };
  await pointAt(graph, caller, "serve");
  await graph.click({ position: caller });
  await expect.poll(marked).toBeGreaterThan(part * 3);
  await pointAt(graph, right, "parse");
  await graph.focus();
  await page.keyboard.press("Backspace");
  await expect.poll(() => parameter(page, "focus")).toBe("main");
  await expect.poll(marked).toBe(part);
});

test("what is thinner than a pixel is drawn together, counted, and comes apart when zoomed", async ({
  page,
  request,
}) => {
  const small = Array.from({ length: 4000 }, (_, i) => ({
    frames: [prog("main"), prog(`f${i}`), prog(`g${i}`)],
    samples: 1,
  }));
  const query = await stored(request, "slivers", [{ frames: [prog("main"), prog("large")], samples: 4000 }, ...small]);
  await page.goto(at(WINDOW, { ...query, pane: "graph" }));
  const box = await drawn(page);
  await expect(page.getByTestId("thin-rows")).toContainText("1 row more of frames thinner than a pixel");
  const graph = page.getByTestId("flamegraph");
  const place = { x: box.width * 0.25, y: 19 * 2 + 9 };
  await pointAt(graph, place, /\d+ frames here, too thin to be drawn apart, with \d+ samples/);
  await page.keyboard.down("Control");
  for (let i = 0; i < 14; i++) await page.mouse.wheel(0, -300);
  await page.keyboard.up("Control");
  await expect(page.getByTestId("thin-rows")).toBeHidden();
  await pointAt(graph, place, /^f\d+native/);
});

test("the map shows the whole: a press there brings that part into sight", async ({ page, request }) => {
  const query = await stored(request, "map", [
    { frames: [prog("main"), prog("left")], samples: 60 },
    { frames: [prog("main"), prog("right")], samples: 40 },
  ]);
  await page.goto(at(WINDOW, { ...query, part: "0-200000" }));
  await drawn(page);
  const graph = page.getByTestId("flamegraph");
  const place = { x: 300, y: 19 * 2 + 9 };
  await pointAt(graph, place, "left");
  const box = await placeOf(page.getByTestId("minimap"));
  await page.mouse.click(box.x + box.width * 0.85, box.y + 10);
  // Millionths, as near as a pixel is.
  const part = () =>
    parameter(page, "part")
      ?.split("-")
      .map((edge) => Math.round(Number(edge) / 1e4));
  await expect.poll(part).toEqual([75, 95]);
  await pointAt(graph, place, "right");
  // Dragged along the map, what is in sight follows.
  await page.mouse.move(box.x + box.width * 0.85, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 12, { steps: 4 });
  await page.mouse.up();
  await expect.poll(part).toEqual([20, 40]);
});

test("by keys alone into the width and along it, and back", async ({ page, request }) => {
  const query = await stored(request, "keys-width", [
    { frames: [prog("main"), prog("left")], samples: 50 },
    { frames: [prog("main"), prog("right")], samples: 50 },
  ]);
  await page.goto(at(WINDOW, query));
  await drawn(page);
  const graph = page.getByTestId("flamegraph");
  await graph.focus();
  const part = () =>
    parameter(page, "part")
      ?.split("-")
      .map((edge) => Math.round(Number(edge) / 1e4)) ?? null;
  for (let i = 0; i < 3; i++) await page.keyboard.press("+");
  await expect.poll(part).toEqual([24, 76]);
  // Around the selected frame, where one is.
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  await expect(page.getByTestId("selected-frame")).toContainText("left");
  for (let i = 0; i < 12; i++) await page.keyboard.press("+");
  await rested(page, "part");
  const before = part();
  expect(before?.[1]).toBeLessThanOrEqual(50);
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("Shift+ArrowRight");
  await expect.poll(() => (part()?.[0] ?? 0) > (before?.[0] ?? 0)).toBe(true);
  for (let i = 0; i < 30; i++) await page.keyboard.press("-");
  await expect.poll(part).toBeNull();
});

test("the panel of a frame: parts of the window, its caller and what is zoomed; where it stands; its name to copy", async ({
  page,
  request,
  context,
}) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const read: Frame = { ...lib("read"), buildId: "c0ffee42", file: "/src/io.c", line: 42 };
  const query = await stored(request, "panel", [
    { frames: [prog("main"), prog("serve"), prog("handle"), read], samples: 10 },
    { frames: [prog("main"), prog("serve"), prog("handle")], samples: 30 },
    { frames: [prog("main"), prog("serve")], samples: 10 },
    { frames: [prog("main")], samples: 50 },
  ]);
  await page.goto(at(WINDOW, { ...query, frame: "main;serve;handle;read", focus: "main;serve" }));
  await drawn(page);
  const panel = panelOf(page);
  await expect(panel.getByRole("columnheader")).toHaveText([
    "samples",
    "CPU time",
    "cores",
    "of total",
    "of caller",
    "of zoomed",
  ]);
  const figures = async (row: RegExp) =>
    (await panel.getByRole("row", { name: row }).getByRole("cell").allTextContents()).map((text) =>
      text.replace(/\s/g, " "),
    );
  const [samples, time, , ...parts] = await figures(/^total/);
  expect([samples, time, ...parts]).toEqual(["10", "500 ms", "10.0 %", "25.0 %", "20.0 %"]);
  await expect(panel).toContainText("/opt/lib/lib.so");
  await expect(panel).toContainText("build id c0ffee42");
  await expect(panel).toContainText("/src/io.c:42");
  await expect(panel.getByTestId("frame-since")).toContainText("first seen");

  await panel.getByTestId("copy-frame").click();
  await expect(panel.getByTestId("copy-frame")).toHaveText("Copied");
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("read");
  await panel.getByRole("listitem").getByRole("button", { name: "handle" }).click();
  await expect(panel.locator(".frame-name")).toHaveText("handle");
  expect((await figures(/^self/))[0]).toBe("30");
  await expect(panel.getByRole("listitem").filter({ hasText: "serve" })).toHaveText(/^serve100\s%$/);
  await expect(panel.getByRole("listitem").filter({ hasText: /^read/ })).toHaveText(/^read lib\.so25\.0\s%$/);
  await page.getByTestId("flamegraph").focus();
  await page.keyboard.press("c");
  await expect(page.getByTestId("selected-frame")).toHaveText("copied handle");
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("handle");
});

test("colours by module name the largest modules", async ({ page, request }) => {
  const query = await stored(request, "modules", [
    { frames: [prog("main"), lib("read")], samples: 30 },
    { frames: [prog("main")], samples: 10 },
  ]);
  await page.goto(at(WINDOW, query));
  await drawn(page);
  await expect(page.getByTestId("colour")).toHaveValue("");
  const byModule = [...(await pixels(page, "flamegraph")).keys()];
  await page.getByTestId("fold-key").click();
  await expect(page.getByRole("list", { name: "Colours" }).getByRole("listitem")).toHaveText(["lib.so", "prog"]);
  await page.getByTestId("colour").selectOption("kind");
  await expect.poll(async () => [...(await pixels(page, "flamegraph")).keys()]).not.toEqual(byModule);
  await page.reload();
  await expect(page.getByTestId("colour")).toHaveValue("kind");
});

test("the root stands on top or at the bottom", async ({ page, request }) => {
  const query = await stored(request, "flame", [{ frames: [prog("main"), prog("leaf")], samples: 10 }]);
  await page.goto(at(WINDOW, query));
  await drawn(page);
  const graph = page.getByTestId("flamegraph");
  await pointAt(graph, { x: 200, y: 19 * 2 + 9 }, "leaf");
  await page.getByRole("button", { name: "Icicle" }).click();
  await expect.poll(() => parameter(page, "layout")).toBe("flame");
  const height = await graph.evaluate((canvas) => canvas.clientHeight);
  await pointAt(graph, { x: 200, y: height - 9 }, "everything in this window");
  await pointAt(graph, { x: 200, y: height - 19 * 2 - 9 }, "leaf");
});

test("to turn the graph over is one picture of it", async ({ page, request }) => {
  const deep = [...Array(80).keys()].map((i) => prog(`level${i}`));
  const query = await stored(request, "turned", [{ frames: deep, samples: 10 }]);
  // Each picture begins with the ground, over all of the canvas.
  await page.addInitScript(() => {
    const counts = { pictures: 0 };
    Object.assign(window, { counts });
    const fill = CanvasRenderingContext2D.prototype.fillRect;
    CanvasRenderingContext2D.prototype.fillRect = function (x, y, width, height) {
      const { dataset, width: whole, height: high } = this.canvas as HTMLCanvasElement;
      const isGround = x === 0 && y === 0 && width >= whole && height >= high;
      if (dataset.testid === "flamegraph" && isGround) counts.pictures++;
      return fill.call(this, x, y, width, height);
    };
  });
  await page.goto(at(WINDOW, query));
  await drawn(page);
  const counts = () => page.evaluate(() => (window as unknown as { counts: { pictures: number } }).counts.pictures);
  expect(await counts()).toBeGreaterThan(0);
  await page.getByRole("button", { name: "Icicle", exact: true }).hover();
  await expect(page.getByTestId("tooltip")).toHaveCount(0);
  for (const name of ["Icicle", "Flame"]) {
    const before = await counts();
    await page.getByRole("button", { name, exact: true }).click();
    await expect(page.getByRole("button", { name, exact: true })).toHaveCount(0);
    // The browser tells of what was scrolled with the next picture.
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100)))),
    );
    expect((await counts()) - before, name).toBe(1);
  }
});

test("a flame stands on its root, also where its box becomes lower or higher", async ({ page, request }) => {
  const deep = [...Array(80).keys()].map((i) => prog(`level${i}`));
  const query = await stored(request, "stands", [{ frames: deep, samples: 10 }]);
  await page.goto(at(WINDOW, { ...query, layout: "flame", pane: "graph" }));
  await drawn(page);
  const gap = () =>
    page.locator(".flame-scroll").evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
  await expect.poll(gap).toBeLessThan(1);
  const height = () => page.locator(".flame-scroll").evaluate((box) => box.clientHeight);
  const tall = await height();
  // As it becomes lower when the lists above it come.
  for (const viewport of [600, 780, 720]) {
    await page.setViewportSize({ width: 1280, height: viewport });
    await page
      .locator(".flame-scroll")
      .evaluate((box, px) => Object.assign(box.style, { maxHeight: `${px}px` }), viewport / 4);
    await expect.poll(height).toBe(viewport / 4);
    await expect.poll(gap).toBeLessThan(1);
  }
  // The browser tells of an earlier scroll when the box has its new height already, and before the page knows of it.
  await page.locator(".flame-scroll").evaluate((box) => {
    Object.assign(box.style, { maxHeight: "160px" });
    box.dispatchEvent(new Event("scroll"));
  });
  await expect.poll(height).toBe(160);
  await expect.poll(gap).toBeLessThan(1);
  expect(tall).toBeGreaterThan(195);
  // Who has scrolled stays where they are.
  await page.locator(".flame-scroll").evaluate((box) => box.scrollBy(0, -200));
  await expect.poll(gap).toBe(200);
  await page.locator(".flame-scroll").evaluate((box) => Object.assign(box.style, { maxHeight: "120px" }));
  await expect.poll(height).toBe(120);
  await expect.poll(gap).toBe(200);
  // Also who scrolls in the frame in which the height changes, of which the page is told later.
  for (const [maxHeight, by, left] of [
    ["150px", -100, 300],
    ["110px", 50, 250],
  ] as const) {
    await page.locator(".flame-scroll").evaluate(
      (box, change) => {
        box.scrollBy(0, change.by);
        Object.assign(box.style, { maxHeight: change.maxHeight });
      },
      { by, maxHeight },
    );
    await expect.poll(height).toBe(Number.parseInt(maxHeight, 10));
    await expect.poll(gap).toBe(left);
  }
});

test("on a phone the table shows the ends of names, which tell them apart", async ({ page, request }) => {
  const names = ["in", "out"].map((end) => `__copy_from_one_place_to_another_${end}`);
  const query = await stored(
    request,
    "ends",
    names.map((name) => ({ frames: [prog("main"), lib(name)], samples: 10 })),
  );
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(at(WINDOW, query));
  await drawn(page);
  await page.getByRole("tab", { name: "Functions" }).click();
  const table = page.getByRole("grid", { name: "Functions" });
  for (const end of ["_another_in", "_another_out"]) {
    const name = table.locator(".vtable-row bdi").filter({ hasText: end });
    await expect(name).toHaveText(/^…/);
    // No part of it is hidden behind the figures.
    const cell = await name.locator("xpath=ancestor::*[@role='gridcell']").boundingBox();
    const text = await name.boundingBox();
    expect((text?.x ?? 0) + (text?.width ?? 0)).toBeLessThanOrEqual((cell?.x ?? 0) + (cell?.width ?? 0));
  }
});

test("the history of a frame is its own, and not that of its namesakes; at its place it is that place's", async ({
  page,
  request,
}) => {
  const main = (program: string): Frame => ({ name: "main", module: `/opt/bin/${program}` });
  const query = await stored(request, "namesakes", [
    { frames: [main("a"), lib("copy")], samples: 30 },
    { frames: [main("b"), lib("copy")], samples: 70 },
  ]);
  await page.goto(at(WINDOW, query));
  const box = await drawn(page);
  const graph = page.getByTestId("flamegraph");
  const since = page.getByTestId("frame-since");
  // Thirty samples of fifty milliseconds within one second.
  await graph.click({ position: { x: box.width * 0.1, y: 19 + 9 } });
  await expect(since).toContainText("at most 1.50 cores");
  await page.getByTestId("reset-zoom").click();
  await graph.click({ position: { x: box.width * 0.1, y: 19 * 2 + 9 } });
  await expect(panelOf(page).locator(".frame-name")).toHaveText("copy");
  await expect(since).toContainText("at most 5.00 cores");
  await panelOf(page).getByRole("button", { name: "this place" }).click();
  await expect(since).toContainText("at most 1.50 cores");
  await expect.poll(() => parameter(page, "history")).toBe("place");
});

test("the menu of a frame stands beside it, and moves no frame", async ({ page, request }) => {
  const query = await stored(request, "menu", [
    { frames: [prog("main"), prog("serve"), lib("parse")], samples: 40 },
    { frames: [prog("main"), prog("walk")], samples: 60 },
  ]);
  await page.goto(at(WINDOW, query));
  const before = await drawn(page);
  const graph = page.getByTestId("flamegraph");
  const place = { x: before.width * 0.2, y: 19 * 2 + 9 };
  for (let i = 0; i < 2; i++) {
    await graph.click({ position: place, button: "right" });
    const menu = page.getByRole("menu", { name: "Frame serve" });
    await expect(menu).toBeVisible();
    expect(await placeOf(graph)).toEqual(before);
    const there = await placeOf(menu);
    const row = { top: before.y + 19 * 2, bottom: before.y + 19 * 3 };
    expect(Math.min(Math.abs(there.y - row.bottom), Math.abs(there.y + there.height - row.top))).toBeLessThan(8);
    expect(Math.abs(there.x - (before.x + place.x))).toBeLessThan(20);
    await page.keyboard.press("Escape");
    await expect(menu).toBeHidden();
    await expect(graph).toBeFocused();
  }
});
