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
import struct

from plots import colors, fail, legend_below, pyplot, save

HINT = "write it with: orrery run EXPERIMENT --trace FILE (training)"
COMPONENTS = ["weights", "gradients", "optimizer", "activations", "working", "logits"]
GIGABYTE = 1e9


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """Number and value of each field of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError("field of kind %d" % kind)
        yield key >> 3, value


# Numbers of google/perfetto, protos/perfetto/trace: trace.proto, trace_packet.proto, track_event/*.proto.
PACKET, TIMESTAMP, EVENT, DESCRIPTOR = 1, 8, 11, 60
UUID, NAME, PROCESS, PARENT, PROCESS_NAME = 1, 2, 3, 5, 6
TRACK, VALUE = 11, 44


def read_trace(path):
    """{rank: {component: [(seconds, bytes)]}} of the counters of memory."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        fail("%s: %s" % (path, error.strerror))
    processes, counters, samples = {}, {}, {}
    try:
        for number, packet in fields(data):
            if number == PACKET:
                read_packet(dict(fields(packet)), processes, counters, samples)
    except (IndexError, TypeError, ValueError, struct.error):
        fail("%s: this is no trace; %s" % (path, HINT))
    ranks = {}
    for track, (parent, name) in counters.items():
        words = name.split()
        if words[0] == "memory" and words[-1] == "B":
            ranks.setdefault(processes[parent], {})[words[1]] = samples[track]
    if not ranks:
        fail("%s: has no counters of memory; %s" % (path, HINT))
    return ranks


def read_packet(packet, processes, counters, samples):
    if DESCRIPTOR in packet:
        track = dict(fields(packet[DESCRIPTOR]))
        if PROCESS in track:
            processes[track[UUID]] = dict(fields(track[PROCESS]))[PROCESS_NAME].decode()
        elif NAME in track:
            counters[track[UUID]] = (track[PARENT], track[NAME].decode())
            samples[track[UUID]] = []
    elif EVENT in packet:
        event = dict(fields(packet[EVENT]))
        if VALUE in event:
            value = struct.unpack("<d", event[VALUE])[0]
            samples[event[TRACK]].append((packet.get(TIMESTAMP, 0) / 1e9, value))


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
    ranks = read_trace(options.trace)
    names = chosen(list(ranks), options.ranks)
    plt = pyplot()
    figure, panels = plt.subplots(len(names), 1, figsize=(8, 1 + 2 * len(names)), sharex=True, squeeze=False)
    end = max(time for counters in ranks.values() for samples in counters.values() for time, _ in samples)
    for axes, name in zip(panels[:, 0], names):
        plot_rank(axes, name, ranks[name], end)
    panels[-1, 0].set_xlabel("s")
    figure.tight_layout()
    legend_below(panels[-1, 0], columns=len(COMPONENTS))
    save(figure, options.output)


if __name__ == "__main__":
    main()
