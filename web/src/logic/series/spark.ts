/**
 * A series as a small line. In: cores a step, null where nobody watched. Out: the path of an SVG line, `M` after each
 * gap. Lines that are looked at together have one `most`.
 */

export function sparkPath(
  values: readonly (number | null)[],
  width: number,
  height: number,
  most = values.reduce((top: number, value) => Math.max(top, value ?? 0), 0),
): string {
  const last = Math.max(1, values.length - 1);
  let path = "";
  let gap = true;
  values.forEach((value, i) => {
    if (value === null) {
      gap = true;
      return;
    }
    const y = most > 0 ? height - (value / most) * height : height;
    path += `${gap ? "M" : "L"}${round((i / last) * width)} ${round(y)}`;
    gap = false;
  });
  return path;
}

function round(value: number): string {
  return String(Number(value.toFixed(1)));
}

/** Points of a list's line. */
const POINTS = 60;

/**
 * The step of a series of about so many points, as the server takes it: whole minutes where there are as many, else
 * whole seconds.
 */
export function listStep(lengthMs: number): string {
  const unitMs = lengthMs >= POINTS * 60_000 ? 60_000 : 1000;
  return `${Math.max(1, Math.ceil(lengthMs / POINTS / unitMs)) * (unitMs / 1000)}s`;
}
