#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tornado: what each input does to a metric, the largest on top.

  scripts/plot_sensitivity.py sweep.db step_time_s -o tornado.svg
  orrery sensitivity EXPERIMENT.yaml step_time_s --by 10% --json > step.json
  scripts/plot_sensitivity.py step.json -o tornado.svg

Of a store: means over groups of points that differ in one input alone, a mark for each of its values, from the store alone;
--where is a condition as of `orrery sensitivity`. Of an experiment: each number less and more, all others as they are. Needs Debian's
python3-matplotlib.
"""

import argparse

from plots import fail, pyplot, read_json, save
from stores import open_store, read_inputs, read_results

HINT = "write it with: orrery sweep run SWEEP --db FILE"
JSON_HINT = "write it with: orrery sensitivity EXPERIMENT METRIC --json"


def main_effects(inputs, path, values):
    """Mean of the metric with each value less the mean of its group; groups are alike in all other inputs."""
    groups = {}
    others = [texts for name, texts in inputs.items() if name != path]
    for place, value in enumerate(values):
        group = groups.setdefault(tuple(texts[place] for texts in others), {})
        group.setdefault(inputs[path][place], []).append(value)
    effects = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        means = {text: sum(some) / len(some) for text, some in group.items()}
        mean = sum(means.values()) / len(means)
        for text, value in means.items():
            effects.setdefault(text, []).append(value - mean)
    return {text: sum(some) / len(some) for text, some in effects.items()}


def from_store(arguments):
    store = open_store(arguments.file, HINT)
    rows = read_results(store, arguments.file, [arguments.metric], arguments.where, HINT)
    values = [row[arguments.metric] for row in rows]
    mean = sum(values) / len(values)
    inputs = read_inputs(store, rows)
    bars = [(path, sorted((effect, text) for text, effect in main_effects(inputs, path, values).items())) for path in inputs]
    bars = [(path, marks) for path, marks in bars if marks]
    if not bars:
        fail("%s: no two points differ in one input alone; nothing can be said of single inputs" % arguments.file)
    return bars, mean, "%s of %d points: mean %.4g" % (arguments.metric, len(rows), mean)


def from_json(arguments):
    answer = read_json(arguments.file, JSON_HINT)
    if not isinstance(answer, dict) or answer.get("schema") != "orrery.sensitivity/1" or "share" not in answer:
        fail("%s: has no sensitivities of an experiment; %s" % (arguments.file, JSON_HINT))
    bars = []
    for entry in answer["inputs"]:
        # Whole numbers are changed by one at least, whatever the share.
        marks = [(entry[side]["change"], "%+.0f %%" % (100 * (entry[side]["value"] / entry["value"] - 1)))
                 for side in ("less", "more") if entry[side]["change"] is not None]
        if any(change for change, _ in marks):
            bars.append((entry["path"], sorted(marks)))
    if not bars:
        fail("%s: no input has an effect" % arguments.file)
    return bars, answer["value"], "%s: %.4g %s" % (answer["metric"], answer["value"], answer["unit"])


def draw(axes, bars, center):
    for height, (path, marks) in enumerate(bars):
        low, high = min(0, marks[0][0]), max(0, marks[-1][0])
        axes.barh(height, high - low, left=low, height=0.6, color="C0", alpha=0.35)
        for effect, _ in marks:
            axes.plot([effect, effect], [height - 0.3, height + 0.3], color="C0", lw=1.2)
        for effect, text in {marks[0], marks[-1]}:
            right = effect >= 0
            if effect not in (low, high) or effect == 0:
                continue  # within the bar, where another mark has its text
            axes.annotate(text, (effect, height), fontsize=7, va="center", ha="left" if right else "right",
                          xytext=(4 if right else -4, 0), textcoords="offset points")
    axes.set_yticks(range(len(bars)))
    axes.set_yticklabels([path for path, _ in bars], fontsize=8)
    axes.axvline(0, color="k", lw=0.8)
    axes.use_sticky_edges = False  # or bars begin at the frame, and their labels beyond it
    axes.margins(x=0.12)
    axes.set_ylim(-0.6, len(bars) - 0.4)
    axes.grid(axis="x", lw=0.3)
    if center:
        share = axes.secondary_xaxis("top", functions=(lambda x: 100 * x / abs(center), lambda x: x * abs(center) / 100))
        share.set_xlabel("change / %", fontsize=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="result store, or JSON of `orrery sensitivity EXPERIMENT METRIC --json`")
    parser.add_argument("metric", nargs="?", default="", help="metric of a store")
    parser.add_argument("--where", default="", help="condition as of orrery sensitivity")
    parser.add_argument("--top", type=int, default=20, help="inputs to draw (default: 20)")
    parser.add_argument("-o", "--output", default="sensitivity.png", help="picture to write (default: sensitivity.png)")
    arguments = parser.parse_args()
    if arguments.metric:
        bars, center, title = from_store(arguments)
    else:
        bars, center, title = from_json(arguments)
    bars.sort(key=lambda bar: max(0, bar[1][-1][0]) - min(0, bar[1][0][0]), reverse=True)
    left_out = len(bars) - arguments.top
    bars = bars[:arguments.top][::-1]
    plot = pyplot()
    figure, axes = plot.subplots(figsize=(8, 1.6 + 0.32 * len(bars)))
    draw(axes, bars, center)
    axes.set_xlabel("effect, all others equal" + (" (%d smaller ones are not drawn)" % left_out if left_out > 0 else ""))
    axes.set_title(title, fontsize=10)
    save(figure, arguments.output)


if __name__ == "__main__":
    main()
