#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Points of a result store by two objectives, with those that no other beats in both, from the store alone.

  orrery sweep run SWEEP.yaml --db sweep.db
  scripts/plot_pareto.py sweep.db --maximize tokens_per_s_per_user --maximize tokens_per_s_per_accelerator -o front.svg

A front for each value of --by (a path of the configuration, or name). Bars are p10 to p90 of points on the front.
--where is a condition as of `orrery pareto`: "peak_memory_bytes < 80 GB". Needs Debian's python3-matplotlib.
"""

import argparse

from plots import colors, fail, legend_below, pyplot, save
from stores import open_store, read_bases, read_inputs, read_results

HINT = "write it with: orrery sweep run SWEEP --db FILE"
MOST_SERIES = 12


class Objectives(argparse.Action):
    """Both options add to one list, in the order of the command line."""

    def __call__(self, parser, namespace, value, option=None):
        namespace.objectives.append((value, option == "--maximize"))


def front(points, better):
    """Places of those that no other beats in both, by the first objective."""
    signs = [-1 if maximize else 1 for maximize in better]
    keyed = sorted((signs[0] * x, signs[1] * y, place) for place, (x, y) in enumerate(points))
    best, kept = None, []
    for x, y, place in keyed:
        if best is None or y < best[1] or (x, y) == best:
            best = (x, y)
            kept.append(place)
    return kept


def texts_at(store, rows, path):
    """The value of a path of the configuration for each row; None without."""
    bases = read_bases(store, rows)
    varied = {row["point"]: row["text"] for row in store.execute("SELECT point, text FROM varied WHERE axis = ?", (path,))}
    return [varied.get(row["point"], bases.get(row["base"], {}).get(path)) for row in rows]


def groups_of(store, rows, by):
    if not by:
        return {"": list(range(len(rows)))}
    if by == "name":
        texts = [row["name"] for row in rows]
    else:
        texts = texts_at(store, rows, by)
        if all(text is None for text in texts):  # "system" is "system.system"
            texts = texts_at(store, rows, "%s.%s" % (by, by.rpartition(".")[2]))
        if all(text is None for text in texts):
            fail("--by %s: no configuration of this store has it" % by)
    groups = {}
    for place, text in enumerate(texts):
        groups.setdefault(str(text), []).append(place)
    return groups


def intervals_of(store, point, metric, value):
    row = store.execute("SELECT p10, p90 FROM intervals WHERE point = ? AND metric = ?", (point, metric)).fetchone()
    # A median outside its interval would be a bar of negative length.
    return (0, 0) if row is None else (max(0, value - row["p10"]), max(0, row["p90"] - value))


def short_label(inputs, place, places):
    """What tells a point from the others of the front."""
    return ", ".join("%s %s" % (path.rpartition(".")[2], texts[place]) for path, texts in inputs.items()
                     if len({texts[other] for other in places}) > 1)


def draw_front(axes, store, rows, places, metrics, color, name):
    xs, ys = ([rows[place][metric] for place in places] for metric in metrics)
    bars = [[intervals_of(store, rows[place]["point"], metric, rows[place][metric]) for place in places] for metric in metrics]
    axes.errorbar(xs, ys, xerr=list(zip(*bars[0])), yerr=list(zip(*bars[1])), fmt="none", ecolor=color, elinewidth=0.6, alpha=0.5)
    axes.plot(xs, ys, "o-", color=color, ms=4, lw=1.2, label=name)


def annotate(axes, rows, places, metrics, inputs, better):
    """What some points of the front are: its ends and a few between, away from where better points would be."""
    if not inputs:
        return
    count = min(6, len(places))
    chosen = {places[round(i * (len(places) - 1) / max(1, count - 1))] for i in range(count)}
    for place in sorted(chosen):
        right = better[0]
        axes.annotate(short_label(inputs, place, places), [rows[place][metric] for metric in metrics], fontsize=6,
                      ha="right" if right else "left", va="top" if better[1] else "bottom",
                      xytext=(-5 if right else 5, -5 if better[1] else 5), textcoords="offset points",
                      bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.7})


def unit_of(store, metric):
    """Units stand in the layouts of results."""
    row = store.execute("SELECT json_extract(m.value, '$[1]') AS unit FROM layouts, json_each(layouts.json, '$.metrics') AS m"
                        " WHERE json_extract(m.value, '$[0]') = ?", (metric,)).fetchone()
    return "" if row is None or row["unit"] in (None, "", "1") else " / %s" % row["unit"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", help="result store")
    parser.add_argument("--maximize", action=Objectives, metavar="METRIC", help="better where it is more")
    parser.add_argument("--minimize", action=Objectives, metavar="METRIC", help="better where it is less")
    parser.add_argument("--by", default="", help="path of the configuration, or name: a front for each value")
    parser.add_argument("--where", default="", help="condition as of orrery pareto: 'peak_memory_bytes < 80 GB'")
    parser.add_argument("-o", "--output", default="pareto.png", help="picture to write (default: pareto.png)")
    parser.set_defaults(objectives=[])
    arguments = parser.parse_args()
    if len(arguments.objectives) != 2:
        fail("two objectives are drawn: --maximize METRIC --maximize METRIC, or --minimize")
    metrics = [name for name, _ in arguments.objectives]
    better = [maximize for _, maximize in arguments.objectives]
    store = open_store(arguments.store, HINT)
    rows = read_results(store, arguments.store, metrics, arguments.where, HINT)
    groups = groups_of(store, rows, arguments.by)
    if len(groups) > MOST_SERIES:
        fail("--by %s has %d values; more than %d fronts cannot be told apart" % (arguments.by, len(groups), MOST_SERIES))
    plot = pyplot()
    figure, axes = plot.subplots(figsize=(8, 5.5))
    axes.plot([row[metrics[0]] for row in rows], [row[metrics[1]] for row in rows], ".", color="0.75", ms=3,
              label="%d points" % len(rows), zorder=0)
    inputs = read_inputs(store, rows)
    for color, (name, places) in zip(colors(len(groups)), sorted(groups.items())):
        kept = front([[rows[place][metric] for metric in metrics] for place in places], better)
        kept = [places[place] for place in kept]
        draw_front(axes, store, rows, kept, metrics, color, "%s (%d)" % (name, len(kept)) if name else "front (%d)" % len(kept))
        if len(groups) == 1:
            annotate(axes, rows, kept, metrics, inputs, better)
    arrows = ["%s%s, %s is better" % (metric, unit_of(store, metric), "more" if maximize else "less")
              for metric, maximize in arguments.objectives]
    axes.set(xlabel=arrows[0], ylabel=arrows[1], title=arguments.where)
    axes.grid(lw=0.3)
    legend_below(axes, columns=min(4, len(groups) + 1))
    save(figure, arguments.output)


if __name__ == "__main__":
    main()
