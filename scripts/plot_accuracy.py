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
import os

from plots import colors, fail, legend_below, pyplot, read_table, save

HINT = "write the file with: orrery validate operators TABLE --rows FILE"
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
    times = ["latency_us", "predicted_us"]
    rows = read_table(path, ["system", "precision"] + times, times, HINT)
    for row in rows:
        row["measured"], row["predicted"] = row["latency_us"], row["predicted_us"]
        if row["measured"] <= 0:
            fail("%s: a latency_us of %g is no time" % (path, row["measured"]))
    return rows


def by_series(rows):
    series = collections.OrderedDict()
    for row in rows:
        series.setdefault(series_name(row), []).append(row)
    return series


def plot_scatter(axes, rows):
    series = by_series(rows)
    for color, (name, members) in zip(colors(len(series)), series.items()):
        axes.plot([r["measured"] for r in members], [r["predicted"] / r["measured"] for r in members], ".", ms=1.5,
                  alpha=0.5, label=name, color=color, rasterized=True)
    axes.axhline(1, color="black", lw=0.8)
    axes.set(xscale="log", yscale="log", xlabel="measured time / us", ylabel="predicted / measured",
             title="Predicted over measured")
    axes.set_ylim(0.2, 5)
    axes.set_yticks([0.2, 0.5, 0.8, 1, 1.25, 2, 5], labels=["0.2", "0.5", "0.8", "1", "1.25", "2", "5"])
    axes.minorticks_off()
    for line in legend_below(axes, columns=3, markerscale=6).get_lines():
        line.set_alpha(1)


def plot_errors(axes, rows):
    """Mean absolute error by size class and series."""
    series = by_series(rows)
    width = 0.8 / max(1, len(series))
    palette = colors(len(series))
    for number, (name, members) in enumerate(series.items()):
        places, heights = [], []
        for place, (_, size) in enumerate(SIZES):
            errors = [abs(r["predicted"] / r["measured"] - 1) for r in members if size_class(r["measured"]) == size]
            if errors:
                places.append(place + (number + 0.5) * width - 0.4)
                heights.append(100 * sum(errors) / len(errors))
        axes.bar(places, heights, width, label=name, color=palette[number])
    axes.set_xticks(range(len(SIZES)), [size for _, size in SIZES])
    axes.set(xlabel="measured time", ylabel="mean absolute error / %", title="Error by size class")
    legend_below(axes, columns=3)


def measured(path, *columns):
    """Rows of a measurement, those left out that have nothing in one of the columns."""
    hint = "write the file with: orrery-measure"
    rows = [row for row in read_table(path, columns, [], hint) if all(row[column] for column in columns)]
    for row in rows:
        for column in columns:
            try:
                row[column] = float(row[column])
            except ValueError:
                fail("%s: column '%s' wants a number, got '%s'" % (path, column, row[column]))
    return rows


def plot_staircase(axes, path):
    curves = collections.OrderedDict()
    for row in measured(path, "bytes", "latency_clk"):
        name = " ".join(filter(None, (row.get("test"), row.get("cache_operator"), row.get("stride_bytes") and row["stride_bytes"] + " B")))
        curves.setdefault(name, []).append((row["bytes"], row["latency_clk"]))
    for color, (name, points) in zip(colors(len(curves)), curves.items()):
        points.sort()
        axes.plot(*zip(*points), ".-", ms=3, lw=0.8, label=name, color=color)
    axes.set(xscale="log", xlabel="footprint / B", ylabel="latency / clk", title="Latency staircase (pointer chase)")
    legend_below(axes)


def plot_bandwidth(axes, folder):
    stream = os.path.join(folder, "hbm_stream.csv")
    if os.path.exists(stream):
        curves = collections.OrderedDict()
        for row in measured(stream, "read_share", "bytes", "bytes_per_s"):
            best = curves.setdefault("HBM, %.0f %% reads" % (100 * row["read_share"]), {})
            best[row["bytes"]] = max(best.get(row["bytes"], 0), row["bytes_per_s"] / 1e12)
        for color, (name, best) in zip(colors(len(curves)), curves.items()):
            axes.plot(sorted(best), [best[size] for size in sorted(best)], ".-", ms=3, lw=0.8, label=name, color=color)
    l2 = os.path.join(folder, "l2_read.csv")
    if os.path.exists(l2):
        best = {}
        for row in measured(l2, "footprint_bytes", "bytes_per_s"):
            size = row["footprint_bytes"]
            best[size] = max(best.get(size, 0), row["bytes_per_s"] / 1e12)
        axes.plot(sorted(best), [best[size] for size in sorted(best)], "--", color="black", lw=0.8, label="reads by footprint")
    axes.set(xscale="log", xlabel="size / B", ylabel="TB/s", title="Bandwidth")
    legend_below(axes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="rows with predictions, from: orrery validate operators TABLE --rows FILE")
    parser.add_argument("--system", help="only this system")
    parser.add_argument("--measurements", help="folder with the CSVs of orrery-measure")
    parser.add_argument("-o", "--output", default="accuracy.png", help="PNG, SVG or PDF (default: accuracy.png)")
    arguments = parser.parse_args()
    rows = [row for path in arguments.rows for row in read_rows(path)]
    if arguments.system:
        systems = sorted({row["system"] for row in rows})
        rows = [row for row in rows if row["system"] == arguments.system]
        if systems and not rows:
            fail("no rows of the system '%s'; there are: %s" % (arguments.system, ", ".join(systems)))
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
    plt = pyplot()
    figure, grid = plt.subplots(lines, columns, figsize=(6.5 * columns, 5.8 * lines), squeeze=False)
    for axes in grid.flat[len(panels):]:
        axes.remove()
    for axes, panel in zip(grid.flat, panels):
        panel(axes)
        axes.grid(alpha=0.3)
    figure.tight_layout()
    save(figure, arguments.output)


if __name__ == "__main__":
    main()
