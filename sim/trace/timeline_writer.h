// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <vector>

#include "sim/trace/protobuf.h"
#include "sim/trace/timeline.h"

namespace orrery {

/// Puts what a Timeline collected into one packet sequence of a Perfetto trace: names first, then
/// the tracks, then the events in order of time.
class TimelineWriter {
 public:
  TimelineWriter(const Timeline& timeline, std::ostream& out) : timeline_(timeline), out_(out) {}

  /// @throws std::logic_error when two spans of a stream overlap without one containing the other.
  void write();

 private:
  enum class EventKind : std::uint8_t { kBegin, kEnd, kSample };
  struct Event {
    Picoseconds time;
    std::uint32_t index;  ///< index of the span or the sample
    EventKind kind;
  };

  std::vector<Event> events_in_order() const;
  void nest(const std::vector<std::uint32_t>& spans, std::vector<Event>& events) const;
  std::vector<bool> tracks_with_events() const;
  void write_names();
  void write_tracks();
  void write_limit(Picoseconds end);
  void write_event(const Event& event);
  void write_packet(ProtobufMessage packet);

  const Timeline& timeline_;
  std::ostream& out_;
};

}  // namespace orrery
