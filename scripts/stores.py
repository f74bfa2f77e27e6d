# SPDX-License-Identifier: Apache-2.0
"""What the plotting scripts read of result stores: results of the newest engine, what tells them apart."""

import json
import os
import sqlite3
import subprocess
import sys

from plots import fail

LABELS = {"name", "model.model", "model.source", "system.system", "system.name", "system.accelerator.accelerator",
          "system.accelerator.name", "system.accelerator.architecture"}


def open_store(path, hint):
    if not os.path.exists(path):
        fail("%s: no such file" % path)
    try:
        store = sqlite3.connect("file:%s?mode=ro" % path.replace("?", "%3f").replace("#", "%23"), uri=True)
        store.row_factory = sqlite3.Row
        names = {row["name"] for row in store.execute("SELECT name FROM sqlite_schema")}
    except sqlite3.DatabaseError as error:
        fail("%s: %s" % (path, error))
    if not {"points", "v_runs", "varied"} <= names:
        fail("%s: this is no result store; %s" % (path, hint))
    return store


def identities_that(path, where):
    """Identities of the points that keep a condition, in the language of orrery, which is asked for them."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    program = os.environ.get("ORRERY", os.path.join(root, "build", "release", "orrery"))
    try:
        answer = subprocess.run([program, "export", path, "--jsonl", "--where", where], capture_output=True, text=True)
    except OSError as error:
        fail("--where needs the program orrery: %s: %s; ORRERY=PATH names another" % (program, error.strerror))
    if answer.returncode != 0:
        print(answer.stderr, end="", file=sys.stderr)
        sys.exit(2)
    return {json.loads(line)["identity"] for line in answer.stdout.splitlines()}


def read_results(store, path, metrics, where, hint):
    """Rows of v_runs that have all metrics, with their point; `where` is a condition as of orrery pareto."""
    known = [row["name"] for row in store.execute("SELECT name FROM pragma_table_info('v_runs')")]
    for metric in metrics:
        if metric not in known:
            fail("%s: no result has the metric '%s'; %s" % (path, metric, hint))
    engines = [row[0] for row in store.execute("SELECT DISTINCT engine_version FROM points WHERE status = 'ok'")]
    if not engines:
        fail("%s: has no results; %s" % (path, hint))
    newest = max(engines, key=lambda engine: (len(engine), engine))
    quoted = ", ".join('v."%s"' % metric for metric in metrics)
    condition = " AND ".join('v."%s" IS NOT NULL' % metric for metric in metrics)
    sql = ("SELECT p.point, p.base, p.identity, p.name, %s FROM v_runs v JOIN points p USING (identity)"
           " WHERE v.status = 'ok' AND v.engine_version = ? AND %s" % (quoted, condition))
    rows = store.execute(sql + " ORDER BY p.identity", (newest,)).fetchall()
    if where:
        kept = identities_that(path, where)
        rows = [row for row in rows if row["identity"] in kept]
    if not rows:
        fail("%s: no result has %s and keeps the condition; %s" % (path, " and ".join(metrics), hint))
    return rows


def read_bases(store, rows):
    """Texts by path, by base."""
    bases = {}
    for base in {row["base"] for row in rows if row["base"] is not None}:
        text = store.execute("SELECT json FROM configurations WHERE base = ?", (base,)).fetchone()[0]
        bases[base] = {entry[0]: entry[1] for entry in json.loads(text)["parameters"]}
    return bases


def follows(path, name, inputs):
    """Whether all values of a path go with those of a name above it: system.system tells system.memory."""
    above, _, last = name.rpartition(".")
    if not above or name == path or above.rpartition(".")[2] != last or not path.startswith(above + "."):
        return False
    told = {}
    return all(told.setdefault(a, b) == b for a, b in zip(inputs[name], inputs[path]))


def read_inputs(store, rows):
    """Texts by path, then by row, of the paths that tell rows apart, without what follows from names."""
    bases = read_bases(store, rows)
    paths = {row[0] for row in store.execute("SELECT DISTINCT axis FROM varied")}
    for texts in bases.values():
        for other in bases.values():
            paths |= {path for path, text in texts.items() if other.get(path) != text}
    varied = {}
    for row in store.execute("SELECT point, axis, text FROM varied"):
        varied.setdefault(row["point"], {})[row["axis"]] = row["text"]
    inputs = {}
    for path in sorted(paths):
        texts = [varied.get(row["point"], {}).get(path, bases.get(row["base"], {}).get(path, "-")) for row in rows]
        if len(set(texts)) > 1 and not path.endswith(".source"):
            inputs[path] = texts
    return {path: texts for path, texts in inputs.items()
            if not any(follows(path, name, inputs) for name in inputs) and (path not in LABELS or path.count(".") == 1)}
