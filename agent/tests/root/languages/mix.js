// A known mix: of all units of work seven in ten are done at the end of the chain a1, a2, ... a12, three in ten at the
// end of b1, b2, ... b12. Time ends it, and never divides it.
//
// node mix.js SECONDS MODE, also as a module

const TURNS = 2000;
const SLICE = 100;
const seconds = Number(process.argv[2]);
const mode = process.argv[3];

function a1(x) { return a2(x + 1) + 1; }
function a2(x) { return a3(x + 2) + 1; }
function a3(x) { return a4(x + 3) + 1; }
function a4(x) { return a5(x + 4) + 1; }
function a5(x) { return a6(x + 5) + 1; }
function a6(x) { return a7(x + 6) + 1; }
function a7(x) { return a8(x + 7) + 1; }
function a8(x) { return a9(x + 8) + 1; }
function a9(x) { return a10(x + 9) + 1; }
function a10(x) { return a11(x + 10) + 1; }
function a11(x) { return a12(x + 11) + 1; }
function a12(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }
function b1(x) { return b2(x + 1) + 1; }
function b2(x) { return b3(x + 2) + 1; }
function b3(x) { return b4(x + 3) + 1; }
function b4(x) { return b5(x + 4) + 1; }
function b5(x) { return b6(x + 5) + 1; }
function b6(x) { return b7(x + 6) + 1; }
function b7(x) { return b8(x + 7) + 1; }
function b8(x) { return b9(x + 8) + 1; }
function b9(x) { return b10(x + 9) + 1; }
function b10(x) { return b11(x + 10) + 1; }
function b11(x) { return b12(x + 11) + 1; }
function b12(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }

function a_deep(levels, x) { return levels > 1 ? a_deep(levels - 1, x + 1) + 1 : a12(x) + 1; }
function b_deep(levels, x) { return levels > 1 ? b_deep(levels - 1, x + 1) + 1 : b12(x) + 1; }

class A {
    constructor(x) { this.x = x; }
    m1() { return A.m2(this.x + 1) + 1; }
    static m2(x) { return new A(x).m3() + 1; }
    m3() { return A.m4(this.x + 3) + 1; }
    static m4(x) { return new A(x).m5() + 1; }
    m5() { return A.m6(this.x + 5) + 1; }
    static m6(x) { return new A(x).m7() + 1; }
    m7() { return A.m8(this.x + 7) + 1; }
    static m8(x) { return new A(x).m9() + 1; }
    m9() { return A.m10(this.x + 9) + 1; }
    static m10(x) { return new A(x).m11() + 1; }
    m11() { return A.m12(this.x + 11) + 1; }
    static m12(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }
}

class B {
    constructor(x) { this.x = x; }
    m1() { return B.m2(this.x + 1) + 1; }
    static m2(x) { return new B(x).m3() + 1; }
    m3() { return B.m4(this.x + 3) + 1; }
    static m4(x) { return new B(x).m5() + 1; }
    m5() { return B.m6(this.x + 5) + 1; }
    static m6(x) { return new B(x).m7() + 1; }
    m7() { return B.m8(this.x + 7) + 1; }
    static m8(x) { return new B(x).m9() + 1; }
    m9() { return B.m10(this.x + 9) + 1; }
    static m10(x) { return new B(x).m11() + 1; }
    m11() { return B.m12(this.x + 11) + 1; }
    static m12(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }
}

