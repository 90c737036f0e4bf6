/** What the measurements share: where figures go, and the trees that a server is given. */
import { appendFileSync } from "node:fs";
import { type APIRequestContext, expect } from "@playwright/test";
import { otlp } from "../e2e/otlp.ts";
import { FRAMES, type Stack } from "./synthetic.ts";

const OUT = process.env.STAKEOUT_BENCH_OUT ?? "";
const STACKS_A_BATCH = 20_000;
/** When all samples were taken, in Unix milliseconds. */
export const TAKEN = Math.floor(Date.now() / 1000) * 1000 - 120_000;

export const SIZES = (process.env.STAKEOUT_BENCH_NODES ?? "10000,100000,1000000").split(",").map(Number);

export function tell(figures: Record<string, unknown>): void {
  appendFileSync(OUT, `${JSON.stringify(figures)}\n`);
}

/** The page's address of the samples that were taken at `TAKEN`. */
export const within = (more: Record<string, string>) =>
  `/?${new URLSearchParams({ from: String(TAKEN - 1000), until: String(TAKEN + 60_000), ...more })}`;

/** Stores the stacks as samples of a service. */
export async function ingest(request: APIRequestContext, name: string, stacks: Stack[], at = TAKEN): Promise<void> {
  for (let i = 0; i < stacks.length; i += STACKS_A_BATCH) {
    const body = otlp({
      service: name,
      at,
      frames: FRAMES,
      stacks: stacks.slice(i, i + STACKS_A_BATCH),
    });
    const answer = await request.post("/v1development/profiles", {
      headers: { "content-type": "application/x-protobuf" },
      data: Buffer.from(body),
      timeout: 0,
    });
    expect(answer.status(), await answer.text()).toBe(200);
  }
}
