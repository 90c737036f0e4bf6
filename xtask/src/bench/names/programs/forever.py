"""Defines functions, calls them and drops them, for ever: what comes next lies where they lay.

Generation N is four functions, py_a_N to py_d_N. Each is called by the one before alone, and py_a_N by py_s_M alone,
where M is N modulo 8; the eight py_s_M stay. So any other pair of caller and callee is a wrong name.

python3 forever.py SECONDS FIRST
"""
import sys
import time

SOURCE = """
def py_a_{0:08}(x):
    return py_b_{0:08}(x + 1) + 1
def py_b_{0:08}(x):
    return py_c_{0:08}(x + 2) + 1
def py_c_{0:08}(x):
    return py_d_{0:08}(x + 3) + 1
def py_d_{0:08}(x):
    for i in range(1_000):
        x = (x * 31 + i) & 0xFFFFFF
    return x
"""


def py_s_0(made, x):
    return made(x) + 1


def py_s_1(made, x):
    return made(x) + 1


def py_s_2(made, x):
    return made(x) + 1


def py_s_3(made, x):
    return made(x) + 1


def py_s_4(made, x):
    return made(x) + 1


def py_s_5(made, x):
    return made(x) + 1


def py_s_6(made, x):
    return made(x) + 1


def py_s_7(made, x):
    return made(x) + 1


CALLERS = [py_s_0, py_s_1, py_s_2, py_s_3, py_s_4, py_s_5, py_s_6, py_s_7]


def run(seconds, number):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        names = {}
        exec(compile(SOURCE.format(number), "made", "exec"), names)
        made, caller = names[f"py_a_{number:08}"], CALLERS[number % 8]
        x = 1
        # Some live long enough to be asked for, most are gone by then.
        until = min(end, time.monotonic() + (0.8 if number % 32 == 0 else 0.005))
        while time.monotonic() < until:
            for _ in range(10):
                x = caller(made, x)
        del made
        names.clear()
        number += 1


if __name__ == "__main__":
    run(float(sys.argv[1]), int(sys.argv[2]))
