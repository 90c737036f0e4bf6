/**
 * Numbers, sizes and times as text. Everything a person reads goes through here, so that it reads the same everywhere.
 */

const MINUS = "−";
/** Narrow and unbreakable: a number and its unit stay together. */
const THIN = "\u202f";

/** `1 234 567`, whole. */
export function count(value: number): string {
  const digits = String(Math.abs(Math.round(value)));
  const grouped = digits.replace(/\B(?=(\d{3})+$)/g, THIN);
  return value < 0 ? MINUS + grouped : grouped;
}

/** Three significant digits with a unit prefix: `12.3 k`, `4.56 M`. */
export function brief(value: number): string {
  const magnitude = Math.abs(value);
  for (const [limit, suffix] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ] as const) {
    if (magnitude >= limit) return `${digits(value / (limit === 1e4 ? 1e3 : limit))}${THIN}${suffix}`;
  }
  return Number.isInteger(value) ? count(value) : digits(value);
}

/** About three significant digits, without an exponent. */
export function digits(value: number): string {
  const magnitude = Math.abs(value);
  // As it will stand there: what rounds up to 1, 10 or 100 has as many digits as those.
  const places = magnitude >= 99.95 || magnitude === 0 ? 0 : magnitude >= 9.995 ? 1 : magnitude >= 0.9995 ? 2 : 3;
  if (magnitude > 0 && magnitude < 0.0005) return `${value < 0 ? MINUS : ""}<0.001`;
  return value.toFixed(places).replace("-", MINUS);
}

export function cores(value: number): string {
  return digits(value);
}

/** A round number on an axis, without needless zeros. */
export function axisNumber(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** What part of a whole something is; of nothing, none. */
export function shareOf(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}

/** A share of 1 as per cent. */
export function percent(share: number): string {
  const value = share * 100;
  const magnitude = Math.abs(value);
  if (magnitude > 0 && magnitude < 0.005) return `${value < 0 ? MINUS : ""}<0.01${THIN}%`;
  const places = magnitude === 0 || magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
  return `${value.toFixed(places).replace("-", MINUS)}${THIN}%`;
}

/** A level of confidence as it is usually written: `95 %`, `99.9 %`. */
export function levelText(level: number): string {
  return `${Number((level * 100).toFixed(1))}${THIN}%`;
}

export function signed(text: string, value: number): string {
  return value > 0 ? `+${text}` : text;
}

/** Seconds as `45 ms`, `12.3 s`, `4 min 10 s`, `3 h 5 min`, `2 d 4 h`. */
export function duration(seconds: number): string {
  if (seconds < 0) return MINUS + duration(-seconds);
  if (seconds === 0) return `0${THIN}s`;
  if (seconds < 0.9995) return `${digits(seconds * 1000)}${THIN}ms`;
  if (seconds < 60) return `${digits(seconds)}${THIN}s`;
  const whole = Math.round(seconds);
  for (const [unit, name, below, small] of [
    [86_400, "d", 3600, "h"],
    [3600, "h", 60, "min"],
    [60, "min", 1, "s"],
  ] as const) {
    if (whole < unit) continue;
    const rest = Math.floor((whole % unit) / below);
    return `${Math.floor(whole / unit)}${THIN}${name}${rest > 0 ? ` ${rest}${THIN}${small}` : ""}`;
  }
  return `${whole}${THIN}s`;
}

export function bytes(value: number): string {
  for (const [unit, name] of [
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ] as const) {
    if (value >= unit) return `${digits(value / unit)}${THIN}${name}`;
  }
  return `${count(value)}${THIN}B`;
}

/** How long ago a moment was, as a person says it. */
export function ago(then: number, now: number): string {
  const seconds = Math.max(0, (now - then) / 1000);
  return seconds < 1.5 ? "just now" : `${duration(Math.round(seconds))} ago`;
}

/** `1 frame`, `2 frames`. */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}
