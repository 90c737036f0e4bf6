/**
 * Which windows tell two times, or two versions, apart. In: a chart by version, a moment, what bounds it. Out: equally
 * long windows on both sides, and why it is these.
 */
import type { SeriesAnswer } from "../../api/types.ts";
import { formatSelector, type LabelMatcher, parseSelector } from "../labels/selector.ts";
import { duration, plural } from "../text/format.ts";
import { compareText } from "../text/names.ts";
import { plainLine } from "../text/plain.ts";
import { lengthOf, type Pair, SHORTEST_MS, type Window } from "../time/windows.ts";

/** Where a version ran. */
export interface Run extends Window {
  version: string;
  samples: number;
  /** The mean moment of its time. */
  middle: number;
}

export interface VersionPair extends Pair {
  /** A is the older one. */
  versions: readonly [string, string];
  /** Both in one window: there is no telling how much of the machines each had, so that shares are compared. */
  isShared: boolean;
  /** What was chosen, and why. */
  said: string;
}

const NAME_ROOM = 60;

/** Each version with samples: from its first step to the end of its last one. */
export function runsOf({ times, until, series }: SeriesAnswer): Run[] {
  return series.flatMap(({ value, cores, samples }) => {
    const ran = cores.map((level, at) => ({ level: level ?? 0, at })).filter(({ level }) => level > 0);
    const [first, last] = [ran[0], ran.at(-1)];
    if (value === "" || first === undefined || last === undefined) return [];
    const weight = ran.reduce((sum, { level }) => sum + level, 0);
    const middle = ran.reduce((sum, { level, at }) => sum + level * (times[at] as number), 0) / weight;
    const from = times[first.at] as number;
    return [{ version: value, samples, from, until: times[last.at + 1] ?? until, middle }];
  });
}

/** The order of versions that began in the same step: `1.9` before `1.10`. */
function compareVersionNames(a: string, b: string): number {
  const parts = (text: string) => text.split(/(\d+)/);
  const [left, right] = [parts(a), parts(b)];
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const [one = "", other = ""] = [left[i], right[i]];
    const by = i % 2 === 1 ? Number(one) - Number(other) : compareText(one, other);
    if (by !== 0) return by;
  }
  return 0;
}

/**
 * The two versions with most samples, or those that are wanted, and equally long windows of both; a text that says why
 * not, where there are no two.
 */
export function versionPair(runs: readonly Run[], wanted: readonly string[], subject: string): VersionPair | string {
  const bySamples = runs.toSorted((a, b) => b.samples - a.samples);
  const chosen = [
    ...wanted.flatMap((version) => bySamples.filter((run) => run.version === version)),
    ...bySamples.filter((run) => !wanted.includes(run.version)),
  ].slice(0, 2);
  const named = (version: string) => plainLine(version, NAME_ROOM);
  if (chosen.length < 2) {
    const only = chosen[0];
    return only === undefined
      ? `Nothing of ${subject} has a version in this window: choose a longer one.`
      : `Only version ${named(only.version)} of ${subject} ran in this window: choose one in which two did.`;
  }
  const [a, b] = chosen.sort(
    (one, other) =>
      one.from - other.from || one.middle - other.middle || compareVersionNames(one.version, other.version),
  ) as [Run, Run];
  const pair = windowsOf(a, b);
  const which = wanted.length >= 2 ? "as chosen" : `of ${plural(runs.length, "version")} those with most samples`;
  const told = (run: Run) => `${named(run.version)} (${plural(run.samples, "sample")})`;
  const where = pair.isShared
    ? `both in the same ${duration(lengthOf(pair.base) / 1000)} in which both ran`
    : `${duration(lengthOf(pair.base) / 1000)} each, next to where the newer one took over`;
  return {
    base: pair.base,
    comparison: pair.comparison,
    versions: [a.version, b.version],
    isShared: pair.isShared,
    said: `${subject}: A is ${told(a)}, which ran first, B is ${told(b)}: ${which}; ${where}.`,
  };
}

/**
 * Where one follows the other, what lies beside the change on either side. Where both ran at once for most of the
 * shorter one's time, that time for both: then nothing but the version differs.
 */
function windowsOf(a: Run, b: Run): Pair & { isShared: boolean } {
  const shared = { from: Math.max(a.from, b.from), until: Math.min(a.until, b.until) };
  const shorter = Math.min(lengthOf(a), lengthOf(b));
  const [end, begin] = [Math.min(a.until, b.from), Math.max(b.from, a.until)];
  const length = Math.min(end - a.from, b.until - begin);
  if (lengthOf(shared) > shorter / 2 || length < SHORTEST_MS)
    return { base: shared, comparison: shared, isShared: true };
  return {
    base: { from: end - length, until: end },
    comparison: { from: begin, until: begin + length },
    isShared: false,
  };
}

/**
 * Equal windows before and behind a moment, within the range and not beyond the moments beside it: a window must not
 * hold another change. Null where either side is too short to tell anything.
 */
export function windowsAround(at: number, range: Window, beside: readonly number[], now: number): Pair | null {
  const lower = Math.max(range.from, ...beside.filter((moment) => moment < at));
  const upper = Math.min(range.until, now, ...beside.filter((moment) => moment > at));
  const length = Math.floor(Math.min(at - lower, upper - at));
  if (length < SHORTEST_MS) return null;
  return { base: { from: at - length, until: at }, comparison: { from: at, until: at + length } };
}

/** The server calls the label by the attribute that it is made of, where there is one. */
const isVersion = (label: string) => label === "version" || label.replaceAll('"', "") === "service.version";

/** The selector without what would leave one version. */
export function ofAllVersions(query: string): string {
  const matchers = parseSelector(query);
  return matchers === null ? query : formatSelector(matchers.filter(({ label }) => !isVersion(label)));
}

/** What two selectors both ask; all, where one of them cannot be read. */
export function commonSelector(a: string, b: string): string {
  const [one, other] = [parseSelector(a), parseSelector(b)];
  if (one === null || other === null) return "";
  const isIn = (m: LabelMatcher) =>
    other.some(({ label, operator, value }) => label === m.label && operator === m.operator && value === m.value);
  return formatSelector(one.filter(isIn));
}
