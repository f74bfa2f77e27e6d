#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the time of steps goes: one bar a result, kernels by class, waits by what they wait for.

  orrery run A.yaml --json > a.json
  orrery run A.yaml --set software.tp_overlap=none --json > b.json
  scripts/plot_breakdown.py a.json b.json -o breakdown.png

Bars are seconds of the pipeline stage that ends last, as its `breakdown` says; the line across the end of a bar is p10 to p90.
--share draws shares of the step instead. Needs Debian's python3-matplotlib.
"""

import argparse
import os

from plots import colors, fail, legend_below, pyplot, read_json, save

HINT = "write it with: orrery run EXPERIMENT --json"
WAITS = [("contention_s", "slowed by transfers"), ("exposed_communication_s", "waiting for transfers"),
         ("bubble_s", "pipeline bubble"), ("optimizer_s", "optimizer"), ("host_s", "host"), ("idle_s", "idle")]
KERNELS = ["gemm", "grouped_gemm", "attention_prefill", "attention_decode", "mla_prefill", "mla_decode", "normalization",
           "scan", "convolution", "sparse", "elementwise", "softmax", "embedding", "quantize", "copy", "lora"]


def parts_of(path):
    """{what: seconds} of one result; classes of kernels share what `compute_s` is, as kernels of several streams overlap."""
    result = read_json(path, HINT)
    if not isinstance(result, dict) or "breakdown" not in result or "classes" not in result:
        fail("%s: has no breakdown of a step; %s" % (path, HINT))
    if "step_time_s" not in result["metrics"]:
        fail("%s: has no step time: %s" % (path, result.get("reason") or "the run did not end"))
    times = {row["name"]: row["time_s"] for row in result["classes"] if row["name"] in KERNELS}
    whole = sum(times.values())
    breakdown = result["breakdown"]
    parts = {name: breakdown["compute_s"] * time / whole for name, time in times.items() if whole > 0}
    for key, name in WAITS:
        parts[name] = breakdown.get(key, 0)
    return parts, result["metrics"]["step_time_s"], (result.get("intervals") or {}).get("step_time_s")


def label_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def draw(axes, results, labels, share):
    order = KERNELS + [name for _, name in WAITS]
    shown = [name for name in order if any(parts.get(name, 0) > 0 for parts, _, _ in results)]
    for name, color in zip(shown, colors(len(shown))):
        places, left, width = [], [], []
        for place, (parts, step, _) in enumerate(results):
            scale = 100 / step if share else 1
            before = sum(parts.get(other, 0) for other in shown[:shown.index(name)])
            places.append(place)
            left.append(before * scale)
            width.append(parts.get(name, 0) * scale)
        axes.barh(places, width, left=left, color=color, label=name, height=0.6)
    for place, (_, step, interval) in enumerate(results):
        scale = 100 / step if share else 1
        if interval:
            axes.plot([value * scale for value in interval], [place, place], color="black", linewidth=1.2, marker="|")
    axes.set_yticks(range(len(results)))
    axes.set_yticklabels(labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("share of the step [%]" if share else "time [s]")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="results of steps in JSON")
    parser.add_argument("-o", "--output", default="breakdown.png")
    parser.add_argument("--share", action="store_true", help="shares of the step instead of seconds")
    options = parser.parse_args()
    results = [parts_of(path) for path in options.results]
    figure, axes = pyplot().subplots(figsize=(10, 1.2 + 0.55 * len(results)))
    draw(axes, results, [label_of(path) for path in options.results], options.share)
    legend_below(axes, columns=5, frameon=False)
    save(figure, options.output)


if __name__ == "__main__":
    main()
