"""What reads memory.stat of every cgroup again and again, in `cargo xtask demo stalls`.

In: the CPU that it runs on. It runs until its standard input ends.
"""

import ctypes
import os
import sys
import threading
import time
from pathlib import Path

PR_SET_NAME = 15
# So long it reads, then it rests.
READS_S = 0.18
RESTS_S = 0.3


def read_stat(files):
    for file in files:
        try:
            file.read_bytes()
        except OSError:
            pass  # The cgroup is gone.


def collect(files):
    end = time.monotonic() + READS_S
    while time.monotonic() < end:
        read_stat(files)


def main():
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"cadvisor", 0, 0, 0)
    os.sched_setaffinity(0, {int(sys.argv[1])})
    files = list(Path("/sys/fs/cgroup").rglob("memory.stat"))
    if not files:
        sys.exit("no memory.stat below /sys/fs/cgroup")
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set():
        collect(files)
        time.sleep(RESTS_S)


main()
