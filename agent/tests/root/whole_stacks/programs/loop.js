function burnInScript(turns) {
  let sum = 0;
  for (let i = 0; i < turns; i++) sum = (sum * 31 + i) | 0;
  return sum;
}

function callBurn(depth) {
  return depth ? callBurn(depth - 1) + 1 : burnInScript(200000);
}

const limit = Number(process.argv[2]) * 1e6;
let sum = 0;
const used = () => process.cpuUsage().user + process.cpuUsage().system;
while (used() < limit) sum += callBurn(3) + JSON.stringify([sum, { sum }]).length;
if (sum === 0.5) console.log(sum);
