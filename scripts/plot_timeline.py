#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A step in time: what every pipeline stage computes, and which transfers run beside it.

  orrery run EXPERIMENT.yaml --trace step.pftrace
  scripts/plot_timeline.py step.pftrace -o step.png
  scripts/plot_timeline.py step.pftrace --from 0.4 --to 0.6 -o part.png

Wide lane of a role: forward and backward kernels, optimizer; white is waiting. Narrow lane: transfers by stream. Spans that
are narrower than a pixel are joined with their neighbours of the same colour. Needs Debian's python3-matplotlib.
"""

import argparse
import re

from plots import fail, legend_below, pyplot, save
from timelines import Timeline

KERNELS = {"forward": "C0", "backward": "C2", "optimizer": "C4"}
TRANSFERS = {"tensor parallel": "C1", "expert parallel": "C5", "context parallel": "C9", "data parallel": "C3",
             "pipeline": "C7", "host copies": "C8", "others": "C6"}
STREAMS = [("pp", "pipeline"), ("tp", "tensor parallel"), ("ep", "expert parallel"), ("etp", "expert parallel"),
           ("cp", "context parallel"), ("dcp", "context parallel"), ("dp", "data parallel"),
           ("host", "host copies")]
PIXELS = 1500


def kind_of(span):
    if span.category == "communication":
        if span.name.startswith("send"):
            return "pipeline"
        return next((name for prefix, name in STREAMS if re.match(prefix + r"\b", span.stream)), "others")
    if span.category == "optimizer":
        return "optimizer"
    return "backward" if re.search(r"backward|[dw]grad|gradient", span.name) else "forward"


def joined(spans, gap):
    """[begin, length] of spans that lie less than `gap` apart."""
    parts = []
    for begin, end in sorted(spans):
        if parts and begin - parts[-1][1] < gap:
            parts[-1][1] = max(parts[-1][1], end)
        else:
            parts.append([begin, end])
    return [(begin, max(end - begin, gap / 2)) for begin, end in parts]


def lanes_of(timeline, begin, end):
    """{role: {kind: [(begin, end), ...]}}, cut to the window; receives begin long before anything arrives."""
    lanes = {}
    for span in timeline.spans:
        of_role = lanes.setdefault(span.role, {})
        if span.category == "block" or span.end <= begin or span.begin >= end or "receive" in span.stream:
            continue
        of_role.setdefault(kind_of(span), []).append((max(span.begin, begin), min(span.end, end)))
    return lanes


def draw(axes, lanes, begin, end):
    gap = (end - begin) / PIXELS
    seen = set()
    for place, (role, kinds) in enumerate(lanes.items()):
        for colors, low, height in ((KERNELS, place + 0.35, 0.55), (TRANSFERS, place + 0.1, 0.22)):
            for kind, color in colors.items():
                if kind in kinds:
                    axes.broken_barh(joined(kinds[kind], gap), (low, height), facecolors=color, linewidth=0,
                                     label=None if kind in seen else kind)
                    seen.add(kind)
    axes.set_yticks([place + 0.5 for place in range(len(lanes))])
    axes.set_yticklabels(list(lanes), fontsize=7)
    axes.set_ylim(len(lanes), 0)
    axes.set_xlim(begin, end)
    axes.set_xlabel("time [s]")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("-o", "--output", default="timeline.png")
    parser.add_argument("--from", dest="begin", type=float, default=0.0, help="begin of the window [s]")
    parser.add_argument("--to", dest="end", type=float, help="end of the window [s]")
    options = parser.parse_args()
    timeline = Timeline(options.trace)
    last = max(span.end for span in timeline.spans)
    end = last if options.end is None else min(options.end, last)
    if not 0 <= options.begin < end:
        fail("--from and --to: no time is left of the %.6g s of %s" % (last, options.trace))
    lanes = lanes_of(timeline, options.begin, end)
    figure, axes = pyplot().subplots(figsize=(12, 1.2 + 0.55 * len(lanes)))
    draw(axes, lanes, options.begin, end)
    legend_below(axes, columns=6, frameon=False)
    save(figure, options.output)


if __name__ == "__main__":
    main()
