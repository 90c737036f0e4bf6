// TypeScript's compiler translates sources, again and again, for bench agreement; `--cpu-prof` watches the whole run, and
// the lines that are printed tell the part of it that is compared.
//
// node --cpu-prof compile.js WARM_UP_S SECONDS TYPESCRIPT SOURCE...

'use strict';
const fs = require('node:fs');
const [warmUp, seconds, library, ...names] = process.argv.slice(2);
const ts = require(library);
const sources = names.map((name) => [name, fs.readFileSync(name, 'utf8')]);

function compileAll() {
  for (const [fileName, text] of sources) {
    const compilerOptions = { target: ts.ScriptTarget.ES2017, module: ts.ModuleKind.CommonJS, sourceMap: true };
    ts.transpileModule(text, { fileName, compilerOptions });
  }
}

function work(time) {
  const end = process.hrtime.bigint() + BigInt(Math.round(Number(time) * 1e9));
  while (process.hrtime.bigint() < end) compileAll();
}

// The moment is the monotonic clock's, as in the profile.
function tell(what) {
  fs.writeSync(1, `${what} ${process.hrtime.bigint()}\n`);
}

work(warmUp);
tell('begun');
work(seconds);
tell('ended');
// The profile is written at the end, which comes when standard input does.
fs.readFileSync(0);
