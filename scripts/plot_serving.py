#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What served requests of a result store say, on one page.

  orrery sweep run configs/sweeps/serving_rates.yaml --db rates.db
  scripts/plot_serving.py rates.db -o serving.png
  orrery run EXPERIMENT.yaml --set serving.record=requests --db one.db
  scripts/plot_serving.py one.db -o one.png

Panels: tokens/s of an accelerator over tokens/s of a user, a curve a name, with the points that no other beats; and, for a
result with the rows of its requests (the last one, or --point IDENTITY), the distributions of TTFT and TPOT, requests that
wait and run, and the use of the KV cache over time. Needs Debian's python3-matplotlib.
"""

import argparse
import math
import os
import sqlite3

from plots import colors, fail, legend_below, pyplot, save

HINT = "write it with: orrery run EXPERIMENT --set serving.record=requests --db FILE"


def open_store(path):
    if not os.path.exists(path):
        fail("%s: no such file" % path)
    try:
        store = sqlite3.connect("file:%s?mode=ro" % path.replace("?", "%3f").replace("#", "%23"), uri=True)
        store.row_factory = sqlite3.Row
        names = {row["name"] for row in store.execute("SELECT name FROM sqlite_schema")}
    except sqlite3.DatabaseError as error:
        fail("%s: %s" % (path, error))
    if "metrics_serving" not in names:
        fail("%s: has no results of serving; %s" % (path, HINT))
    return store, names


def read_points(store):
    """Name, tokens/s of a user and of an accelerator, of each result that has both."""
    rows = store.execute("SELECT points.name, output_throughput_per_user AS user, output_throughput_per_accelerator AS"
                         " accelerator FROM points JOIN metrics_serving USING (point) WHERE status = 'ok'")
    return [row for row in rows if row["user"] and row["accelerator"]]


def front(points):
    """Those that no other beats in both, by falling tokens/s of a user."""
    best, kept = -math.inf, []
    for user, accelerator in sorted(points, reverse=True):
        if accelerator > best:
            best = accelerator
            kept.append((user, accelerator))
    return kept


def plot_pareto(axes, rows):
    series = {}
    for row in rows:
        series.setdefault(row["name"], []).append((row["user"], row["accelerator"]))
    for color, (name, points) in zip(colors(len(series)), series.items()):
        axes.plot(*zip(*points), ".", color=color, ms=5, label=name)
        axes.plot(*zip(*front(points)), "-", color=color, lw=0.8)
    every = front([(row["user"], row["accelerator"]) for row in rows])
    axes.plot(*zip(*every), "o", color="black", mfc="none", ms=8, mew=0.8, label="beaten by none in both")
    axes.set(xlabel="output tokens/s of a user", ylabel="output tokens/s of an accelerator",
             title="Throughput against speed", ylim=(0, None), xlim=(0, None))
    axes.grid(lw=0.3)
    legend_below(axes, columns=1)


def choose_point(store, names, wanted):
    """Key and name of the result whose requests are drawn; None where no result has some."""
    if "requests" not in names:
        return None
    where, values = ("identity GLOB ?", (wanted + "*",)) if wanted else ("1", ())
    query = ("SELECT point, name, identity FROM points WHERE %s AND point IN (SELECT DISTINCT point FROM requests)"
             " ORDER BY point DESC LIMIT 1" % where)
    row = store.execute(query, values).fetchone()
    if row is None and wanted:
        fail("no result %s has the rows of its requests; %s" % (wanted, HINT))
    return row


def plot_distribution(axes, values, name, unit, scale):
    values = sorted(value * scale for value in values)
    if not values:
        return
    shares = [(i + 1) / len(values) for i in range(len(values))]
    axes.step(values, shares, where="post", lw=1, label=name)
    for share in (0.5, 0.9, 0.99):
        value = values[min(len(values) - 1, math.ceil(share * len(values)) - 1)]
        axes.plot([value], [share], "k.", ms=4)
        axes.annotate("p%d %.3g %s" % (round(100 * share), value, unit), (value, share), fontsize=7, ha="right", va="bottom",
                      xytext=(-3, 1), textcoords="offset points")
    wide = values[0] > 0 and values[-1] > 20 * values[0]
    axes.set(xscale="log" if wide else "linear", xlabel="%s / %s" % (name, unit), ylabel="share of the requests", ylim=(0, 1.05), title=name)
    axes.grid(lw=0.3, which="both")


def by_instance(samples):
    series = {}
    for row in samples:
        series.setdefault(int(row["instance"]), []).append(row)
    return series


def plot_queue(axes, samples):
    """Sums over instances: each counts as it was last seen."""
    last, times, waiting, running = {}, [], [], []
    for row in samples:
        last[row["instance"]] = row
        times.append(row["time_s"])
        waiting.append(sum(r["waiting"] for r in last.values()))
        running.append(sum(r["running"] for r in last.values()))
    axes.step(times, running, where="post", lw=0.8, label="run")
    axes.step(times, waiting, where="post", lw=0.8, label="wait")
    axes.set(xlabel="time / s", ylabel="requests", title="Requests of all instances", ylim=(0, None))
    axes.grid(lw=0.3)
    axes.legend(fontsize=7)


def plot_cache(axes, samples):
    series = by_instance(samples)
    for color, (instance, rows) in zip(colors(len(series)), sorted(series.items())):
        axes.step([r["time_s"] for r in rows], [100 * r["kv_used_share"] for r in rows], where="post", lw=0.8, color=color,
                  label="instance %d" % instance if len(series) <= 12 else None)
    axes.set(xlabel="time / s", ylabel="blocks that requests hold / %", title="KV cache", ylim=(0, None))
    axes.grid(lw=0.3)
    if len(series) <= 12:
        axes.legend(fontsize=7)


def plot_requests(axes, store, point):
    requests = store.execute("SELECT * FROM requests WHERE point = ?", (point["point"],)).fetchall()
    samples = store.execute("SELECT * FROM samples WHERE point = ? ORDER BY position", (point["point"],)).fetchall()
    plot_distribution(axes[0], [r["first_token_s"] - r["arrival_s"] for r in requests], "TTFT", "ms", 1e3)
    several = [r for r in requests if r["output_tokens"] > 1]
    plot_distribution(axes[1], [(r["last_token_s"] - r["first_token_s"]) / (r["output_tokens"] - 1) for r in several],
                      "TPOT", "ms", 1e3)
    plot_queue(axes[2], samples)
    plot_cache(axes[3], samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", help="result store with experiments of kind serving")
    parser.add_argument("--point", default="", help="begin of the identity of the result whose requests are drawn")
    parser.add_argument("-o", "--output", default="serving.png", help="picture to write (default: serving.png)")
    arguments = parser.parse_args()
    store, names = open_store(arguments.store)
    rows = read_points(store)
    if not rows:
        fail("%s: has no results of serving with times of tokens" % arguments.store)
    point = choose_point(store, names, arguments.point)
    plot = pyplot()
    if point is None:
        figure, axes = plot.subplots(figsize=(7, 5))
        plot_pareto(axes, rows)
    else:
        figure, axes = plot.subplots(2, 3, figsize=(15, 8.5))
        plot_pareto(axes[0][0], rows)
        plot_requests([axes[0][1], axes[0][2], axes[1][0], axes[1][1]], store, point)
        axes[1][2].axis("off")
        figure.suptitle("%s (%s)" % (point["name"], point["identity"][:12]), fontsize=11)
        figure.tight_layout()
    save(figure, arguments.output)


if __name__ == "__main__":
    main()
