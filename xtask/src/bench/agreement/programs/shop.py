# A shop's HTTP service on FastAPI, which bench agreement asks all the time: JSON that is checked both ways, pages that
# Jinja2 makes, and texts that Python-Markdown turns into HTML.
#
# python shop.py PORT TEXT...

import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Query
from fastapi.responses import HTMLResponse
from jinja2 import DictLoader, Environment
from markdown import Markdown
from pydantic import BaseModel, Field

TEXTS = [Path(name).read_text() for name in sys.argv[2:]]
PAGE = """<html><head><title>{{ title }}</title></head><body><ul>
{% for offer in offers %}<li class="{{ loop.cycle('odd', 'even') }}"><b>{{ offer.name|title }}</b>
{% if offer.price > 50 %}<em>{{ '%.2f'|format(offer.price) }}</em>{% else %}{{ offer.price|round(2) }}{% endif %}
{% for word in offer.words %}<i>{{ word|upper }}</i> {% endfor %}</li>
{% endfor %}</ul></body></html>"""


class Offer(BaseModel):
    name: str
    price: float = Field(ge=0)
    words: list[str]


class Order(BaseModel):
    offers: list[Offer]
    customer: str


def made_offers():
    words = [word for word in TEXTS[0].split() if word.isalpha()]
    return [
        Offer(name=words[i % len(words)], price=i * 7 % 101, words=words[i % 90 : i % 90 + 5])
        for i in range(120)
    ]


OFFERS = made_offers()
app = FastAPI()
pages = Environment(loader=DictLoader({"page": PAGE}), autoescape=True)


@app.get("/offers")
async def offers(word: str = "", most: float = Query(default=100, ge=0), count: int = Query(default=20, le=100)):
    found = [offer for offer in OFFERS if word in offer.name and offer.price <= most]
    return sorted(found, key=lambda offer: offer.price)[:count]


@app.post("/orders")
async def order(order: Order):
    return {"customer": order.customer.title(), "sum": sum(offer.price for offer in order.offers)}


@app.get("/page", response_class=HTMLResponse)
async def page(title: str = "Offers"):
    return pages.get_template("page").render(title=title, offers=OFFERS[:40])


@app.get("/texts/{number}", response_class=HTMLResponse)
async def text(number: int):
    whole = TEXTS[number % len(TEXTS)]
    begin = number * 997 % max(len(whole) - 4000, 1)
    return Markdown(extensions=["tables"]).convert(whole[begin : begin + 4000])


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
