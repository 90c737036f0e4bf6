"""Writes a log to a file system that compresses it, again and again, as `cargo xtask demo` starts it.

In: the folder as the only argument. It runs until its standard input ends.
"""

import os
import random
import sys
import threading
import time

LINES = 24_000
PAUSE_S = 0.3


def log_lines():
    """Some megabytes of text that is alike, but not the same, from line to line."""
    dice = random.Random(7)
    line = "2026-11-28 10:00:00 INFO checkout order={} customer={} articles={} worth={}\n"
    return "".join(line.format(*(dice.randrange(10**digits) for digits in (8, 5, 2, 6))) for _ in range(LINES)).encode()


def archive(folder):
    text = log_lines()
    while True:
        with open(os.path.join(folder, "checkout.log"), "wb") as file:
            file.write(text)
            os.fsync(file.fileno())
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    threading.Thread(target=archive, args=sys.argv[1:2], daemon=True).start()
    sys.stdin.read()
