#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far predictions are off, on one page.

  orrery validate operators gemm.csv --rows gemm_rows.csv
  scripts/plot_accuracy.py gemm_rows.csv -o accuracy.png
  scripts/plot_accuracy.py gemm_rows.csv --measurements validation/measurements/h200_sxm/DATE

Panels: predicted over measured time, errors by size class, and, with the CSVs of orrery-measure, the
latency staircase and the bandwidth curves. Needs Debian's python3-matplotlib.
"""

import argparse
import collections
import csv
import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SIZES = [(10, "<10us"), (100, "10-100us"), (1000, "0.1-1ms"), (10000, "1-10ms"), (None, ">10ms")]


def size_class(time_us):
    for limit, name in SIZES:
        if limit is None or time_us < limit:
            return name
    raise AssertionError


def series_name(row):
    kv = row.get("kv_precision", "")
    return row["system"] + " " + row["precision"] + (", " + kv + " KV" if kv not in ("", row["precision"]) else "")


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows or "predicted_us" not in rows[0]:
        sys.exit(path + ": no column predicted_us; write the file with: orrery validate operators TABLE --rows FILE")
    for row in rows:
        row["measured"] = float(row["latency_us"])
        row["predicted"] = float(row["predicted_us"])
    return rows


def by_series(rows):
    series = collections.OrderedDict()
    for row in rows:
        series.setdefault(series_name(row), []).append(row)
    return series


def plot_scatter(axes, rows):
    for name, members in by_series(rows).items():
        axes.plot([r["measured"] for r in members], [r["predicted"] / r["measured"] for r in members], ".", ms=1.5,
                  alpha=0.3, label=name, rasterized=True)
    axes.axhline(1, color="black", lw=0.8)
    axes.set(xscale="log", yscale="log", xlabel="measured time / us", ylabel="predicted / measured",
             title="Predicted over measured")
    axes.set_ylim(0.2, 5)
    axes.set_yticks([0.2, 0.5, 0.8, 1, 1.25, 2, 5], labels=["0.2", "0.5", "0.8", "1", "1.25", "2", "5"])
    axes.minorticks_off()
    axes.legend(fontsize=7, markerscale=6)


def plot_errors(axes, rows):
    """Mean absolute error by size class and series."""
    series = by_series(rows)
    width = 0.8 / max(1, len(series))
    for number, (name, members) in enumerate(series.items()):
        places, heights = [], []
        for place, (_, size) in enumerate(SIZES):
            errors = [abs(r["predicted"] / r["measured"] - 1) for r in members if size_class(r["measured"]) == size]
            if errors:
                places.append(place + (number + 0.5) * width - 0.4)
                heights.append(100 * sum(errors) / len(errors))
        axes.bar(places, heights, width, label=name)
    axes.set_xticks(range(len(SIZES)), [size for _, size in SIZES])
    axes.set(xlabel="measured time", ylabel="mean absolute error / %", title="Error by size class")
    axes.legend(fontsize=7)


def numbers(path, *columns):
    with open(path, newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if all(row.get(column) for column in columns)]


def plot_staircase(axes, path):
    curves = collections.OrderedDict()
    for row in numbers(path, "bytes", "latency_clk"):
        name = " ".join(filter(None, (row.get("test"), row.get("cache_operator"), row.get("stride_bytes") and row["stride_bytes"] + " B")))
        curves.setdefault(name, []).append((float(row["bytes"]), float(row["latency_clk"])))
    for name, points in curves.items():
        points.sort()
        axes.plot(*zip(*points), ".-", ms=3, lw=0.8, label=name)
    axes.set(xscale="log", xlabel="footprint / B", ylabel="latency / clk", title="Latency staircase (pointer chase)")
    axes.legend(fontsize=6, ncol=2)


def plot_bandwidth(axes, folder):
    stream = os.path.join(folder, "hbm_stream.csv")
    if os.path.exists(stream):
        curves = collections.OrderedDict()
        for row in numbers(stream, "read_share", "bytes", "bytes_per_s"):
            best = curves.setdefault("HBM, %.0f %% reads" % (100 * float(row["read_share"])), {})
            size = float(row["bytes"])
            best[size] = max(best.get(size, 0), float(row["bytes_per_s"]) / 1e12)
        for name, best in curves.items():
            axes.plot(sorted(best), [best[size] for size in sorted(best)], ".-", ms=3, lw=0.8, label=name)
    l2 = os.path.join(folder, "l2_read.csv")
    if os.path.exists(l2):
        best = {}
        for row in numbers(l2, "footprint_bytes", "bytes_per_s"):
            size = float(row["footprint_bytes"])
            best[size] = max(best.get(size, 0), float(row["bytes_per_s"]) / 1e12)
        axes.plot(sorted(best), [best[size] for size in sorted(best)], ".--", ms=3, lw=0.8, label="reads by footprint")
    axes.set(xscale="log", xlabel="size / B", ylabel="TB/s", title="Bandwidth")
    axes.legend(fontsize=7)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="rows with predictions, from: orrery validate operators TABLE --rows FILE")
    parser.add_argument("--system", help="only this system")
    parser.add_argument("--measurements", help="folder with the CSVs of orrery-measure")
    parser.add_argument("-o", "--output", default="accuracy.png", help="PNG, SVG or PDF (default: accuracy.png)")
    arguments = parser.parse_args()
    rows = [row for path in arguments.rows for row in read_rows(path)]
    if arguments.system:
        rows = [row for row in rows if row["system"] == arguments.system]
    panels = []
    if rows:
        panels = [lambda axes: plot_scatter(axes, rows), lambda axes: plot_errors(axes, rows)]
    if arguments.measurements:
        chase = os.path.join(arguments.measurements, "pointer_chase.csv")
        if os.path.exists(chase):
            panels.append(lambda axes: plot_staircase(axes, chase))
        panels.append(lambda axes: plot_bandwidth(axes, arguments.measurements))
    if not panels:
        parser.error("nothing to draw: give rows, or --measurements")
    columns = min(2, len(panels))
    lines = (len(panels) + columns - 1) // columns
    figure, grid = plt.subplots(lines, columns, figsize=(6.5 * columns, 4.6 * lines), squeeze=False)
    for axes in grid.flat[len(panels):]:
        axes.remove()
    for axes, panel in zip(grid.flat, panels):
        panel(axes)
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=130)
    print(arguments.output)


if __name__ == "__main__":
    main()