let kept = 0;
function sorted(x, f) { return [x, 0].sort((one, other) => { kept = f(one + other); return kept; }) && kept; }
function a1_called(x) { return [x].map(a2_called)[0] + 1; }
function a2_called(x) { return sorted(x, a3_called) + 1; }
function a3_called(x) { return Number('x'.replace('x', () => String(a4_called(x)))) + 1; }
function a4_called(x) { return JSON.parse(JSON.stringify({ toJSON: () => a5_called(x) })) + 1; }
function a5_called(x) { return [x].reduce((sum, one) => sum + a6_called(one), 0) + 1; }
function a6_called(x) { return a7_called.apply(null, [x]) + 1; }
function a7_called(x) { return Array.from([x], a8_called)[0] + 1; }
function a8_called(x) { return Reflect.apply(a9_called, null, [x]) + 1; }
function a9_called(x) { return (kept = 0, [x].forEach((one) => { kept = a10_called(one); }), kept) + 1; }
function a10_called(x) { return a11_called.call(null, x) + 1; }
function a11_called(x) { return [x].flatMap(a12_called)[0] + 1; }
function a12_called(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }
function b1_called(x) { return [x].map(b2_called)[0] + 1; }
function b2_called(x) { return sorted(x, b3_called) + 1; }
function b3_called(x) { return Number('x'.replace('x', () => String(b4_called(x)))) + 1; }
function b4_called(x) { return JSON.parse(JSON.stringify({ toJSON: () => b5_called(x) })) + 1; }
function b5_called(x) { return [x].reduce((sum, one) => sum + b6_called(one), 0) + 1; }
function b6_called(x) { return b7_called.apply(null, [x]) + 1; }
function b7_called(x) { return Array.from([x], b8_called)[0] + 1; }
function b8_called(x) { return Reflect.apply(b9_called, null, [x]) + 1; }
function b9_called(x) { return (kept = 0, [x].forEach((one) => { kept = b10_called(one); }), kept) + 1; }
function b10_called(x) { return b11_called.call(null, x) + 1; }
function b11_called(x) { return [x].flatMap(b12_called)[0] + 1; }
function b12_called(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }

function a1_thrown(x) { try { return a2_thrown(x + 1); } catch (error) { error.x += 1; throw error; } }
function a2_thrown(x) { try { return a3_thrown(x + 2); } catch (error) { error.x += 1; throw error; } }
function a3_thrown(x) { try { return a4_thrown(x + 3); } catch (error) { error.x += 1; throw error; } }
function a4_thrown(x) { try { return a5_thrown(x + 4); } catch (error) { error.x += 1; throw error; } }
function a5_thrown(x) { try { return a6_thrown(x + 5); } catch (error) { error.x += 1; throw error; } }
function a6_thrown(x) { try { return a7_thrown(x + 6); } catch (error) { error.x += 1; throw error; } }
function a7_thrown(x) { try { return a8_thrown(x + 7); } catch (error) { error.x += 1; throw error; } }
function a8_thrown(x) { try { return a9_thrown(x + 8); } catch (error) { error.x += 1; throw error; } }
function a9_thrown(x) { try { return a10_thrown(x + 9); } catch (error) { error.x += 1; throw error; } }
function a10_thrown(x) { try { return a11_thrown(x + 10); } catch (error) { error.x += 1; throw error; } }
function a11_thrown(x) { try { return a12_thrown(x + 11); } catch (error) { error.x += 1; throw error; } }
function a12_thrown(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; throw { x }; }
function b1_thrown(x) { try { return b2_thrown(x + 1); } catch (error) { error.x += 1; throw error; } }
function b2_thrown(x) { try { return b3_thrown(x + 2); } catch (error) { error.x += 1; throw error; } }
function b3_thrown(x) { try { return b4_thrown(x + 3); } catch (error) { error.x += 1; throw error; } }
function b4_thrown(x) { try { return b5_thrown(x + 4); } catch (error) { error.x += 1; throw error; } }
function b5_thrown(x) { try { return b6_thrown(x + 5); } catch (error) { error.x += 1; throw error; } }
function b6_thrown(x) { try { return b7_thrown(x + 6); } catch (error) { error.x += 1; throw error; } }
function b7_thrown(x) { try { return b8_thrown(x + 7); } catch (error) { error.x += 1; throw error; } }
function b8_thrown(x) { try { return b9_thrown(x + 8); } catch (error) { error.x += 1; throw error; } }
function b9_thrown(x) { try { return b10_thrown(x + 9); } catch (error) { error.x += 1; throw error; } }
function b10_thrown(x) { try { return b11_thrown(x + 10); } catch (error) { error.x += 1; throw error; } }
function b11_thrown(x) { try { return b12_thrown(x + 11); } catch (error) { error.x += 1; throw error; } }
function b12_thrown(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; throw { x }; }

