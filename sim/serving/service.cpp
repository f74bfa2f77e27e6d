// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/service.h"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

constexpr std::int64_t kEventsBetweenLooks = 4096;

}  // namespace

std::uint32_t Service::keep(Coming coming) {
  if (spare_.empty()) {
    coming_.push_back(std::move(coming));
    return static_cast<std::uint32_t>(coming_.size() - 1);
  }
  const std::uint32_t slot = spare_.back();
  spare_.pop_back();
  coming_[slot] = std::move(coming);
  return slot;
}

void Service::expect(Request request, bool first_hand) {
  const Picoseconds at = std::max(request.arrival, now_);
  const std::uint32_t slot = keep({std::move(request), 0, first_hand});
  events_queue_.push({at, slot, kArrival, 0});
}

void Service::expect_next() {
  if (auto request = source_.next()) expect(std::move(*request), true);
}

void Service::arrive(std::uint32_t slot) {
  if (coming_[slot].first_hand) expect_next();
  Coming& coming = coming_[slot];
  ++arrived_;
  views_.clear();
  for (const Instance& instance : instances_) views_.push_back(instance.view());
  coming.instance = router_.choose(coming.request, views_);
  const Picoseconds delay = instances_[coming.instance].request_delay();
  if (delay == 0) {
    queue(slot);
  } else {
    events_queue_.push({checked_add(now_, delay), slot, kQueued, 0});
  }
}

void Service::queue(std::uint32_t slot) {
  Coming& coming = coming_[slot];
  Instance& instance = instances_[coming.instance];
  instance.add(std::move(coming.request));
  if (!instance.busy()) awake_.push_back(coming.instance);
  spare_.push_back(slot);
}

void Service::end_iteration(std::size_t instance) {
  finished_.clear();
  instances_[instance].end(log_, finished_);
  awake_.push_back(instance);
  for (const RequestState& progress : finished_) {
    log_.add(progress, static_cast<std::int32_t>(instance));
    if (auto request = source_.after(progress.request, now_)) expect(std::move(*request), false);
  }
}

/// Once all that happens at this time has happened.
void Service::begin_iterations() {
  for (const std::size_t i : awake_) {
    if (instances_[i].busy()) continue;
    const Picoseconds end = instances_[i].begin(now_);
    if (end > 0) events_queue_.push({end, static_cast<std::uint32_t>(i), kIteration, 0});
  }
  awake_.clear();
}

void Service::run(const Watch& watch) {
  expect_next();
  while (!events_queue_.empty() && !stopped_) {
    const Event event = events_queue_.pop();
    now_ = event.time;
    if (event.kind == kArrival) arrive(event.target);
    if (event.kind == kQueued) queue(event.target);
    if (event.kind == kIteration) end_iteration(event.target);
    if (events_queue_.top_time() != now_) begin_iterations();
    if (++events_ % kEventsBetweenLooks == 0 && watch)
      stopped_ = !watch(now_, static_cast<std::int64_t>(log_.answers().size()));
  }
}

}  // namespace orrery
