/**
 * A machine with something to see, once for all flows: a program that reads random numbers begins after a quiet time,
 * so that "before" and "after" are known by construction. Nothing else runs meanwhile, and it ends before the flows
 * begin: they have the CPUs to themselves.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type APIRequestContext, request } from "@playwright/test";

export interface Windows {
  /** The name of the process that is busy in the second window: no other one on this machine has it. */
  busy: string;
  /** Without the busy process, and with it; Unix milliseconds. */
  before: { from: number; until: number };
  after: { from: number; until: number };
}

interface Series {
  times: number[];
  covered: number[];
}

const QUIET_MS = 8_000;
const BUSY_MS = 10_000;
const PATIENCE_MS = 90_000;
const LOOK_MS = 500;
/** Where the workers find them. */
const VARIABLE = "STAKEOUT_WINDOWS";

/** When the run began, in every worker of it, also in one that stands in for another that ended; Unix milliseconds. */
export const BEGUN = Number(process.env.STAKEOUT_BEGUN ?? Date.now());

/** The newest moment that an agent's batches cover, or 0. */
async function coveredUntil(api: APIRequestContext): Promise<number> {
  const answer = await api.get("/api/v1/series?from=now-5m&step=1s&by=node");
  if (!answer.ok()) throw new Error(`/api/v1/series: ${answer.status()} ${await answer.text()}`);
  const { times, covered } = (await answer.json()) as Series;
  const last = covered.findLastIndex((share) => share > 0.99);
  return last < 0 ? 0 : (times[last] as number) + 1000;
}

/** Waits until the store holds everything up to the moment. */
export async function waitCovered(api: APIRequestContext, moment: number): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while ((await coveredUntil(api)) < moment) {
    if (Date.now() > deadline) throw new Error(`no agent's batches cover ${new Date(moment).toISOString()}`);
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
}

/** The windows of this run. */
export function windowsOfRun(): Windows {
  const known = process.env[VARIABLE];
  if (known === undefined) throw new Error(`${VARIABLE} is not set: the flows begin without their windows`);
  return JSON.parse(known) as Windows;
}

/** Makes the windows. */
export default async function make(): Promise<void> {
  const api = await request.newContext({ baseURL: process.env.STAKEOUT_URL ?? "" });
  const folder = mkdtempSync(join(tmpdir(), "stakeout-e2e-"));
  const busy = `reader-${process.pid}`;
  let load: ChildProcess | undefined;
  try {
    const begin = Math.ceil(Date.now() / 1000) * 1000;
    await waitCovered(api, begin + QUIET_MS);
    copyFileSync("/bin/dd", join(folder, busy));
    const reads = ["if=/dev/urandom", "of=/dev/null", "bs=64k"];
    load = spawn(join(folder, busy), reads, { stdio: "ignore" });
    const started = Math.ceil(Date.now() / 1000) * 1000 + 1000;
    await waitCovered(api, started + BUSY_MS);
    const windows: Windows = {
      busy,
      before: { from: begin, until: begin + QUIET_MS },
      after: { from: started, until: started + BUSY_MS },
    };
    process.env[VARIABLE] = JSON.stringify(windows);
  } finally {
    load?.kill("SIGKILL");
    rmSync(folder, { recursive: true });
    await api.dispose();
  }
}
