/** Languages are told apart: a colour and a word each, of what is in the picture; a frame says where its source is. */
import { stored, WINDOW } from "./known.ts";
import { at, colours, expect, pixels, test } from "./stack.ts";

const MAIN = { name: "main", module: "/usr/bin/app" };
const STACKS = [
  { frames: [MAIN, { name: "com.shop.Cart.sum", module: "shop.jar", kind: "jvm", file: "Cart.java", line: 42 }] },
  { frames: [MAIN, { name: "shop.views.render", module: "shop", kind: "cpython", file: "shop/views.py", line: 117 }] },
  { frames: [MAIN, { name: "handler", module: "server.js", kind: "v8js", file: "server.js", line: 9 }] },
  { frames: [MAIN, { name: "Shop::Cart#sum", module: "cart.rb", kind: "ruby", file: "cart.rb", line: 7 }] },
  { frames: [MAIN, { name: "Cart->sum", module: "cart.php", kind: "php", file: "cart.php", line: 3 }] },
] as const;

test("a legend of what is there, and language, file and line in the panel", async ({ page, request }) => {
  const { query = "" } = await stored(
    request,
    "languages",
    STACKS.map(({ frames }) => ({ frames: [...frames], samples: 20 })),
  );
  await page.goto(at(WINDOW, { query, colour: "kind", more: "key", group: "none" }));
  await expect.poll(() => colours(page)).toBeGreaterThan(5);
  const legend = page.getByRole("list", { name: "Colours" }).getByRole("listitem");
  await expect(legend).toHaveText(["native", "Java", "Python", "Node.js", "Ruby", "PHP"]);
  // Each language has a colour of its own in the graph: a fifth of the width each, and a row of them.
  const wide = [...(await pixels(page, "flamegraph"))].filter(([, count]) => count > 2_000);
  expect(wide.length).toBeGreaterThanOrEqual(7);

  for (const [name, words] of [
    ["shop.views.render", ["Python", "shop/views.py:117"]],
    ["com.shop.Cart.sum", ["Java", "Cart.java:42"]],
  ] as const) {
    await page.goto(at(WINDOW, { query, frame: name, group: "none" }));
    const panel = page.getByTestId("frame-panel");
    for (const word of words) await expect(panel).toContainText(word);
  }

  // A row of the table finds its frame, and whose time it is the server finds by the language.
  await page.goto(at(WINDOW, { query, tab: "functions", unit: "samples", group: "none" }));
  const row = page.getByRole("grid", { name: "Functions" }).locator(".vtable-row").filter({ hasText: "views.render" });
  await expect(row).toContainText("shop");
  await row.click();
  await page.getByRole("tab", { name: "Spent by" }).click();
  await expect(page.getByTestId("spent-of")).toContainText("All frames of shop.views.render");
  await expect(page.getByTestId("spent").locator(".spent-row").first()).toHaveAttribute("title", /20 of 20/);

  // Fewer in the window are fewer in the legend.
  const other = await stored(request, "one-language", [{ frames: [...STACKS[3].frames], samples: 20 }]);
  await page.goto(at(WINDOW, { ...other, colour: "kind", more: "key", group: "none" }));
  await expect(legend).toHaveText(["native", "Ruby"]);
});

test("a file that is called as others are has its folder, and no line twice", async ({ page, request }) => {
  const file = "/usr/lib/python3.11/json/__init__.py";
  const frame = { name: "dumps", module: file, kind: "cpython", file, line: 231 } as const;
  const { query = "" } = await stored(request, "folder", [
    { frames: [MAIN, frame], samples: 10 },
    { frames: [MAIN, { ...frame, module: "shop", name: "shop.pay", file: "shop/pay.py" }], samples: 5 },
  ]);
  await page.goto(at(WINDOW, { query, frame: "dumps", group: "none" }));
  const where = page.getByTestId("frame-panel").getByRole("listitem");
  await expect(page.getByTestId("frame-panel")).toContainText("Python json/__init__.py");
  await expect(where.filter({ hasText: `${file}:231` })).toHaveCount(1);
  await page.goto(at(WINDOW, { query, frame: "shop.pay", group: "none" }));
  await expect(page.getByTestId("frame-panel")).toContainText("Python shop");
  await expect(where.filter({ hasText: "shop/pay.py:231" })).toHaveCount(1);
  await expect(where.filter({ hasText: /^shop$/ })).toHaveCount(0);
});

