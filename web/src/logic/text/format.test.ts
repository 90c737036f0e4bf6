import { describe, expect, it } from "vitest";
import { factor } from "../compare/changeText.ts";
import { ago, axisNumber, brief, bytes, count, digits, duration, percent, plural } from "./format.ts";

const plain = (text: string) => text.replace(/\u202f/g, " ");

describe("numbers", () => {
  it.each([
    [count(1234567), "1 234 567"],
    [count(-12), "−12"],
    [brief(999), "999"],
    [brief(12_345), "12.3 k"],
    [brief(4_560_000), "4.56 M"],
    [digits(0), "0"],
    [digits(0.0001), "<0.001"],
    [digits(0.0553), "0.055"],
    [digits(12.34), "12.3"],
    [digits(-3.456), "−3.46"],
    [digits(0.99951), "1.00"],
    [digits(-9.996), "−10.0"],
    [digits(99.96), "100"],
    [duration(0.9997), "1.00 s"],
    [axisNumber(0.30000000000000004), "0.3"],
    [axisNumber(1500), "1500"],
    [percent(0), "0 %"],
    [percent(0.00001), "<0.01 %"],
    [percent(0.3), "30.0 %"],
    [percent(1), "100 %"],
    [percent(0.0721), "7.21 %"],
    [duration(0.05), "50.0 ms"],
    [duration(61), "1 min 1 s"],
    [duration(3600), "1 h"],
    [duration(93_600), "1 d 2 h"],
    [bytes(512), "512 B"],
    [bytes(48 * 2 ** 20), "48.0 MiB"],
    [factor(2, 7), "3.50×"],
    [factor(0, 7), ""],
    [factor(1000, 5), "0.01×"],
    [factor(1000, 4), "<0.01×"],
    [factor(2, 1998), "999×"],
    [factor(2, 1999.5), ">999×"],
    [ago(0, 500), "just now"],
    [ago(0, 75_000), "1 min 15 s ago"],
    [plural(1, "gap"), "1 gap"],
    [plural(2000, "gap"), "2 000 gaps"],
  ])("%s", (text, wanted) => expect(plain(text)).toBe(wanted));
});
