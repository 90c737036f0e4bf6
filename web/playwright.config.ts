import { defineConfig } from "@playwright/test";

// The flows run against a real server that a real agent ships to; xtask starts both and says where.
const url = process.env.STAKEOUT_URL;
if (url === undefined) throw new Error("STAKEOUT_URL is not set: give the address of a running stakeout-server");

// Workers inherit it, also those that begin late.
process.env.STAKEOUT_BEGUN ??= String(Date.now());

export default defineConfig({
  testDir: "e2e",
  globalSetup: "./e2e/windows.ts",
  outputDir: "test-results",
  // Conditions are waited for, and a busy machine may take its time: CI is one.
  timeout: 240_000,
  expect: { timeout: 60_000 },
  // Each flow has data of its own in the one store, or only reads; names of data differ by worker.
  workers: 2,
  retries: 0,
  reporter: [["list"]],
  use: {
    baseURL: url,
    viewport: { width: 1440, height: 900 },
    launchOptions: {
      executablePath: process.env.STAKEOUT_CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    },
  },
});
