// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/timeline.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include "sim/trace/atomic_file.h"

namespace orrery {
namespace {

/// Builds one protobuf message, field by field (protobuf.dev, "Encoding"): all that a trace needs.
class ProtobufMessage {
 public:
  ProtobufMessage& integer(std::uint32_t field, std::uint64_t value) {
    tag(field, kVarint);
    varint(value);
    return *this;
  }
  ProtobufMessage& fixed(std::uint32_t field, std::uint64_t bits) {
    tag(field, kFixed64);
    for (unsigned shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(bits >> shift);
    return *this;
  }
  ProtobufMessage& real(std::uint32_t field, double value) {
    return fixed(field, std::bit_cast<std::uint64_t>(value));
  }
  ProtobufMessage& text(std::uint32_t field, std::string_view value) {
    tag(field, kLengthDelimited);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtobufMessage& message(std::uint32_t field, const ProtobufMessage& value) {
    return text(field, value.bytes_);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };

  void tag(std::uint32_t field, WireType type) { varint(std::uint64_t{field} << 3 | type); }
  /// Seven bits a byte, the lowest first; the eighth says that more follow.
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// Field and value numbers of google/perfetto, protos/perfetto/trace: trace.proto,
// trace_packet.proto, interned_data/interned_data.proto, track_event/*.proto.
namespace trace {
constexpr std::uint32_t kPacket = 1;
}
namespace packet {
constexpr std::uint32_t kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
                        kSequenceFlags = 13, kTrackDescriptor = 60;
constexpr std::uint64_t kIncrementalStateCleared = 1, kNeedsIncrementalState = 2;
}  // namespace packet
namespace interned {
constexpr std::uint32_t kCategories = 1, kEventNames = 2, kAnnotationNames = 3;
constexpr std::uint32_t kId = 1, kName = 2;  // of an entry
}  // namespace interned
namespace descriptor {
constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5,
                        kCounter = 8;
constexpr std::uint32_t kPid = 1, kProcessName = 6;                 // of a process
constexpr std::uint32_t kThreadPid = 1, kTid = 2, kThreadName = 5;  // of a thread
}  // namespace descriptor
namespace event {
constexpr std::uint32_t kCategoryIds = 3, kAnnotations = 4, kType = 9, kNameId = 10,
                        kTrackUuid = 11, kName = 23, kDoubleCounterValue = 44, kFlowIds = 47;
constexpr std::uint64_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;
constexpr std::uint32_t kAnnotationNameId = 1, kAnnotationUint = 3;
}  // namespace event

constexpr std::uint64_t kSequence = 1;
constexpr std::uint64_t kDurationAnnotation = 1;

std::uint64_t nanoseconds(Picoseconds time) { return time / 1000; }

/// Track, process and thread ids alike: 0 stands for the whole trace, and the idle task.
std::uint64_t id_of(std::uint32_t track) { return std::uint64_t{track} + 1; }

ProtobufMessage interned_entry(std::uint64_t id, std::string_view name) {
  ProtobufMessage entry;
  entry.integer(interned::kId, id).text(interned::kName, name);
  return entry;
}

std::uint32_t intern(std::map<std::string, std::uint32_t, std::less<>>& texts,
                     std::string_view text) {
  const auto found = texts.find(text);
  if (found != texts.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(texts.size() + 1);
  texts.emplace(text, number);
  return number;
}

}  // namespace

/// Puts what a Timeline collected into one packet sequence of a Perfetto trace: names first, then
/// the tracks, then the events in order of time.
class TimelineWriter {
 public:
  TimelineWriter(const Timeline& timeline, std::ostream& out) : timeline_(timeline), out_(out) {}

  /// @throws std::logic_error when two spans of a stream overlap without one containing the other.
  void write() {
    const std::vector<Event> events = events_in_order();
    write_names();
    write_tracks();
    for (const Event& event : events) write_event(event);
    if (timeline_.left_out_ > 0) write_limit(events.empty() ? 0 : events.back().time);
  }

 private:
  enum class EventKind : std::uint8_t { kBegin, kEnd, kSample };
  struct Event {
    Picoseconds time;
    std::uint32_t index;  ///< index of the span or the sample
    EventKind kind;
  };

  std::vector<Event> events_in_order() const {
    const auto& spans = timeline_.spans_;
    std::vector<std::vector<std::uint32_t>> by_track(timeline_.tracks_.size());
    for (std::uint32_t i = 0; i < spans.size(); ++i) by_track[spans[i].track].push_back(i);
    std::vector<Event> events;
    events.reserve(2 * spans.size() + timeline_.samples_.size());
    for (std::vector<std::uint32_t>& track : by_track) {
      // A span before the spans in it. One without length goes before what begins when it ends.
      const auto key = [&](std::uint32_t i) {
        const auto& s = spans[i];
        return std::tuple(s.begin, s.end != s.begin, ~s.end, i);
      };
      std::sort(track.begin(), track.end(),
                [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
      nest(track, events);
    }
    for (std::uint32_t i = 0; i < timeline_.samples_.size(); ++i) {
      events.push_back({timeline_.samples_[i].time, i, EventKind::kSample});
    }
    // Stable, because at one instant the order within a track is what closes and opens its spans.
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.time < b.time; });
    return events;
  }

  void nest(const std::vector<std::uint32_t>& spans, std::vector<Event>& events) const {
    std::vector<std::uint32_t> open;
    const auto end_of = [&](std::uint32_t i) { return timeline_.spans_[i].end; };
    const auto close_until = [&](Picoseconds time) {
      while (!open.empty() && end_of(open.back()) <= time) {
        events.push_back({end_of(open.back()), open.back(), EventKind::kEnd});
        open.pop_back();
      }
    };
    for (std::uint32_t i : spans) {
      const Picoseconds begin = timeline_.spans_[i].begin;
      close_until(begin);
      if (!open.empty() && end_of(open.back()) < end_of(i)) {
        const std::string& track = timeline_.tracks_[timeline_.spans_[i].track].name;
        throw std::logic_error("two spans of track '" + track + "' overlap at " +
                               std::to_string(begin) + " ps");
      }
      events.push_back({begin, i, EventKind::kBegin});
      open.push_back(i);
    }
    close_until(kMaxTime);
  }

  void write_names() {
    ProtobufMessage data;
    for (const auto& [name, id] : timeline_.names_) {
      data.message(interned::kEventNames, interned_entry(id, name));
    }
    for (const auto& [name, id] : timeline_.categories_) {
      data.message(interned::kCategories, interned_entry(id, name));
    }
    data.message(interned::kAnnotationNames, interned_entry(kDurationAnnotation, "duration_ps"));
    ProtobufMessage packet;
    packet.integer(packet::kSequenceFlags, packet::kIncrementalStateCleared);
    packet.message(packet::kInternedData, data);
    write_packet(std::move(packet));
  }

  /// Tracks on which something happens, and the processes that they belong to.
  std::vector<bool> tracks_with_events() const {
    std::vector<bool> used(timeline_.tracks_.size());
    for (const auto& span : timeline_.spans_) used[span.track] = true;
    for (const auto& sample : timeline_.samples_) used[sample.track] = true;
    for (std::uint32_t i = 0; i < used.size(); ++i)
      if (used[i] && timeline_.tracks_[i].kind != Timeline::TrackKind::kProcess)
        used[timeline_.tracks_[i].parent] = true;
    return used;
  }

  void write_tracks() {
    const std::vector<bool> used = tracks_with_events();
    for (std::uint32_t i = 0; i < timeline_.tracks_.size(); ++i) {
      const auto& track = timeline_.tracks_[i];
      if (!used[i]) continue;
      ProtobufMessage details;
      ProtobufMessage descriptor;
      descriptor.integer(descriptor::kUuid, id_of(i));
      switch (track.kind) {
        case Timeline::TrackKind::kProcess:
          details.integer(descriptor::kPid, id_of(i)).text(descriptor::kProcessName, track.name);
          descriptor.message(descriptor::kProcess, details);
          break;
        case Timeline::TrackKind::kThread:
          details.integer(descriptor::kThreadPid, id_of(track.parent));
          details.integer(descriptor::kTid, id_of(i)).text(descriptor::kThreadName, track.name);
          descriptor.integer(descriptor::kParentUuid, id_of(track.parent));
          descriptor.message(descriptor::kThread, details);
          break;
        case Timeline::TrackKind::kCounter:
          descriptor.integer(descriptor::kParentUuid, id_of(track.parent));
          descriptor.text(descriptor::kName, track.name);
          descriptor.message(descriptor::kCounter, details);
          break;
      }
      ProtobufMessage packet;
      packet.message(packet::kTrackDescriptor, descriptor);
      write_packet(std::move(packet));
    }
  }

  void write_event(const Event& e) {
    ProtobufMessage body;
    if (e.kind == EventKind::kSample) {
      const auto& sample = timeline_.samples_[e.index];
      body.integer(event::kType, event::kCounter).integer(event::kTrackUuid, id_of(sample.track));
      body.real(event::kDoubleCounterValue, sample.value);
    } else {
      const auto& span = timeline_.spans_[e.index];
      const bool begins = e.kind == EventKind::kBegin;
      body.integer(event::kType, begins ? event::kSliceBegin : event::kSliceEnd);
      body.integer(event::kTrackUuid, id_of(span.track));
      if (begins) {
        ProtobufMessage duration;
        duration.integer(event::kAnnotationNameId, kDurationAnnotation);
        duration.integer(event::kAnnotationUint, span.end - span.begin);
        body.integer(event::kNameId, span.name).integer(event::kCategoryIds, span.category);
        body.message(event::kAnnotations, duration);
        if (span.flow != 0) body.fixed(event::kFlowIds, span.flow);
      }
    }
    ProtobufMessage packet;
    packet.integer(packet::kTimestamp, nanoseconds(e.time));
    packet.integer(packet::kSequenceFlags, packet::kNeedsIncrementalState);
    packet.message(packet::kTrackEvent, body);
    write_packet(std::move(packet));
  }

  void write_limit(Picoseconds end) {
    // On the track of the whole trace (uuid 0), which needs no descriptor.
    ProtobufMessage body;
    body.integer(event::kType, event::kInstant).integer(event::kTrackUuid, 0);
    body.text(event::kName, std::to_string(timeline_.left_out_) + " events left out (limit " +
                                std::to_string(timeline_.limit_) + "), the first at " +
                                std::to_string(nanoseconds(timeline_.first_left_out_)) + " ns");
    ProtobufMessage packet;
    packet.integer(packet::kTimestamp, nanoseconds(end));
    packet.message(packet::kTrackEvent, body);
    write_packet(std::move(packet));
  }

  void write_packet(ProtobufMessage packet) {
    packet.integer(packet::kSequenceId, kSequence);
    ProtobufMessage file;
    file.message(trace::kPacket, packet);
    out_.write(file.bytes().data(), static_cast<std::streamsize>(file.bytes().size()));
  }

  const Timeline& timeline_;
  std::ostream& out_;
};

Timeline::Timeline(const std::string& path, std::size_t limit)
    : file_(std::make_unique<AtomicFile>(path)), out_(file_->stream()), limit_(limit) {}

Timeline::Timeline(std::ostream& out, std::size_t limit) : out_(out), limit_(limit) {}

Timeline::~Timeline() = default;

std::uint32_t Timeline::add_track(Track track) {
  tracks_.push_back(std::move(track));
  return static_cast<std::uint32_t>(tracks_.size() - 1);
}

std::uint32_t Timeline::track_of_role(std::uint32_t role) {
  const auto found = roles_.find(role);
  if (found != roles_.end()) return found->second;
  return roles_[role] = add_track({TrackKind::kProcess, 0, "role " + std::to_string(role)});
}

std::uint32_t Timeline::track_of_stream(std::uint32_t role, std::uint32_t stream) {
  const auto found = streams_.find({role, stream});
  if (found != streams_.end()) return found->second;
  const std::uint32_t parent = track_of_role(role);
  return streams_[{role, stream}] =
             add_track({TrackKind::kThread, parent, "stream " + std::to_string(stream)});
}

void Timeline::process(std::uint32_t role, std::string_view name) {
  tracks_[track_of_role(role)].name = name;
}

void Timeline::thread(std::uint32_t role, std::uint32_t stream, std::string_view name) {
  tracks_[track_of_stream(role, stream)].name = name;
}

bool Timeline::has_room(Picoseconds time) {
  if (spans_.size() + samples_.size() < limit_) return true;
  if (left_out_++ == 0) first_left_out_ = time;
  return false;
}

void Timeline::span(std::uint32_t role, std::uint32_t stream, std::string_view name,
                    std::string_view category, Picoseconds begin, Picoseconds end) {
  if (end < begin) throw std::logic_error("span '" + std::string(name) + "' ends before it begins");
  kept_ = has_room(begin);
  if (!kept_) return;
  spans_.push_back({begin, end, track_of_stream(role, stream), intern(names_, name),
                    intern(categories_, category), 0});
}

void Timeline::flow(std::uint64_t number) {
  if (kept_) spans_.back().flow = number;
}

void Timeline::counter(std::uint32_t role, std::string_view name, Picoseconds time, double value) {
  if (!has_room(time)) return;
  const auto [found, is_new] = counters_.try_emplace({role, std::string(name)}, 0);
  if (is_new) {
    const std::uint32_t parent = track_of_role(role);
    found->second = add_track({TrackKind::kCounter, parent, std::string(name)});
  }
  samples_.push_back({time, value, found->second});
}

void Timeline::close() {
  errno = 0;
  TimelineWriter(*this, out_).write();
  out_.flush();
  if (!out_) throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), "timeline");
  if (file_) file_->commit();
}

}  // namespace orrery
