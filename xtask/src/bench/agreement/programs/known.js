// A function whose share of the time is known, since the clock says how long it ran: `leaf`, optimised, with `look`
// inlined into it, which loads a property of objects of many shapes. `middle` calls it in turn with `other`. So it is
// seen who counts rightly where both profilers disagree.
//
// node --allow-natives-syntax --cpu-prof known.js WARM_UP_S SECONDS

'use strict';
const fs = require('node:fs');
const [warmUp, seconds] = process.argv.slice(2);
const shapes = [];
for (let i = 0; i < 64; i++) {
  const shape = {};
  shape[`before${i}`] = 1;
  shape.flags = i;
  shapes.push(shape);
}
let [inLeaf, inAll] = [0n, 0n];

function look(shape) {
  return shape.flags;
}

function leaf(count) {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += look(shapes[i & 63]) + look(shapes[(i + 7) & 63]);
  return sum;
}

function other(count) {
  let sum = 0;
  for (let i = 0; i < count; i++) sum = (sum * 3 + i) & 0xffff;
  return sum;
}

function middle() {
  const begin = process.hrtime.bigint();
  let sum = leaf(200000);
  const called = process.hrtime.bigint();
  sum += other(2000000);
  inLeaf += called - begin;
  inAll += process.hrtime.bigint() - begin;
  return sum;
}

function work(time) {
  const end = process.hrtime.bigint() + BigInt(Math.round(Number(time) * 1e9));
  [inLeaf, inAll] = [0n, 0n];
  while (process.hrtime.bigint() < end) middle();
}

// The moment is the monotonic clock's, as in the profile.
function tell(what) {
  fs.writeSync(1, `${what} ${process.hrtime.bigint()}\n`);
}

// Each stays a function of its own.
%NeverOptimizeFunction(middle);
work(warmUp);
tell('begun');
work(seconds);
tell('ended');
fs.writeSync(1, `truth leaf ${(Number(inLeaf) * 100) / Number(inAll)}\n`);
// The profile is written at the end, which comes when standard input does.
fs.readFileSync(0);
