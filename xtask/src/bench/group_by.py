"""Counts the samples of a window by stack with DuckDB, as the server's tree begins, and prints how long that takes as JSON.

Arguments: the data directory, threads, repetitions. The table's files are those that the deltalake package names.
"""

import json
import resource
import sys
import time

import deltalake
import duckdb

data, threads, repeat = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
files = [uri.removeprefix("file://") for uri in deltalake.DeltaTable(f"{data}/samples").file_uris()]
duck = duckdb.connect()
duck.execute(f"SET threads = {threads}")
query = f"SELECT count(*), sum(n) FROM (SELECT stack_id, count(*) AS n FROM read_parquet({files!r}) GROUP BY stack_id)"


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


runs = []
for _ in range(repeat):
    begin, before = time.monotonic(), cpu()
    stacks, samples = duck.execute(query).fetchone()
    runs.append((time.monotonic() - begin, cpu() - before))
json.dump({"stacks": stacks, "samples": int(samples), "runs": runs}, sys.stdout)
