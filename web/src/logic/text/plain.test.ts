import { describe, expect, it } from "vitest";
import { isPlain, MOST_SHOWN, plainLine, plainText, shownText } from "./plain.ts";
import { wholeText } from "./whole.ts";

describe("text of others", () => {
  it("names what is not seen, and leaves what is", () => {
    expect(plainLine("shop 15 is out – größer 日本語 مرحبا 🚀", 100)).toBe("shop 15 is out – größer 日本語 مرحبا 🚀");
    expect(plainLine("a\u202egpj.exe", 100)).toBe("a⟨U+202E⟩gpj.exe");
    expect(plainLine("pass\u200bword\u2066x\ufeff\u0000", 100)).toBe("pass⟨U+200B⟩word⟨U+2066⟩x⟨U+FEFF⟩⟨U+0000⟩");
    expect(plainLine("\u{e0041}", 100)).toBe("⟨U+E0041⟩");
    expect(plainLine("<img src=x onerror=alert(1)>", 100)).toBe("<img src=x onerror=alert(1)>");
  });

  it("keeps lines where they are wanted, and nowhere else", () => {
    expect(plainText("a\r\nb\tc", 100)).toBe("a\nb\tc");
    expect(plainLine("a\r\n\nb\tc", 100)).toBe("a b c");
  });

  it("is cut where it is long, between whole characters, and takes piles of marks down", () => {
    expect(plainLine("x".repeat(10_000), 20)).toBe(`${"x".repeat(20)}… (10\u202f000 characters)`);
    expect(plainLine("abc🚀", 4)).toBe("abc… (5 characters)");
    expect(plainLine(`z${"\u0301".repeat(500)}`, 1000)).toBe(`z${"\u0301".repeat(4)}`);
  });

  it("is left alone where it is what it looks like", () => {
    expect(shownText("a line\nand another <b>")).toBe("a line\nand another <b>");
    expect(isPlain("größer")).toBe(false);
    expect(shownText("größer, 0.5\u202fs … ▾")).toBe("größer, 0.5\u202fs … ▾");
    expect(shownText("a\u202eb\u007f\u009bc\u200e")).toBe("a⟨U+202E⟩b⟨U+007F⟩⟨U+009B⟩c⟨U+200E⟩");
    expect(shownText("x".repeat(MOST_SHOWN))).toHaveLength(MOST_SHOWN);
    expect(shownText("x".repeat(10_000))).toBe(`${"x".repeat(MOST_SHOWN)}… (10\u202f000 characters)`);
  });

  it("stands whole in pieces, which are each shown as they are", () => {
    const long = "ns::outer<int>".repeat(400);
    expect(wholeText(long).join("")).toBe(long);
    const emoji = `a${"🚀".repeat(2_000)}`;
    expect(wholeText(emoji).join("")).toBe(emoji);
    for (const piece of [...wholeText(long), ...wholeText(emoji)]) expect(shownText(piece)).toBe(piece);
    expect(wholeText("x".repeat(10_000)).join("")).toBe(`${"x".repeat(8_000)}… (10\u202f000 characters)`);
    expect(wholeText("x".repeat(9_500), 10_000).join("")).toBe("x".repeat(9_500));
    expect(wholeText("")).toEqual([]);
  });
});
