// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "tests/unit/results/example.h"

namespace orrery::timeline_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A message as a reader that knows no field sees it: values by field number, in order.
struct Message {
  std::multimap<std::uint64_t, std::uint64_t> numbers;
  std::multimap<std::uint64_t, std::string> texts;

  std::uint64_t number(std::uint64_t field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? 0 : found->second;
  }
  std::string text(std::uint64_t field) const {
    const auto found = texts.find(field);
    return found == texts.end() ? "" : found->second;
  }
  bool has(std::uint64_t field) const { return numbers.count(field) + texts.count(field) > 0; }
};

std::uint64_t read_varint(const std::string& bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.at(at++));
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
}

Message read_message(const std::string& bytes) {
  Message message;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::uint64_t tag = read_varint(bytes, at);
    if (tag % 8 == 0) {
      message.numbers.emplace(tag / 8, read_varint(bytes, at));
    } else if (tag % 8 == 1) {
      std::uint64_t bits = 0;
      for (unsigned i = 0; i < 8; ++i) {
        bits |= std::uint64_t{static_cast<unsigned char>(bytes.at(at++))} << (8 * i);
      }
      message.numbers.emplace(tag / 8, bits);
    } else if (tag % 8 == 2) {
      const std::uint64_t size = read_varint(bytes, at);
      if (at + size > bytes.size()) throw std::runtime_error("field beyond the end");
      message.texts.emplace(tag / 8, bytes.substr(at, size));
      at += size;
    } else {
      throw std::runtime_error("wire type that a trace has not");
    }
  }
  return message;
}

/// What a trace shows, with "role/stream" for tracks.
struct Shown {
  struct Slice {
    std::string track, name, category;
    std::uint64_t begin_ns, end_ns, duration_ps;
    std::size_t depth;
    std::uint64_t flow;
  };
  std::vector<Slice> slices;
  std::vector<std::string> tracks;
  std::vector<std::pair<std::string, double>> counters;
  std::vector<std::string> instants;
  std::uint64_t last_ns = 0;
};

/// Reads as Perfetto does: interned names, tracks, then a stack of slices on each track.
class TraceReader {
 public:
  explicit TraceReader(const std::string& bytes) {
    const Message trace = read_message(bytes);
    for (const auto& [field, packet] : trace.texts) {
      EXPECT_EQ(field, 1u);
      read_packet(read_message(packet));
    }
    for (const auto& [track, open] : open_) EXPECT_TRUE(open.empty()) << names_[track];
  }
  Shown shown;

 private:
  void read_packet(const Message& packet) {
    EXPECT_NE(packet.number(10), 0u) << "every packet belongs to a sequence";
    if (packet.has(12)) {
      EXPECT_EQ(packet.number(13), 1u) << "incremental state cleared before names";
      read_interned(read_message(packet.text(12)));
    }
    if (packet.has(60)) read_track(read_message(packet.text(60)));
    if (!packet.has(11)) return;
    EXPECT_GE(packet.number(8), shown.last_ns) << "time goes back within a sequence";
    shown.last_ns = packet.number(8);
    read_event(packet.number(8), read_message(packet.text(11)));
  }

  void read_interned(const Message& data) {
    for (const auto& [field, bytes] : data.texts) {
      const Message entry = read_message(bytes);
      EXPECT_TRUE(interned_.emplace(std::pair(field, entry.number(1)), entry.text(2)).second);
    }
  }

  void read_track(const Message& track) {
    const std::uint64_t uuid = track.number(1);
    EXPECT_NE(uuid, 0u);
    std::string name;
    if (track.has(3)) name = read_message(track.text(3)).text(6);
    if (track.has(4)) {
      const Message thread = read_message(track.text(4));
      EXPECT_EQ(thread.number(1), track.number(5)) << "a thread's pid is its process's";
      name = names_.at(track.number(5)) + "/" + thread.text(5);
    }
    if (track.has(8)) name = names_.at(track.number(5)) + "/" + track.text(2);
    EXPECT_TRUE(names_.emplace(uuid, name).second) << "uuid used twice";
    shown.tracks.push_back(name);
  }

  void read_event(std::uint64_t time, const Message& event) {
    const std::uint64_t track = event.number(11);
    if (event.number(9) == 3) shown.instants.push_back(event.text(23));
    if (event.number(9) == 4) {
      shown.counters.emplace_back(names_.at(track), std::bit_cast<double>(event.number(44)));
    }
    if (event.number(9) == 1) {
      const Message annotation = read_message(event.text(4));
      EXPECT_EQ(interned_.at({3, annotation.number(1)}), "duration_ps");
      open_[track].push_back(shown.slices.size());
      shown.slices.push_back({names_.at(track), interned_.at({2, event.number(10)}),
                              interned_.at({1, event.number(3)}), time, 0, annotation.number(3),
                              open_[track].size(), event.number(47)});
    }
    if (event.number(9) == 2) {
      ASSERT_FALSE(open_[track].empty()) << "an end without a begin";
      shown.slices[open_[track].back()].end_ns = time;
      open_[track].pop_back();
    }
  }

  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> interned_;
  std::map<std::uint64_t, std::string> names_;
  std::map<std::uint64_t, std::vector<std::size_t>> open_;
};

