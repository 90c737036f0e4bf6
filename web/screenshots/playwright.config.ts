import { defineConfig } from "@playwright/test";

// `STAKEOUT_URL` is a server after `cargo xtask demo`, so that there is an incident to be seen.
export default defineConfig({
  testDir: ".",
  testMatch: "take.ts",
  timeout: 600_000,
  workers: 1,
  reporter: [["list"]],
  outputDir: "../test-results",
  use: {
    baseURL: process.env.STAKEOUT_URL ?? "",
    launchOptions: {
      executablePath: process.env.STAKEOUT_CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    },
  },
});
