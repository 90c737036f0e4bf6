// Writes .gz and .br beside every text asset of dist/, which the server sends as they are, and refuses a bundle that
// outgrew the budget.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const BUDGET_BYTES = 100 * 1024;
const TEXT = new Set([".html", ".js", ".css", ".svg", ".json", ".txt"]);
const dist = fileURLToPath(new URL("../dist", import.meta.url));

function* files(folder) {
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) yield* files(path);
    else yield path;
  }
}

let total = 0;
for (const path of [...files(dist)]) {
  if (!TEXT.has(extname(path))) continue;
  const raw = readFileSync(path);
  const gzip = gzipSync(raw, { level: 9 });
  const brotli = brotliCompressSync(raw, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length },
  });
  writeFileSync(`${path}.gz`, gzip);
  writeFileSync(`${path}.br`, brotli);
  total += gzip.length;
}
console.log(`assets: ${(total / 1024).toFixed(1)} KiB gzip of ${BUDGET_BYTES / 1024} KiB`);
if (total > BUDGET_BYTES) {
  console.error("the bundle outgrew its budget: drop a dependency or split what the first page does not need");
  process.exit(1);
}
