# SPDX-License-Identifier: Apache-2.0
"""Reads timelines that `orrery run EXPERIMENT --trace FILE.pftrace` wrote: spans and counters by role and stream."""

from plots import fail

# Field numbers of google/perfetto, protos/perfetto/trace; sim/trace/timeline_writer.cpp writes the same.
PACKET = 1
TIMESTAMP, TRACK_EVENT, INTERNED, DESCRIPTOR = 8, 11, 12, 60
BEGIN, END, COUNTER = 1, 2, 4


class Span:
    """What a stream of a role did from `begin` to `end`, in seconds."""

    __slots__ = ("role", "stream", "name", "category", "begin", "end")

    def __init__(self, role, stream, name, category, begin):
        self.role, self.stream, self.name, self.category, self.begin, self.end = role, stream, name, category, begin, begin


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field of a message: integers, or bytes of texts, messages and doubles."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) < size:
                raise IndexError
        else:
            raise ValueError("wire type")
        yield key >> 3, value


def first(data, number, otherwise=0):
    return next((value for key, value in fields(data) if key == number), otherwise)


class Timeline:
    """`spans` in the order of their beginnings, `counters` as {(role, name): [(seconds, value), ...]}."""

    def __init__(self, path):
        self.spans, self.counters = [], {}
        self._names, self._categories, self._tracks, self._open = {}, {}, {}, {}
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            fail("%s: %s" % (path, error.strerror))
        try:
            for number, packet in fields(data):
                if number == PACKET:
                    self._read(packet)
        except (IndexError, ValueError, TypeError, KeyError):
            fail("%s: this is no timeline; write it with: orrery run EXPERIMENT --trace FILE.pftrace" % path)
        if not self.spans:
            fail("%s: has no spans; write it with: orrery run EXPERIMENT --trace FILE.pftrace" % path)

    def _read(self, packet):
        time, event = 0, None
        for number, value in fields(packet):
            if number == TIMESTAMP:
                time = value / 1e9
            elif number == TRACK_EVENT:
                event = value
            elif number == INTERNED:
                self._intern(value)
            elif number == DESCRIPTOR:
                self._describe(value)
        if event is not None:
            self._happen(time, dict(fields(event)))

    def _intern(self, data):
        for number, entry in fields(data):
            into = {1: self._categories, 2: self._names}.get(number)
            if into is not None:
                into[first(entry, 1)] = first(entry, 2, b"").decode()

    def _describe(self, data):
        """A track is a role (process), a stream of it (thread) or a counter of it."""
        track = dict(fields(data))
        role = self._tracks.get(track.get(5), ("", ""))[0]
        if 3 in track:
            self._tracks[track[1]] = (first(track[3], 6, b"").decode(), "")
        elif 4 in track:
            self._tracks[track[1]] = (role, first(track[4], 5, b"").decode())
        else:
            self._tracks[track[1]] = (role, track[2].decode())

    def _happen(self, time, event):
        import struct
        track, kind = event.get(11, 0), event.get(9)
        if kind == BEGIN:
            role, stream = self._tracks[track]
            span = Span(role, stream, self._names.get(event.get(10), ""), self._categories.get(event.get(3), ""), time)
            self._open.setdefault(track, []).append(span)
            self.spans.append(span)
        elif kind == END:
            self._open[track].pop().end = time
        elif kind == COUNTER:
            self.counters.setdefault(self._tracks[track], []).append((time, struct.unpack("<d", event[44])[0]))
