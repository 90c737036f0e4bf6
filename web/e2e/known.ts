/** Samples that are known by construction, stored beside those of the agent. */
import type { APIRequestContext, Page } from "@playwright/test";
import { type Frame, otlp } from "./otlp.ts";
import { colours, expect, type Place, placeOf } from "./stack.ts";
import { BEGUN } from "./windows.ts";

/** When all of them were taken, before the machine's own windows; and a window that they lie in. */
export const TAKEN = Math.floor(BEGUN / 1000) * 1000 - 60_000;
export const WINDOW = { from: TAKEN - 10_000, until: TAKEN + 10_000 };

/** Stores stacks (root first) of a service that nothing else has, and gives its selector. */
export async function stored(
  request: APIRequestContext,
  name: string,
  stacks: { frames: Frame[]; samples: number }[],
): Promise<Record<string, string>> {
  const service = `${name}-${process.pid}-${TAKEN}`;
  const frames: Frame[] = [];
  const indexed = stacks.map(({ frames: path, samples }) => {
    const indices = path.map((frame) => {
      const known = frames.indexOf(frame);
      return known >= 0 ? known : frames.push(frame) - 1;
    });
    return { frames: indices.reverse(), samples };
  });
  const answer = await request.post("/v1development/profiles", {
    headers: { "content-type": "application/x-protobuf" },
    data: Buffer.from(otlp({ service, at: TAKEN, frames, stacks: indexed })),
  });
  expect(answer.status(), await answer.text()).toBe(200);
  return { query: `{service="${service}"}` };
}

/**
 * Stores a course second by second from a moment on, of a service that nothing else has, and gives its selector: how
 * many samples of which stack (root first) each second has. A sample stands for a twentieth of a second.
 */
export async function course(
  request: APIRequestContext,
  name: string,
  from: number,
  seconds: readonly { frames: Frame[]; samples: number; version?: string }[],
): Promise<Record<string, string>> {
  const service = `${name}-${process.pid}-${from}`;
  // Each is acknowledged with its commit: one after the other they would wait for one each.
  await Promise.all(
    seconds.map(async ({ frames, samples, version = "" }, i) => {
      if (samples === 0) return;
      const stacks = [{ frames: frames.map((_, at) => at).reverse(), samples }];
      const answer = await request.post("/v1development/profiles", {
        headers: { "content-type": "application/x-protobuf" },
        data: Buffer.from(otlp({ service, version, at: from + i * 1000, frames, stacks })),
      });
      expect(answer.status(), await answer.text()).toBe(200);
    }),
  );
  return { query: `{service="${service}"}` };
}

/**
 * Where the flamegraph is, once it shows something and stays there: what is answered later may take a line above it.
 */
export async function drawn(page: Page): Promise<Place> {
  await expect.poll(() => colours(page)).toBeGreaterThan(2);
  await page.waitForLoadState("networkidle");
  return placeOf(page.getByTestId("flamegraph"));
}

/** How many trees the page has drawn so far: each answer is one. */
export function graphs(page: Page): Promise<number> {
  return page.evaluate(() => performance.getEntriesByName("stakeout:flamegraph").length);
}