test("whose time is of the search where no frame is selected, and says so", async ({ page, request }) => {
  const { query = "" } = await stored(request, "searched", [
    { frames: [MAIN, { name: "hash_all", module: "/usr/bin/app" }], samples: 30 },
    { frames: [MAIN, { name: "copy_all", module: "/usr/bin/app" }], samples: 10 },
  ]);
  await page.goto(at(WINDOW, { query, tab: "spent", unit: "samples" }));
  const spent = page.getByTestId("spent");
  await expect(spent).toContainText("All samples that are selected");
  await expect(spent.locator(".spent-row").first()).toHaveAttribute("title", /40 of 40/);
  await page.getByTestId("search").fill("hash");
  await expect(page.getByTestId("spent-of")).toContainText("What the search finds: samples with hash");
  await expect(spent.locator(".spent-row").first()).toHaveAttribute("title", /30 of 30/);
  await expect(page.getByTestId("spent-of").getByRole("button", { name: "Clear the search" })).toBeVisible();
  await page.goto(at(WINDOW, { query, tab: "spent", unit: "samples", match: "hash", frame: "copy_all" }));
  await expect(page.getByTestId("spent-of")).toContainText("All frames of copy_all, wherever they stand");
  await expect(page.getByTestId("spent-of")).toContainText("whatever the search finds");
});

test("what an address holds in vain is told once and stays in it", async ({ page }) => {
  await page.goto("/?shape=round&tab=party&column=7&theme=dark");
  const said = page.getByTestId("said");
  await expect(said).toContainText("Not understood in the address: shape=round, tab=party, column=7");
  await expect(said).not.toHaveClass(/bad/);
  await page.getByTestId("theme").click();
  await expect.poll(() => new URL(page.url()).searchParams.get("shape")).toBe("round");
  await said.getByRole("button", { name: "Close" }).click();
  await expect(said).toHaveCount(0);
});

test("a runtime's own frames are part of what they lead to, until they are asked for", async ({ page, request }) => {
  const python = "/usr/bin/python3.11";
  const { query = "" } = await stored(request, "runtime", [
    {
      frames: [
        { name: "__libc_start_main", module: "/usr/lib/libc.so.6" },
        { name: "pymain_run", module: python },
        { name: "shop.handle", module: "shop", kind: "cpython", file: "shop.py", line: 3 },
        { name: "method_vectorcall", module: python },
        { name: "shop.work", module: "shop", kind: "cpython", file: "shop.py", line: 9 },
        { name: "list_sort", module: python },
      ],
      samples: 20,
    },
  ]);
  await page.goto(at(WINDOW, { query, tab: "functions", unit: "samples", group: "none" }));
  const rows = page.getByRole("grid", { name: "Functions" }).locator(".vtable-row");
  const of = (name: string) => rows.filter({ hasText: name });
  await expect(of("shop.work")).toHaveCount(1);
  await expect(of("list_sort")).toHaveCount(1);
  await expect(of("method_vectorcall")).toHaveCount(0);
  await page.getByTestId("flamegraph").press("w");
  await expect(page).toHaveURL(/runtime_frames=show/);
  await expect(of("method_vectorcall")).toHaveCount(1);
  await expect(of("pymain_run")).toHaveCount(1);
  await page.getByTestId("flamegraph").press("w");
  await expect(page).not.toHaveURL(/runtime_frames/);
  await expect(of("method_vectorcall")).toHaveCount(0);
});
