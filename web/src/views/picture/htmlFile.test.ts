import { describe, expect, it } from "vitest";
import { htmlFile } from "./htmlFile.ts";

const NOTHING = { title: "Stakeout, nodes", facts: [], images: [], graph: null, table: null, dark: false };

describe("a file of HTML", () => {
  it("holds a table as text, whatever others wrote into it, and no script", () => {
    const hostile = "</td><script>alert(1)</script>\u202e";
    const html = htmlFile({
      ...NOTHING,
      table: { title: "1 of 2 agents", head: ["Node", "State"], rows: [[hostile, "live"]], all: 1 },
    });
    expect(html).toContain("<h2>1 of 2 agents</h2>");
    expect(html).toContain("<th><bdi>Node</bdi></th><th><bdi>State</bdi></th>");
    expect(html).toContain(
      "<td><bdi>&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩</bdi></td><td><bdi>live</bdi></td>",
    );
    expect(html).not.toContain("<script");
  });

  it("has the theme of the page, with a graph and without one", () => {
    expect(htmlFile(NOTHING)).toContain('<html lang="en">');
    expect(htmlFile({ ...NOTHING, dark: true })).toContain('<html lang="en" class="dark">');
  });
});
