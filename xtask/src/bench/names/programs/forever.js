// Makes functions, calls them and drops them, for ever: what comes next lies where they lay.
//
// Generation N is four functions, js_a_N to js_d_N. Each is called by the one before alone, and js_a_N by js_s_M alone,
// where M is N modulo 8; the eight js_s_M stay. So any other pair of caller and callee is a wrong name.
//
// node forever.js SECONDS FIRST
'use strict';

function js_s_0(made, x) { return made(x) + 1; }
function js_s_1(made, x) { return made(x) + 1; }
function js_s_2(made, x) { return made(x) + 1; }
function js_s_3(made, x) { return made(x) + 1; }
function js_s_4(made, x) { return made(x) + 1; }
function js_s_5(made, x) { return made(x) + 1; }
function js_s_6(made, x) { return made(x) + 1; }
function js_s_7(made, x) { return made(x) + 1; }

const CALLERS = [js_s_0, js_s_1, js_s_2, js_s_3, js_s_4, js_s_5, js_s_6, js_s_7];

function source(number) {
  const n = String(number).padStart(8, '0');
  return `
function js_a_${n}(x) { return js_b_${n}(x + 1) + 1; }
function js_b_${n}(x) { return js_c_${n}(x + 2) + 1; }
function js_c_${n}(x) { return js_d_${n}(x + 3) + 1; }
function js_d_${n}(x) {
  for (let i = 0; i < 4000; i++) x = (Math.imul(x, 31) + i) & 0xFFFFFF;
  return x;
}
return js_a_${n};
`;
}

const end = performance.now() + Number(process.argv[2]) * 1000;
let number = Number(process.argv[3]);
let sink = 1;
while (performance.now() < end) {
  const made = new Function(source(number))();
  const caller = CALLERS[number % 8];
  // Some live long enough to be asked for, and to be compiled twice; most are gone by then.
  const until = Math.min(end, performance.now() + (number % 32 === 0 ? 800 : 5));
  while (performance.now() < until) {
    for (let i = 0; i < 10; i++) sink = caller(made, sink);
  }
  number++;
}
