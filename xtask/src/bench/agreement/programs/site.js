// A shop's HTTP service on Express, which bench agreement asks all the time: JSON both ways, pages, and texts that Marked
// turns into HTML. `--cpu-prof` watches the whole run, and the lines that are printed tell the part that is compared.
//
// node --cpu-prof site.js WARM_UP_S SECONDS PORT TEXT...

'use strict';
const fs = require('node:fs');
const express = require('express');
const { marked } = require('marked');

const [warmUp, seconds, port, ...names] = process.argv.slice(2);
const texts = names.map((name) => fs.readFileSync(name, 'utf8'));
const words = texts[0].split(/\s+/).filter((word) => /^[a-z]+$/i.test(word));
const all = Array.from({ length: 120 }, (_, i) => ({
  name: words[i % words.length],
  price: (i * 7) % 101,
  words: words.slice(i % 90, (i % 90) + 5),
}));

function escaped(text) {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

function item(offer) {
  const price = offer.price > 50 ? `<em>${offer.price.toFixed(2)}</em>` : offer.price;
  return `<li><b>${escaped(offer.name)}</b> ${price} ${offer.words.map((word) => escaped(word.toUpperCase())).join(' ')}</li>`;
}

const app = express();
app.use(express.json());
app.get('/offers', (request, response) => {
  const { word = '', most = 100, count = 20 } = request.query;
  const found = all.filter((offer) => offer.name.includes(word) && offer.price <= most);
  response.json(found.sort((a, b) => a.price - b.price).slice(0, count));
});
app.post('/orders', (request, response) => {
  const { customer, offers } = request.body;
  response.json({ customer: customer.toUpperCase(), sum: offers.reduce((sum, offer) => sum + offer.price, 0) });
});
app.get('/page', (_, response) => {
  response.send(`<html><body><ul>${all.slice(0, 40).map(item).join('\n')}</ul></body></html>`);
});
app.get('/texts/:number', (request, response) => {
  const number = Number(request.params.number);
  const whole = texts[number % texts.length];
  const begin = (number * 997) % Math.max(whole.length - 4000, 1);
  response.send(marked.parse(whole.slice(begin, begin + 4000)));
});

// The moment is the monotonic clock's, as in the profile.
function tell(what) {
  fs.writeSync(1, `${what} ${process.hrtime.bigint()}\n`);
}

app.listen(Number(port), '127.0.0.1', () => {
  setTimeout(() => {
    tell('begun');
    setTimeout(() => tell('ended'), Number(seconds) * 1000);
  }, Number(warmUp) * 1000);
});
// The profile is written at the end, which comes when standard input does.
process.stdin.resume().on('end', () => process.exit(0));
