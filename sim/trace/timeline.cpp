// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/timeline.h"

#include <cerrno>
#include <ostream>
#include <stdexcept>
#include <system_error>

#include "sim/trace/atomic_file.h"
#include "sim/trace/timeline_writer.h"

namespace orrery {
namespace {

std::uint32_t intern(std::map<std::string, std::uint32_t, std::less<>>& texts,
                     std::string_view text) {
  const auto found = texts.find(text);
  if (found != texts.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(texts.size() + 1);
  texts.emplace(text, number);
  return number;
}

}  // namespace

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
