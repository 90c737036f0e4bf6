// Marked turns texts into pages whose code highlight.js colours, again and again, for bench agreement; `--cpu-prof` watches
// the whole run, and the lines that are printed tell the part that is compared.
//
// node --cpu-prof pages.js WARM_UP_S SECONDS TEXT...

'use strict';
const fs = require('node:fs');
const highlight = require('highlight.js');
const { Marked } = require('marked');

const [warmUp, seconds, ...names] = process.argv.slice(2);
const texts = names.map((name) => fs.readFileSync(name, 'utf8'));
const marked = new Marked({
  renderer: {
    code({ text, lang }) {
      const language = highlight.getLanguage(lang) ? lang : 'rust';
      return `<pre>${highlight.highlight(text, { language }).value}</pre>`;
    },
  },
});

function work(time) {
  const end = process.hrtime.bigint() + BigInt(Math.round(Number(time) * 1e9));
  while (process.hrtime.bigint() < end) {
    for (const text of texts) marked.parse(text);
  }
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
