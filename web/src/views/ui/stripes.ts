/**
 * Slanting lines over a part of a canvas, in its present stroke: what emptiness or colour alone would not tell. All in
 * the canvas's own pixels; `falls` turns them the other way.
 */
export function stripes(
  context: CanvasRenderingContext2D,
  [left, top, width, height]: readonly [left: number, top: number, width: number, height: number],
  step: number,
  falls = false,
): void {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.beginPath();
  const lean = falls ? height : 0;
  for (let x = left - height; x < left + width; x += step) {
    context.moveTo(x + lean, top + height);
    context.lineTo(x + height - lean, top);
  }
  context.stroke();
  context.restore();
}
