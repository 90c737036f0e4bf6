import sys
import time


def level(depth):
    if depth:
        return level(depth - 1) + 1
    return sum(x * x for x in range(2000))


limit = float(sys.argv[1])
while time.process_time() < limit:
    sorted(range(300), key=lambda x: level(3) % (x + 1) if x % 50 == 0 else -x)
