"""A job: a report of what customers bought, from rows of text. What it costs is the same each time."""

import json
import random
import re
import zlib

ROWS = 700
CUSTOMERS = 40
LINE = re.compile(r"(?P<customer>c\d+);(?P<article>[a-z]+);(?P<pieces>\d+);(?P<price>\d+)")


def orders(seed):
    """Rows as an export of a shop has them."""
    dice = random.Random(seed)
    return [
        f"c{dice.randrange(CUSTOMERS)};article{'abcdefgh'[dice.randrange(8)]};{dice.randrange(9)};{dice.randrange(500)}"
        for _ in range(ROWS)
    ]


class Report:
    def __init__(self, rows):
        self.rows = rows

    def build(self):
        bought = self.by_customer(self.parse())
        return self.packed(self.rendered(bought))

    def parse(self):
        return [match.groupdict() for match in map(LINE.match, self.rows) if match]

    def by_customer(self, orders):
        bought = {}
        for order in orders:
            articles = bought.setdefault(order["customer"], {})
            worth = int(order["pieces"]) * int(order["price"])
            articles[order["article"]] = articles.get(order["article"], 0) + worth
        return bought

    def rendered(self, bought):
        lines = []
        for customer in sorted(bought):
            for article, worth in sorted(bought[customer].items()):
                lines.append(json.dumps({"customer": customer, "article": article, "worth": worth}))
        return "\n".join(lines)

    def packed(self, text):
        return zlib.compress(text.encode(), 6)
