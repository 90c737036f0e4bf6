"""Searches the shop's offers, as `cargo xtask demo` starts it.

In: the service's port as the only argument. It runs until its standard input ends.
"""

import http.client
import random
import sys
import threading
import time

SHOPPERS = 2
WORDS = 3
PAUSE_S = 0.004
SYLLABLES = "ka lo mi ne pu ra se ti vo wen zar bel dor fin gol hul".split()


def word(rank):
    """The word of this rank, as the service makes it."""
    parts, rest = [], rank + len(SYLLABLES)
    while rest > 0:
        parts.append(SYLLABLES[rest % len(SYLLABLES)])
        rest //= len(SYLLABLES)
    return "".join(parts)


class Shopper:
    def __init__(self, port, seed):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.random = random.Random(seed)

    def shop(self):
        while True:
            self.read_offers(self.search(self.think_of_words()))
            time.sleep(PAUSE_S)

    def think_of_words(self):
        return [word(self.random.randrange(400)) for _ in range(WORDS)]

    def search(self, words):
        self.connection.request("GET", "/search?" + "+".join(words))
        return self.connection.getresponse().read()

    def read_offers(self, page):
        return [offer.split() for offer in page.decode().split("<li>")]


if __name__ == "__main__":
    for number in range(SHOPPERS):
        threading.Thread(target=Shopper(int(sys.argv[1]), number).shop, daemon=True).start()
    sys.stdin.read()
