"""A master that forks workers for ever, as servers do: each has the master's functions where the master has them, and
makes others where its siblings make theirs. Every third runs another program instead, under the same process id.

python3 prefork.py SECONDS FIRST WORKERS [-- PROGRAM ARGUMENT...]...

Each of the programs in turn. One gets the seconds and the number of its first generation as its last arguments.
"""
import os
import sys
import time

import forever

LIFE = "0.3"


def work(turn, number, programs):
    if programs and turn % 3 == 0:
        program = programs[turn // 3 % len(programs)]
        os.execv(program[0], [*program, LIFE, str(number)])
    forever.run(float(LIFE), number)


def told(arguments):
    programs = []
    for argument in arguments:
        if argument == "--":
            programs.append([])
        else:
            programs[-1].append(argument)
    return programs


def main():
    end = time.monotonic() + float(sys.argv[1])
    number, workers, programs = int(sys.argv[2]), int(sys.argv[3]), told(sys.argv[4:])
    alive, turn = 0, 0
    while time.monotonic() < end or alive:
        if alive < workers and time.monotonic() < end:
            # Has no factor in common with 8, so that siblings have different callers.
            number, turn = (number + 1_000_003) % 90_000_000, turn + 1
            if os.fork() == 0:
                try:
                    work(turn, number, programs)
                finally:
                    os._exit(0)
            alive += 1
        else:
            os.wait()
            alive -= 1


main()