function* a1_made(x) { for (const y of a2_made(x + 1)) yield y + 1; }
function* a2_made(x) { for (const y of a3_made(x + 2)) yield y + 1; }
function* a3_made(x) { for (const y of a4_made(x + 3)) yield y + 1; }
function* a4_made(x) { for (const y of a5_made(x + 4)) yield y + 1; }
function* a5_made(x) { for (const y of a6_made(x + 5)) yield y + 1; }
function* a6_made(x) { for (const y of a7_made(x + 6)) yield y + 1; }
function* a7_made(x) { for (const y of a8_made(x + 7)) yield y + 1; }
function* a8_made(x) { for (const y of a9_made(x + 8)) yield y + 1; }
function* a9_made(x) { for (const y of a10_made(x + 9)) yield y + 1; }
function* a10_made(x) { for (const y of a11_made(x + 10)) yield y + 1; }
function* a11_made(x) { for (const y of a12_made(x + 11)) yield y + 1; }
function* a12_made(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; yield x; }
function* b1_made(x) { for (const y of b2_made(x + 1)) yield y + 1; }
function* b2_made(x) { for (const y of b3_made(x + 2)) yield y + 1; }
function* b3_made(x) { for (const y of b4_made(x + 3)) yield y + 1; }
function* b4_made(x) { for (const y of b5_made(x + 4)) yield y + 1; }
function* b5_made(x) { for (const y of b6_made(x + 5)) yield y + 1; }
function* b6_made(x) { for (const y of b7_made(x + 6)) yield y + 1; }
function* b7_made(x) { for (const y of b8_made(x + 7)) yield y + 1; }
function* b8_made(x) { for (const y of b9_made(x + 8)) yield y + 1; }
function* b9_made(x) { for (const y of b10_made(x + 9)) yield y + 1; }
function* b10_made(x) { for (const y of b11_made(x + 10)) yield y + 1; }
function* b11_made(x) { for (const y of b12_made(x + 11)) yield y + 1; }
function* b12_made(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; yield x; }

