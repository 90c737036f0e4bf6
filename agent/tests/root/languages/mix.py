"""A known mix: of all units of work seven in ten are done at the end of the chain a1, a2, ... a12, three in ten at the
end of b1, b2, ... b12. Time ends it, and never divides it.

python3 mix.py SECONDS MODE
"""
import functools
import os
import sys
import threading
import time

TURNS = 2_000

def a1(x):
    return a2(x + 1) + 1

def a2(x):
    return a3(x + 2) + 1

def a3(x):
    return a4(x + 3) + 1

def a4(x):
    return a5(x + 4) + 1

def a5(x):
    return a6(x + 5) + 1

def a6(x):
    return a7(x + 6) + 1

def a7(x):
    return a8(x + 7) + 1

def a8(x):
    return a9(x + 8) + 1

def a9(x):
    return a10(x + 9) + 1

def a10(x):
    return a11(x + 10) + 1

def a11(x):
    return a12(x + 11) + 1

def a12(x):
    for i in range(TURNS):
        x = (x * 31 + i) & 0xFFFFFF
    return x

def b1(x):
    return b2(x + 1) + 1

def b2(x):
    return b3(x + 2) + 1

def b3(x):
    return b4(x + 3) + 1

def b4(x):
    return b5(x + 4) + 1

def b5(x):
    return b6(x + 5) + 1

def b6(x):
    return b7(x + 6) + 1

def b7(x):
    return b8(x + 7) + 1

def b8(x):
    return b9(x + 8) + 1

def b9(x):
    return b10(x + 9) + 1

def b10(x):
    return b11(x + 10) + 1

def b11(x):
    return b12(x + 11) + 1

def b12(x):
    for i in range(TURNS):
        x = (x * 31 + i) & 0xFFFFFF
    return x

def a_deep(depth, x):
    return a_deep(depth - 1, x + 1) if depth > 1 else a12(x)

def b_deep(depth, x):
    return b_deep(depth - 1, x + 1) if depth > 1 else b12(x)

def a1_made(x):
    yield from a2_made(x + 1)

def a2_made(x):
    yield from a3_made(x + 2)

def a3_made(x):
    yield from a4_made(x + 3)

def a4_made(x):
    yield from a5_made(x + 4)

def a5_made(x):
    yield from a6_made(x + 5)

def a6_made(x):
    yield from a7_made(x + 6)

def a7_made(x):
    yield from a8_made(x + 7)

def a8_made(x):
    yield from a9_made(x + 8)

def a9_made(x):
    yield from a10_made(x + 9)

def a10_made(x):
    yield from a11_made(x + 10)

def a11_made(x):
    yield from a12_made(x + 11)

def a12_made(x):
    for i in range(TURNS):
        x = (x * 31 + i) & 0xFFFFFF
        if i % 500 == 0:
            yield x

def b1_made(x):
    yield from b2_made(x + 1)

def b2_made(x):
    yield from b3_made(x + 2)

def b3_made(x):
    yield from b4_made(x + 3)

def b4_made(x):
    yield from b5_made(x + 4)

def b5_made(x):
    yield from b6_made(x + 5)

def b6_made(x):
    yield from b7_made(x + 6)

def b7_made(x):
    yield from b8_made(x + 7)

def b8_made(x):
    yield from b9_made(x + 8)

def b9_made(x):
    yield from b10_made(x + 9)

def b10_made(x):
    yield from b11_made(x + 10)

def b11_made(x):
    yield from b12_made(x + 11)

def b12_made(x):
    for i in range(TURNS):
        x = (x * 31 + i) & 0xFFFFFF
        if i % 500 == 0:
            yield x

def a1_called(x):
    return functools.reduce(lambda _, one: a2_called(one), [0, x])

def a2_called(x):
    return a3_called(x) + 1

def a3_called(x):
    return sorted([x, x + 1], key=a4_called)[0]

def a4_called(x):
    return functools.reduce(lambda _, one: a5_called(one), [0, x])

def a5_called(x):
    return a6_called(x) + 1

def a6_called(x):
    return sorted([x, x + 1], key=a7_called)[0]

def a7_called(x):
    return functools.reduce(lambda _, one: a8_called(one), [0, x])

def a8_called(x):
    return a9_called(x) + 1

def a9_called(x):
    return sorted([x, x + 1], key=a10_called)[0]

def a10_called(x):
    return functools.reduce(lambda _, one: a11_called(one), [0, x])

def a11_called(x):
    return a12_called(x) + 1

