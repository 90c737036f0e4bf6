"""Reads the tables with engines that are not the server's, and prints what they count as JSON.

Arguments: the data directory, and the document whose examples read tables. The files of each table are found twice: by
the deltalake package, and by reading the log here as Delta's protocol says, its checkpoint with DuckDB. DuckDB then
counts samples by hour, service and stack. (Its own Delta extension comes from a site of its own, and from no package.)
"""

import contextlib
import glob
import io
import json
import os
import re
import sys

import deltalake
import duckdb

data = sys.argv[1]
duck = duckdb.connect()


def replayed(table):
    """The live files of a table, and the versions from which they are known."""
    log = f"{data}/{table}/_delta_log"
    live, first = set(), 0
    if os.path.exists(f"{log}/_last_checkpoint"):
        with open(f"{log}/_last_checkpoint") as hint:
            first = json.load(hint)["version"]
        checkpoint = f"{log}/{first:020}.checkpoint.parquet"
        added = duck.execute(f"SELECT add.path FROM '{checkpoint}' WHERE add.path IS NOT NULL")
        live = {path for (path,) in added.fetchall()}
        first += 1
    entries = sorted(glob.glob(f"{log}/*.json"))
    entries = [entry for entry in entries if int(os.path.basename(entry)[:20]) >= first]
    for at, entry in enumerate(entries):
        assert int(os.path.basename(entry)[:20]) == first + at, f"{entry}: an entry before it is missing"
        with open(entry) as lines:
            for action in map(json.loads, lines):
                if "add" in action:
                    live.add(action["add"]["path"])
                if "remove" in action:
                    live.discard(action["remove"]["path"])
    return live, first, first + len(entries) - 1


def parquet(table, paths):
    files = [f"{data}/{table}/{path}" for path in sorted(paths)]
    return f"read_parquet({files!r}, hive_partitioning = true, hive_types_autocast = false)"


answer = {"tables": {}}
sources = {}
for table in sorted(name for name in os.listdir(data) if os.path.isdir(f"{data}/{name}/_delta_log")):
    delta = deltalake.DeltaTable(f"{data}/{table}")
    root = f"{data}/{table}/"
    named = {uri.removeprefix("file://").removeprefix(root) for uri in delta.file_uris()}
    live, first, last = replayed(table)
    assert named == live, f"{table}: deltalake names {len(named)} files, the log {len(live)}"
    rows = 0
    # No roll-up is made of an hour before it is over.
    if live:
        sources[table] = parquet(table, live)
        (rows,) = duck.execute(f"SELECT count(*) FROM {sources[table]}").fetchone()
    counted = deltalake.QueryBuilder().register("t", delta).execute("SELECT count(*) AS n FROM t").read_all()
    assert counted["n"][0].as_py() == rows, f"{table}: deltalake counts other rows than DuckDB's {rows}"
    answer["tables"][table] = {"files": len(live), "rows": rows, "first_entry": first, "version": last}

grouped = f"SELECT hour, service, stack_id::VARCHAR, count(*) FROM {sources['samples']} GROUP BY ALL ORDER BY ALL"
answer["groups"] = duck.execute(grouped).fetchall()
joined = (
    f"SELECT count(*) FROM {sources['samples']} s JOIN (SELECT DISTINCT stack_id, day FROM {sources['stacks']}) t"
    " ON s.stack_id = t.stack_id AND left(s.hour, 10) = t.day"
)
(answer["joined"],) = duck.execute(joined).fetchone()

# What the document's examples print, each as it stands there, of the data directory that it calls DATA.
answer["examples"] = []
with open(sys.argv[2]) as document:
    for example in re.findall(r"^```python\n(.*?)^```$", document.read(), re.DOTALL | re.MULTILINE):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(example.replace("DATA/", f"{data}/"), {})
        answer["examples"].append(printed.getvalue())
json.dump(answer, sys.stdout)
