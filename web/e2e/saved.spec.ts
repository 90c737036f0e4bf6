/** Views that are kept: the last addresses, names on the real server, conflicts; and links to sources. */
import type { APIRequestContext, Page } from "@playwright/test";
import { serious } from "./axe.ts";
import { drawn, stored, WINDOW } from "./known.ts";
import { at, expect, parameter, test } from "./stack.ts";

const NAME = `walks ${process.pid}`;

async function openSaved(page: Page) {
  await page.getByRole("button", { name: "Saved views" }).click();
  const dialog = page.getByRole("dialog", { name: "Saved views" });
  await expect(dialog).toBeVisible();
  return dialog;
}

async function remove(request: APIRequestContext, name: string): Promise<void> {
  await request.delete(`/api/v1/views/${encodeURIComponent(name)}`);
}

test("a view gets a name, is found in the palette by everyone, opens as it was, and goes", async ({
  page,
  request,
}) => {
  await remove(request, NAME);
  await page.goto("/?view=nodes&state=silent&tz=utc");
  const dialog = await openSaved(page);
  await dialog.getByTestId("view-name").fill(NAME);
  await page.keyboard.press("Enter");
  await expect(dialog.getByTestId("saved-told")).toContainText("Saved");
  const row = dialog.getByTestId("saved-views").getByRole("listitem").filter({ hasText: NAME });
  await expect(row).toContainText("Nodes");
  expect(await serious(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.goto("/?view=nodes");
  await page.keyboard.press("Control+k");
  await page.getByTestId("palette").fill(NAME);
  await expect(page.getByRole("dialog", { name: "Go to" }).getByRole("option").first()).toContainText(NAME);
  await page.keyboard.press("Enter");
  await expect.poll(() => parameter(page, "state")).toBe("silent");
  expect(parameter(page, "tz")).toBe("utc");
  const again = await openSaved(page);
  await again.getByRole("button", { name: `Remove ${NAME}` }).click();
  await expect(again.getByTestId("saved-views").getByText(NAME)).toHaveCount(0);
});

test.describe("a conflict", () => {
  // What is refused the browser tells as an error of its own.
  test.use({ allowErrors: [/412/] });

  test("is told with what differs, and the person chooses", async ({ page, request }) => {
    await remove(request, NAME);
    await remove(request, `${NAME} 2`);
    const put = (address: string, tag = "") =>
      request.put(`/api/v1/views/${encodeURIComponent(NAME)}`, {
        data: { address },
        headers: tag === "" ? {} : { "if-match": tag },
      });
    const first = await put("/?view=nodes&state=live");
    expect(first.status()).toBe(201);
    // The name is taken: nothing is lost, and both are shown.
    await page.goto("/?view=nodes&state=silent");
    const dialog = await openSaved(page);
    await dialog.getByTestId("view-name").fill(NAME);
    await dialog.getByRole("button", { name: "Save this view" }).click();
    const conflict = dialog.getByTestId("conflict");
    await expect(conflict).toContainText(`There is another “${NAME}”`);
    const differs = conflict.getByRole("row").filter({ hasText: "state" }).getByRole("cell");
    await expect(differs).toHaveText(["live", "silent"]);
    await conflict.getByRole("button", { name: "Keep both" }).click();
    await expect(
      dialog.getByTestId("saved-views").getByText(`${NAME.replace(/ \d+$/, "")} 2`, { exact: true }),
    ).toHaveCount(1);
    // Somebody else changes it after this dialog looked.
    const { tag } = (await (await request.get(`/api/v1/views/${encodeURIComponent(NAME)}`)).json()) as { tag: string };
    expect((await put("/?view=nodes&trouble=lost", tag)).status()).toBe(200);
    await dialog.getByRole("button", { name: `Replace ${NAME} by this view` }).click();
    await expect(conflict.getByRole("row").filter({ hasText: "trouble" }).getByRole("cell").first()).toHaveText("lost");
    await conflict.getByRole("button", { name: "Replace it by this view" }).click();
    await expect(conflict).toHaveCount(0);
    const { address } = (await (await request.get(`/api/v1/views/${encodeURIComponent(NAME)}`)).json()) as {
      address: string;
    };
    expect(address).toBe("/?view=nodes&state=silent");
    await remove(request, NAME);
    await remove(request, `${NAME.replace(/ \d+$/, "")} 2`);
  });
});

test("the last addresses are kept in the browser, each once, and can be cleared", async ({ page }) => {
  await page.goto("/?view=nodes&find=aaa");
  const kept = () => page.evaluate(() => localStorage.getItem("stakeout.recent") ?? "");
  await expect.poll(kept).toContain("find=aaa");
  await page.getByTestId("find-agents").fill("bbb");
  await expect.poll(kept).toContain("find=bbb");
  const dialog = await openSaved(page);
  const list = dialog.getByTestId("recent-views").getByRole("listitem");
  await expect(list.nth(0)).toContainText("bbb");
  await expect(list.nth(1)).toContainText("aaa");
  await list.nth(1).getByRole("link").click();
  await expect.poll(() => parameter(page, "find")).toBe("aaa");
  const again = await openSaved(page);
  await again.getByRole("button", { name: "Clear" }).click();
  await expect(again.getByTestId("recent-views").getByRole("listitem")).toHaveCount(0);
});

test("an address of another version opens with what is understood, and says what is not", async ({ page }) => {
  await page.goto("/?view=nodes&state=silent&trouble=bewitched&shape=round&theme=dark");
  const said = page.getByTestId("said");
  await expect(said).toContainText("trouble=bewitched, shape=round");
  await expect(said).not.toContainText("silent");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await expect(page.getByTestId("agent-state")).toHaveValue("silent");
  await said.getByRole("button", { name: "Close" }).click();
  await expect(said).toHaveCount(0);
});

test("sources are linked by a template, hostile file names stay parts of the path", async ({ page, request }) => {
  const evil = '../../../evil/"><script>.go?x#y';
  const frames = [
    { name: "main", module: "/opt/bin/linked", file: "cmd/main.go", line: 7 },
    { name: "walk", module: "/opt/bin/linked", file: evil, line: 42 },
  ];
  const selected = await stored(request, "linked", [{ frames, samples: 40 }]);
  await page.goto(at(WINDOW, { ...selected, frame: "main" }));
  await drawn(page);
  const panel = page.getByTestId("frame-panel");
  await panel.getByRole("button", { name: "Source links" }).click();
  const form = page.getByTestId("source-templates");
  await form.getByLabel("Module").fill("linked");
  await form.getByLabel("Address").fill("javascript:alert('{file}')");
  await expect(form.getByText("This is no template")).toBeVisible();
  await expect(form.getByRole("button", { name: "Keep" })).toBeDisabled();
  await form.getByLabel("Address").fill("https://code.example/{commit}/{file}#L{line}");
  await form.getByLabel("{commit} is").fill("abc123");
  expect(await serious(page)).toEqual([]);
  await form.getByRole("button", { name: "Keep" }).click();
  const link = panel.getByRole("link", { name: "Open source" });
  await expect(link).toHaveAttribute("href", "https://code.example/abc123/cmd/main.go#L7");
  await expect(link).toHaveAttribute("rel", "noopener noreferrer");
  await page.goto(at(WINDOW, { ...selected, frame: "main;walk" }));
  await drawn(page);
  await expect(link).toHaveAttribute(
    "href",
    /^https:\/\/code\.example\/abc123\/evil\/%22%3E%3Cscript%3E.go%3Fx%23y#L42$/,
  );
  // The menu has it too.
  await page.getByTestId("flamegraph").focus();
  await page.keyboard.press("Shift+F10");
  await expect(page.getByRole("menuitem", { name: "Open source" })).toBeVisible();
});