Shown show(Timeline& timeline, const std::ostringstream& out) {
  timeline.close();
  return TraceReader(out.str()).shown;
}

std::vector<std::string> names_of(const Shown& shown) {
  std::vector<std::string> names;
  for (const auto& slice : shown.slices) names.push_back(slice.name);
  return names;
}

TEST(Timeline, ShowsSpansWithTheirNamesAndTracks) {
  std::ostringstream out;
  Timeline timeline(out);
  timeline.process(7, "pp 0");
  timeline.thread(7, 0, "compute");
  timeline.span(7, 0, "qkv", "gemm", 1'000, 5'500);
  timeline.span(8, 2, "reduce", "all_reduce", 2'000, 2'000'000);
  const Shown shown = show(timeline, out);
  ASSERT_EQ(shown.slices.size(), 2u);
  EXPECT_EQ(shown.slices[0].track, "pp 0/compute");
  EXPECT_EQ(shown.slices[0].name, "qkv");
  EXPECT_EQ(shown.slices[0].category, "gemm");
  EXPECT_EQ(shown.slices[0].begin_ns, 1u);
  EXPECT_EQ(shown.slices[0].end_ns, 5u);  // 5.5 ns rounded down
  EXPECT_EQ(shown.slices[0].duration_ps, 4'500u);
  EXPECT_EQ(shown.slices[1].track, "role 8/stream 2");
  EXPECT_EQ(shown.slices[1].end_ns, 2'000u);
}

TEST(Timeline, ATrackOnWhichNothingHappensIsNotThere) {
  std::ostringstream out;
  Timeline timeline(out);
  timeline.process(0, "rank 0");
  timeline.thread(0, 0, "compute");
  timeline.process(1, "rank 1");
  timeline.thread(1, 0, "compute");
  timeline.thread(1, 1, "copies");
  timeline.span(1, 0, "qkv", "", 0, 1'000);
  EXPECT_THAT(show(timeline, out).tracks, ElementsAre("rank 1", "rank 1/compute"));
}

TEST(Timeline, SpansOfAFlowHaveItsNumber) {
  std::ostringstream out;
  Timeline timeline(out);
  timeline.span(0, 0, "send", "", 0, 3'000);
  timeline.flow(77);
  timeline.span(1, 0, "receive", "", 1'000, 3'000);
  timeline.flow(77);
  timeline.span(1, 0, "next", "", 3'000, 4'000);
  const Shown shown = show(timeline, out);
  ASSERT_EQ(shown.slices.size(), 3u);
  EXPECT_EQ(shown.slices[0].flow, 77u);
  EXPECT_EQ(shown.slices[1].flow, 77u);
  EXPECT_EQ(shown.slices[2].flow, 0u);
}

TEST(Timeline, SortsSpansThatArriveInAnotherOrder) {
  std::ostringstream out;
  Timeline timeline(out);
  timeline.span(0, 0, "third", "", 9'000, 10'000);
  timeline.span(1, 0, "first", "", 0, 20'000);
  timeline.span(0, 0, "second", "", 5'000, 9'000);
  EXPECT_THAT(names_of(show(timeline, out)), ElementsAre("first", "second", "third"));
}

TEST(Timeline, NestsASpanWithinAnother) {
  std::ostringstream out;
  Timeline timeline(out);
  timeline.span(0, 0, "inner", "", 2'000, 3'000);
  timeline.span(0, 0, "outer", "", 2'000, 9'000);
  timeline.span(0, 0, "next", "", 9'000, 10'000);
  const Shown shown = show(timeline, out);
  ASSERT_THAT(names_of(shown), ElementsAre("outer", "inner", "next"));
  EXPECT_EQ(shown.slices[0].depth, 1u);
  EXPECT_EQ(shown.slices[1].depth, 2u);
  EXPECT_EQ(shown.slices[2].depth, 1u);
}

// Spans far below a nanosecond, back to back, share time stamps; they must still not nest.
TEST(Timeline, KeepsOrderBelowTheResolutionOfTheFormat) {
  std::ostringstream out;
  Timeline timeline(out);
  for (std::uint64_t i = 0; i < 100; ++i) {
    timeline.span(0, 0, "k" + std::to_string(i), "", 100 * i, 100 * (i + 1));
  }
  timeline.span(0, 0, "instant", "", 300, 300);
  const Shown shown = show(timeline, out);
  ASSERT_EQ(shown.slices.size(), 101u);
  for (const auto& slice : shown.slices) {
    EXPECT_EQ(slice.depth, 1u) << slice.name;
    EXPECT_EQ(slice.duration_ps, slice.name == "instant" ? 0u : 100u);
  }
  EXPECT_EQ(shown.slices[3].name, "instant");  // between k2, which ends at 300 ps, and k3
}

TEST(Timeline, RefusesSpansOfAStreamThatCross) {
  std::ostringstream out;
  Timeline timeline(out);
  timeline.span(0, 0, "a", "", 0, 2'000);
  timeline.span(0, 0, "b", "", 1'000, 3'000);
  EXPECT_THROW(timeline.close(), std::logic_error);
  EXPECT_THROW(timeline.span(0, 0, "c", "", 2, 1), std::logic_error);
}

TEST(Timeline, SpansOfTwoStreamsMayCross) {
  std::ostringstream out;
  Timeline timeline(out);
  timeline.span(0, 0, "a", "", 0, 2'000);
  timeline.span(0, 1, "b", "", 1'000, 3'000);
  EXPECT_EQ(show(timeline, out).slices.size(), 2u);
}

TEST(Timeline, ShowsCounters) {
  std::ostringstream out;
  Timeline timeline(out);
  timeline.process(0, "r");
  timeline.counter(0, "memory bytes", 0, 1.5e9);
  timeline.counter(0, "memory bytes", 1'000, -0.25);
  EXPECT_THAT(show(timeline, out).counters,
              ElementsAre(std::pair("r/memory bytes", 1.5e9), std::pair("r/memory bytes", -0.25)));
}

TEST(Timeline, SaysWhatTheLimitLeftOut) {
  std::ostringstream out;
  Timeline timeline(out, 3);
  for (std::uint64_t i = 0; i < 5; ++i) timeline.span(0, 0, "k", "", 1'000 * i, 1'000 * (i + 1));
  EXPECT_EQ(timeline.left_out(), 2u);
  const Shown shown = show(timeline, out);
  EXPECT_EQ(shown.slices.size(), 3u);
  EXPECT_THAT(shown.instants, ElementsAre("2 events left out (limit 3), the first at 3 ns"));
}

// BEGIN: packet 2, timestamp 1+5, flags 2, event 2+2 type+2 track+2 name+2 category+2+2+7
// annotation, sequence 2: about 31 bytes; END: about 18. Plain names would add their length to
// each.
TEST(Timeline, TakesLessThanSixtyBytesASpan) {
  std::ostringstream out;
  Timeline timeline(out);
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    timeline.span(0, 0, "layer.attention.projection", "gemm", i * 1'000'000,
                  i * 1'000'000 + 999'999);
  }
  timeline.close();
  EXPECT_LT(out.str().size(), 10'000u * 60);
}

TEST(Timeline, WritesTheWholeFileOrNone) {
  const TemporaryFolder folder;
  const std::string path = folder / "run.pftrace";
  {
    Timeline abandoned(path);
    abandoned.span(0, 0, "a", "", 0, 1);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  Timeline timeline(path);
  timeline.span(0, 0, "a", "", 0, 1'000);
  EXPECT_FALSE(std::filesystem::exists(path));
  timeline.close();
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_EQ(TraceReader(bytes.str()).shown.slices.size(), 1u);
  EXPECT_THROW(Timeline(folder / "none" / "run.pftrace"), std::system_error);
}

TEST(Timeline, FullDiskIsAnError) {
  std::ofstream full("/dev/full", std::ios::binary);
  if (!full) GTEST_SKIP() << "no /dev/full";
  Timeline timeline(full);
  timeline.span(0, 0, "a", "", 0, 1'000);
  try {
    timeline.close();
    FAIL() << "wrote to a full disk";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_space_on_device);
  }
}

TEST(Timeline, IsAProtobufToProtoc) {
  if (std::system("protoc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no protoc";
  const TemporaryFolder folder;
  Timeline timeline(folder / "t.pftrace");
  timeline.process(0, "role zero");
  timeline.span(0, 0, "qkv", "gemm", 1'000, 5'000);
  timeline.counter(0, "bytes", 2'000, 2.0);
  timeline.close();
  const std::string command = "protoc --decode_raw < " + (folder / "t.pftrace").string() + " > " +
                              (folder / "t.txt").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ostringstream text;
  text << std::ifstream(folder / "t.txt").rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("6: \"role zero\""));
  EXPECT_THAT(text.str(), HasSubstr("2: \"qkv\""));
  EXPECT_THAT(text.str(), HasSubstr("44: 0x4000000000000000"));  // 2.0
}

}  // namespace
}  // namespace orrery::timeline_test
