import { defineConfig } from "@playwright/test";

// `cargo xtask bench web` starts the server and says where it is.
export default defineConfig({
  testDir: ".",
  testMatch: "*.bench.ts",
  timeout: 0,
  workers: 1,
  retries: 0,
  reporter: [["line"]],
  outputDir: "../test-results",
  use: {
    baseURL: process.env.STAKEOUT_URL ?? "",
    viewport: { width: 1440, height: 900 },
    launchOptions: {
      executablePath: process.env.STAKEOUT_CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    },
  },
});