def a12_called(x):
    for i in range(TURNS // 8):
        x = (x * 31 + i) & 0xFFFFFF
    return x

def b1_called(x):
    return functools.reduce(lambda _, one: b2_called(one), [0, x])

def b2_called(x):
    return b3_called(x) + 1

def b3_called(x):
    return sorted([x, x + 1], key=b4_called)[0]

def b4_called(x):
    return functools.reduce(lambda _, one: b5_called(one), [0, x])

def b5_called(x):
    return b6_called(x) + 1

def b6_called(x):
    return sorted([x, x + 1], key=b7_called)[0]

def b7_called(x):
    return functools.reduce(lambda _, one: b8_called(one), [0, x])

def b8_called(x):
    return b9_called(x) + 1

def b9_called(x):
    return sorted([x, x + 1], key=b10_called)[0]

def b10_called(x):
    return functools.reduce(lambda _, one: b11_called(one), [0, x])

def b11_called(x):
    return b12_called(x) + 1

def b12_called(x):
    for i in range(TURNS // 8):
        x = (x * 31 + i) & 0xFFFFFF
    return x

def a1_thrown(x):
    return a2_thrown(x + 1) + 1

def a2_thrown(x):
    return a3_thrown(x + 2) + 1

def a3_thrown(x):
    return a4_thrown(x + 3) + 1

def a4_thrown(x):
    return a5_thrown(x + 4) + 1

def a5_thrown(x):
    return a6_thrown(x + 5) + 1

def a6_thrown(x):
    return a7_thrown(x + 6) + 1

def a7_thrown(x):
    return a8_thrown(x + 7) + 1

def a8_thrown(x):
    return a9_thrown(x + 8) + 1

def a9_thrown(x):
    return a10_thrown(x + 9) + 1

def a10_thrown(x):
    return a11_thrown(x + 10) + 1

def a11_thrown(x):
    return a12_thrown(x + 11) + 1

def a12_thrown(x):
    for i in range(TURNS):
        x = (x * 31 + i) & 0xFFFFFF
    raise ValueError(x)

def b1_thrown(x):
    return b2_thrown(x + 1) + 1

def b2_thrown(x):
    return b3_thrown(x + 2) + 1

def b3_thrown(x):
    return b4_thrown(x + 3) + 1

def b4_thrown(x):
    return b5_thrown(x + 4) + 1

def b5_thrown(x):
    return b6_thrown(x + 5) + 1

def b6_thrown(x):
    return b7_thrown(x + 6) + 1

def b7_thrown(x):
    return b8_thrown(x + 7) + 1

def b8_thrown(x):
    return b9_thrown(x + 8) + 1

def b9_thrown(x):
    return b10_thrown(x + 9) + 1

def b10_thrown(x):
    return b11_thrown(x + 10) + 1

def b11_thrown(x):
    return b12_thrown(x + 11) + 1

def b12_thrown(x):
    for i in range(TURNS):
        x = (x * 31 + i) & 0xFFFFFF
    raise ValueError(x)

async def a1_async(x):
    return await a2_async(x + 1) + 1

async def a2_async(x):
    return await a3_async(x + 2) + 1

async def a3_async(x):
    return await a4_async(x + 3) + 1

async def a4_async(x):
    return await a5_async(x + 4) + 1

async def a5_async(x):
    return await a6_async(x + 5) + 1

async def a6_async(x):
    return await a7_async(x + 6) + 1

async def a7_async(x):
    return await a8_async(x + 7) + 1

async def a8_async(x):
    return await a9_async(x + 8) + 1

async def a9_async(x):
    return await a10_async(x + 9) + 1

async def a10_async(x):
    return await a11_async(x + 10) + 1

async def a11_async(x):
    return await a12_async(x + 11) + 1

async def a12_async(x):
    for i in range(TURNS):
        x = (x * 31 + i) & 0xFFFFFF
        if i % 500 == 0:
            await asyncio.sleep(0)
    return x

async def b1_async(x):
    return await b2_async(x + 1) + 1

async def b2_async(x):
    return await b3_async(x + 2) + 1

async def b3_async(x):
    return await b4_async(x + 3) + 1

async def b4_async(x):
    return await b5_async(x + 4) + 1

async def b5_async(x):
    return await b6_async(x + 5) + 1

async def b6_async(x):
    return await b7_async(x + 6) + 1

async def b7_async(x):
    return await b8_async(x + 7) + 1

async def b8_async(x):
    return await b9_async(x + 8) + 1

async def b9_async(x):
    return await b10_async(x + 9) + 1

async def b10_async(x):
    return await b11_async(x + 10) + 1

async def b11_async(x):
    return await b12_async(x + 11) + 1

async def b12_async(x):
    for i in range(TURNS):
        x = (x * 31 + i) & 0xFFFFFF
        if i % 500 == 0:
            await asyncio.sleep(0)
    return x

def a1_green(x):
    return a2_green(x + 1) + 1

def a2_green(x):
    return a3_green(x + 2) + 1

def a3_green(x):
    return a4_green(x + 3) + 1

def a4_green(x):
    return sorted([x, x + 1], key=a5_green)[0]

def a5_green(x):
    return a6_green(x + 5) + 1

def a6_green(x):
    return a7_green(x + 6) + 1

def a7_green(x):
    return a8_green(x + 7) + 1

def a8_green(x):
    return sorted([x, x + 1], key=a9_green)[0]

def a9_green(x):
    return a10_green(x + 9) + 1

def a10_green(x):
    return a11_green(x + 10) + 1

def a11_green(x):
    return a12_green(x + 11) + 1

def a12_green(x):
    for i in range(TURNS):
        x = (x * 31 + i) & 0xFFFFFF
        if i % 500 == 0:
            greenlet.getcurrent().parent.switch()
    return x

def b1_green(x):
    return b2_green(x + 1) + 1

def b2_green(x):
    return b3_green(x + 2) + 1

def b3_green(x):
    return b4_green(x + 3) + 1

def b4_green(x):
    return sorted([x, x + 1], key=b5_green)[0]

def b5_green(x):
    return b6_green(x + 5) + 1

def b6_green(x):
    return b7_green(x + 6) + 1

def b7_green(x):
    return b8_green(x + 7) + 1

def b8_green(x):
    return sorted([x, x + 1], key=b9_green)[0]

def b9_green(x):
    return b10_green(x + 9) + 1

def b10_green(x):
    return b11_green(x + 10) + 1

def b11_green(x):
    return b12_green(x + 11) + 1

def b12_green(x):
    for i in range(TURNS):
        x = (x * 31 + i) & 0xFFFFFF
        if i % 500 == 0:
            greenlet.getcurrent().parent.switch()
    return x

def caught(function, x):
    try:
        return function(x)
    except ValueError as error:
        return error.args[0]


def drained(function, x):
    for x in function(x):
        pass
    return x


def mix(a, b):
    x = 1
    for _ in range(7):
        x = a(x)
    for _ in range(3):
        x = b(x)


def threads():
    def times(count, function):
        for _ in range(count):
            function(1)

    both = [
        threading.Thread(target=times, args=(140, a1), name="mix-a"),
        threading.Thread(target=times, args=(60, b1), name="mix-b"),
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()


def tasks():
    """Tasks take turns in one loop, each of which resumes a whole chain."""

    async def all_of_them():
        chains = [a1_async] * 70 + [b1_async] * 30
        await asyncio.gather(*(chain(1) for chain in chains))

    asyncio.run(all_of_them())


def greenlets():
    """Take turns as tasks do, each in a stack of its own, of which C is a part. They begin at different depths, and
    go on where others have been meanwhile."""

    def begun(function, depth):
        if depth > 0:
            return begun(function, depth - 1)
        chain = greenlet.greenlet(function)
        chain.switch(1)
        return chain

    chains = [begun(a1_green, number % 9) for number in range(70)]
    chains += [begun(b1_green, number % 9) for number in range(30)]
    while chains:
        for chain in chains:
            chain.switch()
        chains = [chain for chain in chains if not chain.dead]


def interpreters():
    """The same program in an interpreter of its own, which is there until the end."""
    try:
        import _interpreters as api
    except ImportError:
        import _xxsubinterpreters as api
    folder = os.path.dirname(os.path.abspath(__file__))
    program = (
        "import sys\n"
        "sys.dont_write_bytecode = True\n"
        f"sys.argv = ['mix.py', {sys.argv[1]!r}, 'plain']\n"
        f"sys.path.insert(0, {folder!r})\n"
        "import mix\n"
    )
    interpreter = api.create()
    failed = api.run_string(interpreter, program)
    if failed is not None:
        raise SystemExit(f"the interpreter's program failed: {failed}")
    api.destroy(interpreter)


MODES = {
    "plain": lambda: mix(a1, b1),
    "recursion": lambda: mix(lambda x: a_deep(200, x), lambda x: b_deep(200, x)),
    "generator": lambda: mix(lambda x: drained(a1_made, x), lambda x: drained(b1_made, x)),
    "callback": lambda: mix(a1_called, b1_called),
    "exception": lambda: mix(lambda x: caught(a1_thrown, x), lambda x: caught(b1_thrown, x)),
    "threads": threads,
    "asyncio": tasks,
    "greenlets": greenlets,
    "interpreters": interpreters,
}

if sys.argv[2] == "asyncio":
    import asyncio
if sys.argv[2] == "greenlets":
    import greenlet

end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    MODES[sys.argv[2]]()
