/** The words of the hint, beside the pointer. */
import { useBeside } from "../ui/beside.ts";

export function WheelHintText({ x, y, what }: { x: number; y: number; what: string }) {
  const element = useBeside(x, y);
  const key = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
  return (
    <div class="tooltip" ref={element} role="status" data-testid="wheel-hint">
      Hold <kbd>{key}</kbd> to zoom {what} with the wheel; alone it scrolls the page.
    </div>
  );
}
