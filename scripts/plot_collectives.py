#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bus bandwidth of collectives against their size: measured points, and the model by protocol.

  orrery validate collectives collective_nccl.csv.gz --rows rows.csv
  scripts/plot_collectives.py rows.csv --system h200_sxm -o collectives.png

One panel a collective, one colour a number of ranks: dots are measured (fp16 and bf16 full, int8
hollow), the line is the model, drawn by the protocol that the library takes: dotted LL, dash-dotted
LL128, full Simple, dashed in-switch reduction. Needs Debian's python3-matplotlib.
"""

import argparse
import collections

from plots import colors, fail, legend_below, pyplot, read_table, save

HINT = "write the file with: orrery validate collectives TABLE --rows FILE"
LINES = {"ll": ":", "ll128": "-.", "simple": "-", "nvls": "--"}
NAMES = {"ll": "LL", "ll128": "LL128", "simple": "Simple", "nvls": "in-switch reduction"}


def bus_factor(collective, ranks):
    """nccl-tests' bus bandwidth over algorithm bandwidth."""
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks


def read_rows(path, system):
    numbers = ["ranks", "bytes", "latency_us", "predicted_us"]
    rows = read_table(path, ["system", "precision", "algorithm", "protocol"] + numbers, numbers, HINT)
    panels = collections.defaultdict(list)
    for row in rows:
        if row["system"] == system:
            panels[row.get("collective") or "all_reduce"].append(row)
    if not panels:
        known = ", ".join(sorted({row["system"] for row in rows}))
        fail(f"{path}: no rows of the system '{system}'; there are: {known}")
    return panels


def rate(row, column):
    return bus_factor(row.get("collective") or "all_reduce", row["ranks"]) * row["bytes"] / row[column] / 1e3


def way(row):
    return "nvls" if row["algorithm"].startswith("nvls") else row["protocol"]


def draw_model(axes, rows, color):
    """Joins neighbours in size; the style is that of the larger one."""
    rows = sorted(rows, key=lambda row: row["bytes"])
    for left, right in zip(rows, rows[1:]):
        axes.plot([left["bytes"], right["bytes"]], [rate(left, "predicted_us"), rate(right, "predicted_us")],
                  LINES.get(way(right), "-"), color=color, linewidth=1.3)


def draw_panel(axes, collective, rows):
    sizes = sorted({row["ranks"] for row in rows})
    for color, ranks in zip(colors(len(sizes)), sizes):
        chosen = [row for row in rows if row["ranks"] == ranks]
        full = [row for row in chosen if row["precision"] != "int8"]
        draw_model(axes, full or chosen, color)
        for row in chosen:
            hollow = row["precision"] == "int8"
            axes.plot(row["bytes"], rate(row, "latency_us"), "o", markersize=4, color=color,
                      markerfacecolor="none" if hollow else color)
        axes.plot([], [], "o", color=color, label=f"{ranks:.0f} ranks")
    axes.set_title(collective)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("bytes")
    axes.set_ylabel("bus bandwidth [GB/s]")
    axes.grid(True, which="major", alpha=0.3)
    legend_below(axes, columns=5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", help="CSV of orrery validate collectives --rows")
    parser.add_argument("--system", required=True, help="as in the table: h200_sxm")
    parser.add_argument("-o", "--output", default="collectives.png")
    arguments = parser.parse_args()
    panels = read_rows(arguments.rows, arguments.system)
    columns = min(2, len(panels))
    height = (len(panels) + columns - 1) // columns
    plt = pyplot()
    figure, axes = plt.subplots(height, columns, figsize=(6.5 * columns, 4.5 * height), squeeze=False)
    for place in axes.flat[len(panels):]:
        place.set_visible(False)
    for place, (collective, rows) in zip(axes.flat, sorted(panels.items())):
        draw_panel(place, collective, rows)
    handles = [plt.Line2D([], [], color="black", linestyle=LINES[key], label=NAMES[key]) for key in LINES]
    figure.legend(handles=handles, loc="lower center", ncol=4, fontsize=9)
    figure.suptitle(f"{arguments.system}: measured (dots), predicted (lines)")
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    save(figure, arguments.output)


if __name__ == "__main__":
    main()
