#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rooflines of accelerators side by side, and trends of GPUs over the years.

  orrery describe accelerators --json > devices.json
  scripts/plot_devices.py devices.json --only h100_sxm,mi300x,tpu_v5p --precision bf16 -o rooflines.png
  scripts/plot_devices.py --trends scripts/gpu_generations.csv -o trends.png
  scripts/plot_devices.py --trends scripts/gpu_generations.csv     # the fits as a table, no picture

Rooflines: dense peak of a format over the memory's bandwidth, as published. Trends: figures of a
table of generations by year, with the straight line through their logarithms: a doubling time is
ln 2 over its slope, its error the standard error of the slope. Pictures need Debian's
python3-matplotlib.
"""

import argparse
import math

from plots import colors, fail, legend_below, pyplot, read_json, read_table, save

HINT = "write the file with: orrery describe accelerators --json"
MOORE_MONTHS = (18, 24, 36)


# ---- rooflines ----

def read_devices(path, only, precision):
    """Name, peak in FLOP/s and bandwidth in B/s of those that have the format."""
    devices = read_json(path, HINT)
    if not isinstance(devices, list) or not all(isinstance(row, dict) and "bandwidth" in row for row in devices):
        fail(path + ": no list of accelerators; " + HINT)
    known = {row["name"]: row for row in devices}
    for name in only:
        if name not in known:
            fail("%s: there is no '%s'" % (path, name))
    chosen = [known[name] for name in only] if only else devices
    rows = [(row["name"], row.get(precision), row["bandwidth"]) for row in chosen]
    lacking = [name for name, peak, _ in rows if not peak]
    if only and lacking:
        fail("%s: %s has no rate of %s" % (path, ", ".join(lacking), precision))
    rows = [row for row in rows if row[1]]
    if not rows:
        fail("%s: no accelerator has a rate of %s" % (path, precision))
    return sorted(rows, key=lambda row: -row[1])


def plot_rooflines(rows, precision, path):
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(8, 5.5))
    ridges = [peak / bandwidth for _, peak, bandwidth in rows]
    low, high = min(ridges) / 30, max(ridges) * 8
    palette = colors(len(rows))
    for number, (name, peak, bandwidth) in enumerate(rows):
        ridge = peak / bandwidth
        style = ("-", "--", ":")[number // 10 % 3]
        axes.plot([low, ridge, high], [low * bandwidth / 1e12, peak / 1e12, peak / 1e12], style,
                  color=palette[number], lw=1.4,
                  label="%s: %s TFLOP/s, %.3g TB/s, ridge %.0f" % (name, tidy(peak / 1e12), bandwidth / 1e12, ridge))
        axes.plot([ridge], [peak / 1e12], "o", ms=4, color=palette[number])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_xlabel("FLOP per byte of memory traffic")
    axes.set_ylabel("TFLOP/s, dense %s" % precision)
    axes.grid(True, which="major", lw=0.3)
    axes.set_title("Rooflines as published")
    legend_below(axes)
    save(figure, path)


# ---- trends ----

def fit(points):
    """Doubling time in years, its standard error and growth a year, of (year, value) by least squares of logarithms."""
    count = len(points)
    xs, ys = [x for x, _ in points], [math.log2(y) for _, y in points]
    mean_x, mean_y = sum(xs) / count, sum(ys) / count
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / spread
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in zip(xs, ys))
    error = math.sqrt(rest / (count - 2) / spread) if count > 2 else math.inf
    return {"slope": slope, "offset": mean_y - slope * mean_x, "years": 1 / slope if slope else math.inf,
            "error": error / slope ** 2 if slope else math.inf,
            "growth": 2 ** slope - 1, "count": count, "scatter": math.sqrt(rest / max(1, count - 2))}


def value(row, column):
    return float(row[column]) if row[column] else None


def ratio(top, bottom):
    def get(row):
        above, below = best(row) if top == "best" else value(row, top), value(row, bottom)
        return above / below if above and below else None
    return get


def best(row):
    """The fastest dense rate of 16 or more bits: tensor cores where there are any."""
    return value(row, "matrix_tflops") or value(row, "fp32_tflops")


FIGURES = [
    ("FP32 vector TFLOP/s", lambda row: value(row, "fp32_tflops")),
    ("best dense TFLOP/s, 16 bits or more", best),
    ("memory GB/s", lambda row: value(row, "bandwidth_gbs")),
    ("memory GB", lambda row: value(row, "memory_gb")),
    ("best GFLOP/s per USD", lambda row: ratio("best", "usd")(row) and 1e3 * ratio("best", "usd")(row)),
    ("best GFLOP/s per W", lambda row: ratio("best", "watts")(row) and 1e3 * ratio("best", "watts")(row)),
    ("FLOP per byte of bandwidth", lambda row: 1e3 * ratio("best", "bandwidth_gbs")(row)),
    ("W", lambda row: value(row, "watts")),
]


def read_generations(path):
    columns = ["year", "name", "line", "fp32_tflops", "matrix_tflops", "bandwidth_gbs", "memory_gb", "watts", "usd"]
    rows = read_table(path, columns, ["year", "fp32_tflops", "bandwidth_gbs", "memory_gb", "watts"],
                      "columns are those of scripts/gpu_generations.csv")
    if len(rows) < 3:
        fail(path + ": a line needs three rows at least")
    return rows


def points_of(rows, figure, line=None):
    chosen = [(row["year"], figure(row)) for row in rows if line is None or row["line"] == line]
    return [(year, number) for year, number in chosen if number]


def tidy(number):
    return "%.3g" % number if number < 1000 else "{:,.0f}".format(float("%.4g" % number))


def print_fits(rows):
    titles = ("figure", "line", "rows", "doubling", "a year", "rows lie off by a factor")
    print("%-36s  %-8s  %5s  %-16s  %6s  %s" % titles)
    for name, figure in FIGURES:
        for line in (None, "graphics", "compute"):
            points = points_of(rows, figure, line)
            if len(points) < 3:
                continue
            found = fit(points)
            print("%-36s  %-8s  %5d  %4.1f +- %3.1f years  %+5.0f %%  %.2f" % (
                name, line or "all", found["count"], found["years"], found["error"], 100 * found["growth"],
                2 ** found["scatter"]))
    for name, figure in FIGURES[:-1]:  # of power nobody promised that it doubles
        points = points_of(rows, figure)
        if len(points) < 3:
            continue
        found = fit(points)
        months, error = 12 * found["years"], 12 * found["error"]
        for expected in MOORE_MONTHS if error > 0.01 else ():
            apart = (months - expected) / error
            print("%s: %.0f +- %.0f months, %.1f standard errors %s %d months" % (
                name, months, error, abs(apart), "above" if apart > 0 else "below", expected))


def plot_trends(rows, path):
    plt = pyplot()
    figure, grid = plt.subplots(2, 4, figsize=(15, 7))
    marks = {"graphics": ("o", "C0"), "compute": ("s", "C1")}
    for axes, (name, get) in zip(grid.flat, FIGURES):
        for line, (mark, color) in marks.items():
            points = points_of(rows, get, line)
            axes.plot([x for x, _ in points], [y for _, y in points], mark, color=color, ms=4, label=line)
        points = points_of(rows, get)
        found = fit(points)
        ends = [min(x for x, _ in points), max(x for x, _ in points)]
        axes.plot(ends, [2 ** (found["offset"] + found["slope"] * x) for x in ends], color="black", lw=1)
        axes.set_yscale("log")
        axes.set_title("%s\ndoubles in %.1f ± %.1f years" % (name, found["years"], found["error"]), fontsize=9)
        axes.set_xlim(2003, 2028)
        axes.set_xticks([2005, 2010, 2015, 2020, 2025])
        axes.grid(True, which="major", lw=0.3)
        axes.tick_params(labelsize=8)
    grid.flat[0].legend(fontsize=8, loc="upper left")
    figure.suptitle("NVIDIA GPUs from 2004 to 2026: each generation's fastest cards and modules")
    figure.tight_layout()
    save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("devices", nargs="?", help="JSON of orrery describe accelerators")
    parser.add_argument("--only", default="", help="names, with commas between; all otherwise")
    parser.add_argument("--precision", default="bf16", help="format of the peaks")
    parser.add_argument("--trends", help="table of generations (scripts/gpu_generations.csv)")
    parser.add_argument("-o", "--output", help="picture; --trends alone prints the fits")
    arguments = parser.parse_args()
    if bool(arguments.devices) == bool(arguments.trends):
        fail("give either a file of devices or --trends FILE")
    if arguments.trends:
        rows = read_generations(arguments.trends)
        print_fits(rows)
        if arguments.output:
            plot_trends(rows, arguments.output)
        return
    only = [name for name in arguments.only.split(",") if name]
    rows = read_devices(arguments.devices, only, arguments.precision)
    plot_rooflines(rows, arguments.precision, arguments.output or "rooflines.png")


if __name__ == "__main__":
    main()
