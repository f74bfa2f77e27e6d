#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Device memory over time by component and rank, from the timeline of a training step.

  orrery run EXPERIMENT.yaml --trace step.pftrace
  scripts/plot_memory.py step.pftrace -o memory.png

A panel a rank that stands for a pipeline stage (at most --ranks of them, first and last included): what it holds all the
time, and above it the tensors of its passes, with the peak of all. Reads the counters "memory ... B" of the trace.
Needs Debian's python3-matplotlib.
"""

import argparse

from plots import colors, fail, legend_below, pyplot, save
from timelines import Timeline

HINT = "write it with: orrery run EXPERIMENT --trace FILE (training)"
COMPONENTS = ["weights", "gradients", "optimizer", "activations", "working", "logits"]
GIGABYTE = 1e9


def read_trace(path):
    """{rank: {component: [(seconds, bytes)]}} of the counters of memory, and the end of the step."""
    timeline, ranks = Timeline(path), {}
    for (rank, name), samples in timeline.counters.items():
        words = name.split()
        if words[0] == "memory" and words[-1] == "B":
            ranks.setdefault(rank, {})[words[1]] = samples
    if not ranks:
        fail("%s: has no counters of memory; %s" % (path, HINT))
    # The optimizer, and gathers of weights behind it, change no counter.
    return ranks, max([span.end for span in timeline.spans] +
                      [time for counters in ranks.values() for samples in counters.values() for time, _ in samples])


def at_times(samples, times):
    """The value of a counter at each of the ascending times: that of its last sample."""
    values, last, index = [], 0, 0
    for time in times:
        while index < len(samples) and samples[index][0] <= time:
            last = samples[index][1]
            index += 1
        values.append(last / GIGABYTE)
    return values


def plot_rank(axes, name, counters, end):
    times = sorted({time for samples in counters.values() for time, _ in samples} | {end})
    shown = [part for part in COMPONENTS if part in counters]
    layers = [at_times(counters[part], times) for part in shown]
    axes.stackplot(times, layers, step="post", labels=shown, colors=colors(len(COMPONENTS)), lw=0)
    total = [sum(values) for values in zip(*layers)]
    peak = max(total)
    when = times[total.index(peak)]
    axes.axhline(peak, color="black", lw=0.6, ls=":")
    axes.annotate("%.3g GB at %.3g s" % (peak, when), (when, peak), textcoords="offset points", xytext=(2, 3), fontsize=7)
    axes.set(title=name, ylabel="GB", xlim=(0, end), ylim=(0, 1.12 * peak))
    axes.title.set_fontsize(9)
    axes.grid(lw=0.3)


def chosen(names, most):
    """As many of them, evenly spread, with the first and the last."""
    if len(names) <= most:
        return names
    if most == 1:
        return names[:1]
    return [names[round(i * (len(names) - 1) / (most - 1))] for i in range(most)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", metavar="TRACE.pftrace")
    parser.add_argument("--ranks", type=int, default=4, metavar="N", help="panels at most (default 4)")
    parser.add_argument("-o", "--output", default="memory.png", metavar="FILE")
    options = parser.parse_args()
    if options.ranks < 1:
        fail("--ranks wants 1 or more")
    ranks, end = read_trace(options.trace)
    names = chosen(list(ranks), options.ranks)
    plt = pyplot()
    figure, panels = plt.subplots(len(names), 1, figsize=(8, 1 + 2 * len(names)), sharex=True, squeeze=False)
    for axes, name in zip(panels[:, 0], names):
        plot_rank(axes, name, ranks[name], end)
    panels[-1, 0].set_xlabel("s")
    figure.tight_layout()
    legend_below(panels[-1, 0], columns=len(COMPONENTS))
    save(figure, options.output)


if __name__ == "__main__":
    main()
