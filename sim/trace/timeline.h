// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/units/time.h"

namespace orrery {

class AtomicFile;
class TimelineWriter;

/// Collects what happened when and writes it as a Perfetto trace (TrackEvent protobuf; open it at
/// ui.perfetto.dev). A role is a process there, a stream of it a thread.
///
/// Perfetto counts nanoseconds. Begin and end are rounded down, which keeps order and nesting; the
/// exact length is the argument `duration_ps` of each span.
///
/// Nothing is written before close(); a timeline destroyed without it leaves no file.
class Timeline {
 public:
  /// Spans and counter values kept: about 46 bytes each in the file, and 200 MB of memory in all
  /// while it is written.
  static constexpr std::size_t kDefaultLimit = 2'000'000;

  /// @throws std::system_error when no file can be written there (known at once, not after the
  /// run).
  explicit Timeline(const std::string& path, std::size_t limit = kDefaultLimit);
  explicit Timeline(std::ostream& out, std::size_t limit = kDefaultLimit);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Names a role and a stream. Tracks appear in the order in which they are first mentioned, those
  /// on which nothing happens do not; without a name they are called "role 3" and "stream 1".
  void process(std::uint32_t role, std::string_view name);
  void thread(std::uint32_t role, std::uint32_t stream, std::string_view name);

  /// Something took from begin to end. Spans of one stream may nest, but not overlap otherwise.
  void span(std::uint32_t role, std::uint32_t stream, std::string_view name,
            std::string_view category, Picoseconds begin, Picoseconds end);
  /// The span that was just told is part of a flow: arrows join those of one number (not 0), from
  /// the one that begins first to the next.
  void flow(std::uint64_t number);
  /// The value of a counter of the role ("memory bytes") from this time on.
  void counter(std::uint32_t role, std::string_view name, Picoseconds time, double value);

  /// Spans and counter values beyond the limit; the trace says so too.
  std::uint64_t left_out() const { return left_out_; }

  /// Writes the trace: the whole file or none.
  /// @throws std::logic_error when spans of a stream overlap, std::system_error when writing fails.
  void close();

 private:
  enum class TrackKind { kProcess, kThread, kCounter };
  struct Track {
    TrackKind kind;
    std::uint32_t parent;  ///< index of the process track
    std::string name;
  };
  struct Span {
    Picoseconds begin, end;
    std::uint32_t track, name, category;
    std::uint64_t flow;
  };
  struct Sample {
    Picoseconds time;
    double value;
    std::uint32_t track;
  };
  /// Texts by number, from 1: Perfetto's interned strings.
  using Interned = std::map<std::string, std::uint32_t, std::less<>>;
  friend class TimelineWriter;

  std::uint32_t track_of_role(std::uint32_t role);
  std::uint32_t track_of_stream(std::uint32_t role, std::uint32_t stream);
  std::uint32_t add_track(Track track);
  bool has_room(Picoseconds time);

  std::unique_ptr<AtomicFile> file_;
  std::ostream& out_;
  std::size_t limit_;
  std::uint64_t left_out_ = 0;
  Picoseconds first_left_out_ = 0;
  bool kept_ = false;  ///< whether there was room for the last span
  std::vector<Track> tracks_;
  std::map<std::uint32_t, std::uint32_t> roles_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> streams_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> counters_;
  Interned names_;
  Interned categories_;
  std::vector<Span> spans_;
  std::vector<Sample> samples_;
};

}  // namespace orrery
