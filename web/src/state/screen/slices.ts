/**
 * Resolves behind what waits for the page already, so that hands come first. It is no timer, since browsers slow timers
 * down while nobody looks.
 */
export function nextSlice(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** Runs what can wait, where there is time for it. Safari has no idle time. */
export function whenIdle(run: () => void): void {
  if ("requestIdleCallback" in globalThis) requestIdleCallback(run);
  else setTimeout(run, 200);
}
