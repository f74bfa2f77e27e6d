#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The roofline of a device by level of its memories, with operators in it.

  orrery describe accelerators h200_sxm --json > h200.json
  orrery explain experiment.yaml --json > step.json; orrery run gemm.yaml --json > gemm.json
  orrery validate operators gemm.csv --rows gemm_rows.csv
  scripts/plot_roofline.py h200.json step.json gemm.json gemm_rows.csv -o roofline.png

Roofs: the matrix peak of each precision and the vector peak over the bandwidths of memory, L2 and
shared memory (all units together). Points: kernels of an `explain`, the kernel of a `run`; rows of
GEMM tables as bands of the measured rates (p10 to p90), dots their median, lines the model's. All
over compulsory memory traffic: a point above the memory roof finds operands in the L2. Needs
Debian's python3-matplotlib.
"""

import argparse
import collections
import math

from plot_accuracy import by_series, read_rows
from plots import colors, fail, number, pyplot, read_json, save

ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "fp8_block": 1, "nvfp4": 0.5}
LEVELS = [("memory", "-"), ("L2", "--"), ("shared memory", ":")]


def read_device(path):
    """Peaks in FLOP/s by name and bandwidths in B/s by level, of the package."""
    hint = "write the file with: orrery describe accelerators NAME --json"
    device = read_json(path, hint)
    device = device[0] if isinstance(device, list) and device else device
    if not isinstance(device, dict) or "values" not in device:
        fail(path + ": no device; " + hint)
    values = {row["path"]: row.get("value") for row in device["values"]}
    peaks = {path.rsplit(".", 1)[1]: value for path, value in values.items() if path.startswith("compute.matrix.")}
    peaks["vector"] = values["compute.vector"]
    bandwidths = {"memory": values["memory.bandwidth"], "L2": values.get("cache.bandwidth")}
    shared = values.get("core.shared_bandwidth")
    bandwidths["shared memory"] = shared and shared * values["compute.units"]
    return device["name"], peaks, {level: value for level, value in bandwidths.items() if value}


def read_points(path):
    """Name, FLOPs, bytes and seconds of the kernels of an `explain` or a `run`."""
    hint = "write the file with: orrery explain FILE --json, or run an operator"
    result = read_json(path, hint)
    if not isinstance(result, dict):
        fail(path + ": no kernels; " + hint)
    if "kernels" in result:
        rows = [(row["name"], row["flops"], row["bytes"], row["time_s"]) for row in result["kernels"]]
    elif "flops" in result.get("metrics", {}):
        metrics = result["metrics"]
        rows = [(result.get("name") or "operator", metrics["flops"], metrics["bytes"], metrics["time_s"])]
    else:
        fail(path + ": no kernels; " + hint)
    return [row for row in rows if row[1] > 0 and row[2] > 0]


def plot_roofs(axes, peaks, bandwidths, lowest, highest):
    steps = [10 ** (math.log10(lowest) + i * math.log10(highest / lowest) / 200) for i in range(201)]
    top = max(peaks.values())
    for level, style in LEVELS:
        bandwidth = bandwidths.get(level)
        if bandwidth:
            axes.plot(steps, [min(top, bandwidth * x) / 1e12 for x in steps], style, color="black", lw=1,
                      label="%s, %.3g TB/s" % (level, bandwidth / 1e12))
    names = collections.OrderedDict()
    for name, peak in sorted(peaks.items(), key=lambda item: -item[1]):
        names.setdefault(peak, []).append(name)
    for peak, equal in names.items():
        axes.axhline(peak / 1e12, color="grey", lw=0.7)
        axes.text(highest, peak / 1e12, " " + ", ".join(equal), fontsize=7, va="center")


def plot_points(axes, points):
    """One colour a kernel, its number beside it; equal kernels share a number."""
    palette = colors(len(points))
    for number, (name, flops, moved, seconds) in enumerate(points):
        axes.plot([flops / moved], [flops / seconds / 1e12], "D", ms=5, color=palette[number],
                  label="%d %s" % (number + 1, name))
        axes.annotate(str(number + 1), (flops / moved, flops / seconds / 1e12), xytext=(4, 4), fontsize=7,
                      textcoords="offset points")


def quantile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


def plot_rows(axes, rows):
    """By eighths of a decade of FLOPs per byte."""
    series = by_series(rows)
    for colour, (name, members) in zip(colors(len(series)), series.items()):
        bins = collections.defaultdict(list)
        for row in members:
            m, n, k = (row[key] for key in "mnk")
            element = ELEMENT_BYTES.get(row["precision"])
            if element is None:
                continue
            flops = 2 * m * n * k
            intensity = flops / (element * (m * k + k * n) + 2 * m * n)
            bins[round(8 * math.log10(intensity))].append((flops / row["measured"] / 1e6, flops / row["predicted"] / 1e6))
        places = sorted(place for place in bins if len(bins[place]) >= 5)
        if not places:
            continue
        x = [10 ** (place / 8) for place in places]
        measured = [[point[0] for point in bins[place]] for place in places]
        axes.fill_between(x, [quantile(v, 0.1) for v in measured], [quantile(v, 0.9) for v in measured], color=colour,
                          alpha=0.12, lw=0)
        axes.plot(x, [quantile(v, 0.5) for v in measured], "o", ms=3.5, color=colour, label=name)
        axes.plot(x, [quantile([point[1] for point in bins[place]], 0.5) for place in places], color=colour, lw=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", help="JSON of: orrery describe accelerators NAME --json")
    parser.add_argument("operators", nargs="*", help="JSON of `explain` or `run`, CSV of `validate operators --rows`")
    parser.add_argument("--system", help="rows of this system alone (default: of the device, where there are any)")
    parser.add_argument("-o", "--output", default="roofline.png", help="PNG, SVG or PDF (default: roofline.png)")
    arguments = parser.parse_args()
    name, peaks, bandwidths = read_device(arguments.device)
    rows = [row for path in arguments.operators if not path.endswith(".json") for row in read_rows(path)]
    rows = [row for row in rows if {"m", "n", "k"} <= row.keys()]
    for row in rows:
        row.update({key: number(row, key, "rows of GEMMs") for key in "mnk"})
    system = arguments.system or name
    rows = [row for row in rows if row["system"] == system] or ([] if arguments.system else rows)
    points = [point for path in arguments.operators if path.endswith(".json") for point in read_points(path)]
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(10.5, 5.5))
    lowest = min([flops / moved for _, flops, moved, _ in points] + [0.5]) / 2
    slowest = min([flops / seconds for _, flops, _, seconds in points] + [lowest * min(bandwidths.values()) / 10])
    plot_roofs(axes, peaks, bandwidths, lowest, 2e4)
    plot_rows(axes, rows)
    plot_points(axes, points)
    axes.set(xscale="log", yscale="log", xlabel="FLOPs per byte of compulsory memory traffic", ylabel="TFLOP/s",
             title="Roofline of " + name, xlim=(lowest, 2e4), ylim=(slowest / 2e12, 2 * max(peaks.values()) / 1e12))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.08, 0.5))
    figure.tight_layout()
    save(figure, arguments.output)


if __name__ == "__main__":
    main()