async function a1_awaited(x) { return (await a2_awaited(x + 1)) + 1; }
async function a2_awaited(x) { return (await a3_awaited(x + 2)) + 1; }
async function a3_awaited(x) { return (await a4_awaited(x + 3)) + 1; }
async function a4_awaited(x) { return (await a5_awaited(x + 4)) + 1; }
async function a5_awaited(x) { return (await a6_awaited(x + 5)) + 1; }
async function a6_awaited(x) { return (await a7_awaited(x + 6)) + 1; }
async function a7_awaited(x) { return (await a8_awaited(x + 7)) + 1; }
async function a8_awaited(x) { return (await a9_awaited(x + 8)) + 1; }
async function a9_awaited(x) { return (await a10_awaited(x + 9)) + 1; }
async function a10_awaited(x) { return (await a11_awaited(x + 10)) + 1; }
async function a11_awaited(x) { return (await a12_awaited(x + 11)) + 1; }
async function a12_awaited(x) { for (let i = 0; i < 20 * TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }
async function b1_awaited(x) { return (await b2_awaited(x + 1)) + 1; }
async function b2_awaited(x) { return (await b3_awaited(x + 2)) + 1; }
async function b3_awaited(x) { return (await b4_awaited(x + 3)) + 1; }
async function b4_awaited(x) { return (await b5_awaited(x + 4)) + 1; }
async function b5_awaited(x) { return (await b6_awaited(x + 5)) + 1; }
async function b6_awaited(x) { return (await b7_awaited(x + 6)) + 1; }
async function b7_awaited(x) { return (await b8_awaited(x + 7)) + 1; }
async function b8_awaited(x) { return (await b9_awaited(x + 8)) + 1; }
async function b9_awaited(x) { return (await b10_awaited(x + 9)) + 1; }
async function b10_awaited(x) { return (await b11_awaited(x + 10)) + 1; }
async function b11_awaited(x) { return (await b12_awaited(x + 11)) + 1; }
async function b12_awaited(x) { for (let i = 0; i < 20 * TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }

const a1_arrow = (x) => a2_arrow(x + 1) + 1;
const a2_arrow = (x) => a3_arrow(x + 2) + 1;
const a3_arrow = (x) => a4_arrow(x + 3) + 1;
const a4_arrow = (x) => a5_arrow(x + 4) + 1;
const a5_arrow = (x) => a6_arrow(x + 5) + 1;
const a6_arrow = (x) => a7_arrow(x + 6) + 1;
const a7_arrow = (x) => a8_arrow(x + 7) + 1;
const a8_arrow = (x) => a9_arrow(x + 8) + 1;
const a9_arrow = (x) => a10_arrow(x + 9) + 1;
const a10_arrow = (x) => a11_arrow(x + 10) + 1;
const a11_arrow = (x) => a12_arrow(x + 11) + 1;
const a12_arrow = (x) => { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; };
const b1_arrow = (x) => b2_arrow(x + 1) + 1;
const b2_arrow = (x) => b3_arrow(x + 2) + 1;
const b3_arrow = (x) => b4_arrow(x + 3) + 1;
const b4_arrow = (x) => b5_arrow(x + 4) + 1;
const b5_arrow = (x) => b6_arrow(x + 5) + 1;
const b6_arrow = (x) => b7_arrow(x + 6) + 1;
const b7_arrow = (x) => b8_arrow(x + 7) + 1;
const b8_arrow = (x) => b9_arrow(x + 8) + 1;
const b9_arrow = (x) => b10_arrow(x + 9) + 1;
const b10_arrow = (x) => b11_arrow(x + 10) + 1;
const b11_arrow = (x) => b12_arrow(x + 11) + 1;
const b12_arrow = (x) => { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; };

// Through C++ of Node.js and back.
let passed = 0;
let script = null;
let next = null;
function through(f, x) {
    const before = next;
    next = f;
    passed = x;
    const y = script.runInThisContext();
    next = before;
    return y;
}
function a1_native(x) { return a2_native(x + 1) + 1; }
function a2_native(x) { return a3_native(x + 2) + 1; }
function a3_native(x) { return through(a4_native, x + 3) + 1; }
function a4_native(x) { return a5_native(x + 4) + 1; }
function a5_native(x) { return a6_native(x + 5) + 1; }
function a6_native(x) { return through(a7_native, x + 6) + 1; }
function a7_native(x) { return a8_native(x + 7) + 1; }
function a8_native(x) { return a9_native(x + 8) + 1; }
function a9_native(x) { return through(a10_native, x + 9) + 1; }
function a10_native(x) { return a11_native(x + 10) + 1; }
function a11_native(x) { return a12_native(x + 11) + 1; }
function a12_native(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }
function b1_native(x) { return b2_native(x + 1) + 1; }
function b2_native(x) { return b3_native(x + 2) + 1; }
function b3_native(x) { return through(b4_native, x + 3) + 1; }
function b4_native(x) { return b5_native(x + 4) + 1; }
function b5_native(x) { return b6_native(x + 5) + 1; }
function b6_native(x) { return through(b7_native, x + 6) + 1; }
function b7_native(x) { return b8_native(x + 7) + 1; }
function b8_native(x) { return b9_native(x + 8) + 1; }
function b9_native(x) { return through(b10_native, x + 9) + 1; }
function b10_native(x) { return b11_native(x + 10) + 1; }
function b11_native(x) { return b12_native(x + 11) + 1; }
function b12_native(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }

// Through WebAssembly and back: a function that calls the one that was given.
let wasm = null;
let imported = null;
function crossing(f, x) { const before = imported; imported = f; const y = wasm(x); imported = before; return y; }
function a1_wasm(x) { return a2_wasm(x + 1) + 1; }
function a2_wasm(x) { return a3_wasm(x + 2) + 1; }
function a3_wasm(x) { return a4_wasm(x + 3) + 1; }
function a4_wasm(x) { return crossing(a5_wasm, x + 4) + 1; }
function a5_wasm(x) { return a6_wasm(x + 5) + 1; }
function a6_wasm(x) { return a7_wasm(x + 6) + 1; }
function a7_wasm(x) { return a8_wasm(x + 7) + 1; }
function a8_wasm(x) { return crossing(a9_wasm, x + 8) + 1; }
function a9_wasm(x) { return a10_wasm(x + 9) + 1; }
function a10_wasm(x) { return a11_wasm(x + 10) + 1; }
function a11_wasm(x) { return a12_wasm(x + 11) + 1; }
function a12_wasm(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }
function b1_wasm(x) { return b2_wasm(x + 1) + 1; }
function b2_wasm(x) { return b3_wasm(x + 2) + 1; }
function b3_wasm(x) { return b4_wasm(x + 3) + 1; }
function b4_wasm(x) { return crossing(b5_wasm, x + 4) + 1; }
function b5_wasm(x) { return b6_wasm(x + 5) + 1; }
function b6_wasm(x) { return b7_wasm(x + 6) + 1; }
function b7_wasm(x) { return b8_wasm(x + 7) + 1; }
function b8_wasm(x) { return crossing(b9_wasm, x + 8) + 1; }
function b9_wasm(x) { return b10_wasm(x + 9) + 1; }
function b10_wasm(x) { return b11_wasm(x + 10) + 1; }
function b11_wasm(x) { return b12_wasm(x + 11) + 1; }
function b12_wasm(x) { for (let i = 0; i < TURNS; i++) x = (x * 31 + i) & 0xffffff; return x; }

const TEXT = 'a'.repeat(60) + 'c';
function match(x) {
    for (let i = 0; i < 20; i++) x += /(x|a|ab|[a-b])+d/.test(TEXT.slice(45 - (x & 1))) ? 1 : 2;
    return x;
}
function a1_matched(x) { return a2_matched(x + 1) + 1; }
function a2_matched(x) { return a3_matched(x + 2) + 1; }
function a3_matched(x) { return a4_matched(x + 3) + 1; }
function a4_matched(x) { return a5_matched(x + 4) + 1; }
function a5_matched(x) { return a6_matched(x + 5) + 1; }
function a6_matched(x) { return a7_matched(x + 6) + 1; }
function a7_matched(x) { return a8_matched(x + 7) + 1; }
function a8_matched(x) { return a9_matched(x + 8) + 1; }
function a9_matched(x) { return a10_matched(x + 9) + 1; }
function a10_matched(x) { return a11_matched(x + 10) + 1; }
function a11_matched(x) { return a12_matched(x + 11) + 1; }
function a12_matched(x) { return match(x); }
function b1_matched(x) { return b2_matched(x + 1) + 1; }
function b2_matched(x) { return b3_matched(x + 2) + 1; }
function b3_matched(x) { return b4_matched(x + 3) + 1; }
function b4_matched(x) { return b5_matched(x + 4) + 1; }
function b5_matched(x) { return b6_matched(x + 5) + 1; }
function b6_matched(x) { return b7_matched(x + 6) + 1; }
function b7_matched(x) { return b8_matched(x + 7) + 1; }
function b8_matched(x) { return b9_matched(x + 8) + 1; }
function b9_matched(x) { return b10_matched(x + 9) + 1; }
function b10_matched(x) { return b11_matched(x + 10) + 1; }
function b11_matched(x) { return b12_matched(x + 11) + 1; }
function b12_matched(x) { return match(x); }

const EVALUATED = ['a', 'b'].map((of) => {
    const link = (i) => `function ${of}${i}_evaluated(x) { return ${of}${i + 1}_evaluated(x) + 1; }`;
    const links = Array.from({ length: 11 }, (_, i) => link(i + 1));
    const turns = 'for (let i = 0; i < 2000; i++) x = (x * 31 + i) & 0xffffff;';
    const last = `function ${of}12_evaluated(x) { ${turns} return x; }`;
    return [...links, last, `return ${of}1_evaluated;`].join('\n');
});
let evaluated = [];

const UNITS = {
    plain: [a1, b1],
    recursion: [(x) => a_deep(200, x), (x) => b_deep(200, x)],
    methods: [(x) => new A(x).m1(), (x) => new B(x).m1()],
    callback: [a1_called, b1_called],
    exception: [caught(a1_thrown), caught(b1_thrown)],
    generator: [(x) => a1_made(x).next().value, (x) => b1_made(x).next().value],
    async: [a1_awaited, b1_awaited],
    arrows: [a1_arrow, b1_arrow],
    evaluated: [(x) => evaluated[0](x), (x) => evaluated[1](x)],
    native: [a1_native, b1_native],
    wasm: [a1_wasm, b1_wasm],
    regexp: [a1_matched, b1_matched],
    worker: [a1, b1],
};

function caught(f) {
    return (x) => { try { return f(x); } catch (error) { return error.x; } };
}

/** Ten units, of which seven are the first one's. */
function round([first, other], x) {
    for (let i = 0; i < 10; i++) x = (i % 10 < 7 ? first(x & 0xff) : other(x & 0xff)) | 0;
    return x;
}

async function rounds([first, other], x) {
    for (let i = 0; i < 10; i++) x = await (i % 10 < 7 ? first(x & 0xff) : other(x & 0xff));
    return x;
}

async function prepare() {
    if (mode === 'native') {
        const vm = await import('node:vm');
        globalThis.mixNext = () => next(passed);
        script = new vm.Script('mixNext()');
    }
    if (mode === 'wasm') {
        // (module (import "m" "f" (func $f (param i32) (result i32)))
        //   (func (export "g") (param i32) (result i32) local.get 0 call $f i32.const 1 i32.add))
        const bytes = Uint8Array.from([
            0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 2, 7, 1, 1, 109, 1, 102, 0, 0, 3, 2, 1, 0, 7, 5,
            1, 1, 103, 0, 1, 10, 11, 1, 9, 0, 32, 0, 16, 0, 65, 1, 106, 11,
        ]);
        const f = (x) => imported(x);
        wasm = new WebAssembly.Instance(new WebAssembly.Module(bytes), { m: { f } }).exports.g;
    }
    if (mode === 'evaluated') {
        evaluated = EVALUATED.map((text, i) => (i === 0 ? eval(`(() => { ${text} })()`) : new Function(text)()));
    }
}

async function main() {
    const threads = await import('node:worker_threads');
    if (mode === 'worker' && threads.isMainThread) {
        const file = process.argv[1];
        for (let i = 0; i < 2; i++) new threads.Worker(file, { argv: process.argv.slice(2) });
        return;
    }
    await prepare();
    const end = Date.now() + seconds * 1000;
    const units = UNITS[mode];
    let x = 1;
    while (Date.now() < end) {
        for (let i = 0; i < SLICE; i++) x = mode === 'async' ? await rounds(units, x) : round(units, x);
    }
    process.exitCode = x === -1 ? 1 : 0;
}

main();
