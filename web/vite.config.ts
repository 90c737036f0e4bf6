import { defineConfig } from "vitest/config";

const SERVER = process.env.STAKEOUT_URL ?? "http://127.0.0.1:7373";

// The server embeds dist/ and serves it under a strict content security policy: no inline scripts or styles, so
// nothing is inlined here either.
export default defineConfig({
  base: "/",
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    reportCompressedSize: true,
  },
  server: {
    proxy: { "/api": SERVER, "/v1development": SERVER },
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
