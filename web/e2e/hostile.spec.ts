/** Names of everything that senders can name, chosen to mislead who reads them: what each view then shows. */
import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { drawn, TAKEN, WINDOW } from "./known.ts";
import { otlp } from "./otlp.ts";
import { at, colours, expect, pointAt, test } from "./stack.ts";

test.describe("names of everything that are not what they look like", () => {
  // The history of a function whose name and module have 10,000 characters is more than a request's head may have.
  test.use({ allowErrors: [/431/] });

  /** What must never be read or drawn as it came: controls, marks of direction, characters without width. */
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are looked for.
  const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/;
  const evil = (what: string) => `${what}\u202e\u2066\u200b\u200f\ufeff\u001b<img src="x" onerror="window.broken=1">`;
  const LONG = `ns::x\u200d${"x".repeat(9_998)}end`;

  interface Seen {
    drawn?: Set<string>;
    broken?: number;
  }

  /** Remembers what is drawn, as text. */
  async function watchCanvas(page: Page): Promise<void> {
    await page.addInitScript(() => {
      const all = new Set<string>();
      (window as Seen).drawn = all;
      const draw = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        all.add(text);
        return draw.call(this, text, ...rest);
      };
    });
  }

  /** Nothing of it in what is read or drawn, no element of it, no page that is wider than the window. */
  async function isPlain(page: Page, where: string): Promise<void> {
    const wrong = await page.evaluate((source) => {
      const unseen = new RegExp(source);
      const found: string[] = [];
      const look = (text: string, at: string) => {
        if (unseen.test(text)) found.push(`${at}: ${JSON.stringify(text.slice(0, 200))}`);
        if (text.length > 10_000) found.push(`${at} has ${text.length} characters`);
      };
      const texts = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
      for (let node = texts.nextNode(); node !== null; node = texts.nextNode())
        look(node.nodeValue ?? "", `text of ${node.parentElement?.outerHTML.slice(0, 60)}`);
      for (const name of ["title", "aria-label", "aria-valuetext", "placeholder"])
        for (const element of document.querySelectorAll(`[${name}]`))
          look(element.getAttribute(name) ?? "", `${name} of ${element.className}`);
      for (const text of (window as Seen).drawn ?? []) look(text, "canvas");
      if (document.querySelector('img[src="x"]') !== null) found.push("an element of a name");
      if ((window as Seen).broken !== undefined) found.push("a script of a name");
      return found;
    }, UNSEEN.source);
    expect(wrong, where).toEqual([]);
    expect(
      await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
      where,
    ).toBe(0);
  }

  test("are told by what they are in every view, and cut where they are long", async ({ page, request }) => {
    test.setTimeout(480_000);
    const end = `-${process.pid}-${TAKEN}`;
    const service = evil(`service${end}`);
    const version = evil("version");
    const main = { name: evil("main"), module: evil("/opt/module"), file: evil("/src/file.go"), line: 7 };
    const long = { name: LONG, module: `/opt/${"m".repeat(10_000)}`, file: `/src/${"f".repeat(10_000)}`, line: 1 };
    const labels = (one: number) => ({
      "process.executable.name": evil(`process${one}`),
      "thread.name": evil(`thread${one}`),
      "k8s.pod.name": evil(`pod${one}`),
      "process.pid": 1000 + one,
      "thread.id": 1000 + one,
      "cpu.logical_number": 0,
    });
    const send = async (at: number, samples: number) => {
      const answer = await request.post("/v1development/profiles", {
        headers: { "content-type": "application/x-protobuf" },
        data: Buffer.from(
          otlp({
            ...{ service, version, at, node: evil("host"), of: { "acme.team": evil("team") } },
            frames: [main, long, { name: evil("leaf"), module: evil("/opt/module") }],
            stacks: [
              { frames: [2, 1, 0], samples, of: labels(1) },
              { frames: [2, 0], samples: 40, of: labels(2) },
            ],
          }),
        ),
      });
      expect(answer.status(), await answer.text()).toBe(200);
    };
    const waits = await request.post("/v1development/profiles", {
      headers: { "content-type": "application/x-protobuf" },
      data: Buffer.from(
        otlp({
          ...{ service, version, at: TAKEN, node: evil("host"), type: "off_cpu" },
          frames: [main, { name: evil("leaf"), module: evil("/opt/module") }],
          // Two threads, each for two seconds: a bar that has room for words.
          stacks: [1, 2].map((one) => ({
            frames: [1, 0],
            samples: 1,
            times: [TAKEN + 5_000],
            of: { ...labels(one), "wait.length": 2_000_000_000 },
          })),
        }),
      ),
    });
    expect(waits.status(), await waits.text()).toBe(200);
    await send(TAKEN, 400);
    await send(TAKEN - 30_000, 40);
    const marked = await request.post("/api/v1/markers", {
      // The server refuses controls in markers.
      data: { time: TAKEN + 9_000, title: evil("marker").replace("\u001b", ""), text: "a\u202eb", labels: {} },
    });
    expect(marked.status(), await marked.text()).toBe(200);
    const view = `view${end}`;
    const kept = await request.put(`/api/v1/views/${encodeURIComponent(`${view}\u202e`)}`, {
      data: { address: `/?query=${encodeURIComponent(`{service="${evil("x").replaceAll('"', '\\"')}"}`)}` },
    });
    expect([201, 412], await kept.text()).toContain(kept.status());

    await watchCanvas(page);
    const query = `{service=${JSON.stringify(service).replaceAll("\\u001b", "\u001b")}}`;
    const all = { query: `{service=~"service${end}.*"}`, group: "service,process" };
    const look = async (where: string) => {
      await page.waitForLoadState("networkidle");
      await isPlain(page, where);
    };
    const tabs = async (where: string) => {
      for (const tab of await page.getByRole("tab").all()) {
        await tab.click();
        await look(`${where}, ${await tab.textContent()}`);
      }
    };

    // Explore: rows, layers, lists, the panel of each frame, its menu and tooltip.
    await page.goto(at(WINDOW, { ...all, by: "process", more: "data,filter,chart,graph,key" }));
    await drawn(page);
    await look("explore");
    await tabs("explore");
    const graph = page.getByTestId("flamegraph");
    await pointAt(graph, { x: 60, y: 3 * 19 + 9 }, "main⟨U+202E⟩");
    await look("tooltip");
    await graph.click({ position: { x: 60, y: 4 * 19 + 9 } });
    const name = page.getByTestId("frame-panel").locator(".frame-name");
    await expect(name).toContainText(/^ns::x⟨U\+200D⟩x+… \(10\D007 characters\)$/);
    await look("panel");
    await graph.press("Shift+F10");
    await expect(page.getByRole("menu", { name: /^Frame / })).toBeVisible();
    await look("menu");
    await page.keyboard.press("Escape");
    await graph.press("h");
    await expect(page.getByTestId("chips")).toContainText("without");
    await look("chips");
    await page.goBack();
    await page.getByTestId("search").fill("main");
    await look("search");
    await page.getByRole("button", { name: "Tree", exact: true }).click();
    await expect(page.getByTestId("frame-tree")).toContainText("leaf⟨U+202E⟩");
    await look("tree");
    for (const rank of ["service", "process", "thread", "pod"]) {
      await page.goto(at(WINDOW, { ...all, by: rank, rank, pane: "table" }));
      await expect(page.getByRole("grid", { name: `Ranked by ${rank}` })).toContainText("⟨U+202E⟩");
      await look(`ranked by ${rank}`);
    }

    // What is selected: crumbs, their siblings, what completes a selector, the palette, views that were kept.
    await page.goto(at(WINDOW, { query }));
    await drawn(page);
    await look("selected");
    await page.locator(".crumb-menu").first().getByRole("button").first().click();
    await expect(page.locator(".siblings")).toContainText("service");
    await look("siblings");
    await page.keyboard.press("Escape");
    const box = page.getByTestId("query");
    for (const [label, begins] of [
      ["service", `service${end}`],
      ["process", "process1"],
      ["pod", "pod1"],
    ]) {
      await box.fill("");
      await box.pressSequentially(`{${label}="${begins}`);
      await expect(page.getByRole("listbox", { name: "Suggestions" })).toContainText("⟨U+202E⟩");
      await look(`completion of ${label}`);
    }
    await box.press("Escape");
    await box.press("Escape");
    await page.keyboard.press("Control+k");
    for (const word of [`service${end}`, view]) {
      await page.getByTestId("palette").fill(word);
      await expect(page.getByRole("dialog", { name: "Go to" }).getByRole("option").first()).toContainText("⟨U+202E⟩");
      await look(`palette, ${word}`);
    }
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Saved views" }).click();
    await expect(page.getByTestId("saved-views")).toContainText(`${view}⟨U+202E⟩`);
    await look("saved views");
    await page.keyboard.press("Escape");
    await page.getByTestId("markers").getByRole("button").first().click();
    await expect(page.getByTestId("marker-panel")).toContainText("marker⟨U+202E⟩");
    await look("marker");

    // A comparison with what was before, the heatmap, the samples in order, the agents.
    const base = { baseFrom: String(WINDOW.from - 30_000), baseUntil: String(WINDOW.until - 30_000) };
    await page.goto(at(WINDOW, { view: "compare", ...all, ...base, measure: "self", more: "sides,chart" }));
    await drawn(page);
    await look("compare");
    await tabs("compare");
    await page.goto(at(WINDOW, { view: "heatmap", query }));
    await expect.poll(() => colours(page, "heatmap")).toBeGreaterThan(2);
    await look("heatmap");
    await page.goto(at(WINDOW, { view: "timeline", query: `{service=~"service${end}.*",cpu="0"}` }));
    await expect.poll(() => colours(page, "timeline")).toBeGreaterThan(2);
    await expect(page.getByRole("grid")).toContainText("⟨U+202E⟩");
    // Names of threads and functions stand on the bars of their waits, as what they are.
    await expect.poll(() => colours(page, "waits")).toBeGreaterThan(2);
    await look("timeline");
    const written = () => page.evaluate(() => [...((window as Seen).drawn ?? [])]);
    expect((await written()).filter((text) => /^thread[12]⟨U\+202E⟩/.test(text)).length).toBeGreaterThan(0);
    await page.goto(at(WINDOW, { view: "threads", by: "process", query: all.query }));
    await expect(page.getByRole("grid", { name: /^Threads' time by process/ })).toContainText("⟨U+202E⟩");
    await look("threads' time");
    await page.goto(at(WINDOW, { ...all, type: "off_cpu", woken: "1" }));
    await expect(page.getByTestId("woken")).toBeVisible();
    await expect.poll(() => colours(page)).toBeGreaterThan(1);
    await look("woken by");
    await page.goto("/?view=nodes&find=host");
    await expect(page.getByRole("grid")).toContainText("host⟨U+202E⟩");
    await look("nodes");
    await request.delete(`/api/v1/views/${encodeURIComponent(`${view}\u202e`)}`);

    // What the page makes itself.
    await page.goto(at(WINDOW, all));
    await drawn(page);
    for (const [kind, begins] of [
      ["HTML file", "<!doctype html>"],
      ["SVG", "<?xml"],
    ] as const) {
      await page.getByRole("button", { name: /^Download/ }).click();
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page
          .locator(".menu-list")
          .getByRole("button", { name: new RegExp(`^${kind}`) })
          .click(),
      ]);
      const text = readFileSync(await download.path(), "utf8");
      expect(text.toLowerCase().startsWith(begins)).toBe(true);
      expect(text).toContain("main⟨U+202E⟩");
      expect(UNSEEN.exec(text), kind).toBeNull();
      expect(text).not.toContain('<img src="x"');
    }
    await isPlain(page, "saved as files");
  });
});
