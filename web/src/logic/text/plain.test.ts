import { describe, expect, it } from "vitest";
import { plainLine, plainText } from "./plain.ts";

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
});
