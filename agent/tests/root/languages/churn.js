// Functions without end: each outer one is called fN and calls an inner one of the same number, gN. Most are gone soon,
// and so is their code; others are kept for a while, so that what is kept is moved.
//
// node churn.js SECONDS

const seconds = Number(process.argv[2]);
const end = Date.now() + seconds * 1000;
const kept = [];
let number = 0;
let x = 1;

function made(of) {
    const turns = 200 + (of % 7) * 50;
    return new Function(`
        function g${of}(x) {
            const list = [];
            for (let i = 0; i < ${turns}; i++) { x = (x * 31 + i) & 0xffffff; list.push({ x }); }
            return list.length + x;
        }
        return function f${of}(x) {
            let sum = 0;
            for (let i = 0; i < 20; i++) sum += g${of}(x + i);
            return sum;
        };
    `)();
}

while (Date.now() < end) {
    const f = made(number++);
    // Some get hot.
    const calls = number % 10 === 0 ? 60 : 2;
    for (let i = 0; i < calls; i++) x = f(x & 0xffff) | 0;
    kept[number % 500] = f;
    if (number % 50 === 0) x = kept[(number * 7) % kept.length]?.(x & 0xffff) | 0;
}
process.exitCode = x === -1 ? 1 : 0;
