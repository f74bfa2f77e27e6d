// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/service.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace orrery {
namespace {

constexpr std::int64_t kEventsBetweenLooks = 4096;

}  // namespace

void LoadReports::report(const std::vector<Instance>& instances) {
  last_.clear();
  for (const Instance& instance : instances) last_.push_back(instance.view());
}

void LoadReports::sent(const Request& request, std::size_t instance) {
  if (at_once()) return;
  ++last_[instance].waiting;
  last_[instance].tokens += request.prompt;
}

InstanceView LoadReports::view(const std::vector<Instance>& instances, std::size_t instance) const {
  InstanceView view = at_once() ? instances[instance].view() : last_[instance];
  view.instance = instance;
  return view;
}

Service::Service(std::vector<Instance>& instances, Router& router, RequestSource& source,
                 ServingLog& log, Handover* handover, LoadReports reports)
    : instances_(instances),
      router_(router),
      source_(source),
      log_(log),
      handover_(handover),
      reports_(std::move(reports)) {
  for (std::size_t i = 0; i < instances.size(); ++i)
    if (instances[i].role() != InstanceRole::kDecode) takers_.push_back(i);
}

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

/// All that take prompts, or what an autoscaler leaves of them.
void Service::choose_takers() {
  open_.clear();
  for (const std::size_t taker : takers_)
    if (autoscaler_ == nullptr || autoscaler_->takes(taker, instances_, now_))
      open_.push_back(taker);
}

/// Whether requests are still to come or under way: anything but looks and reports.
bool Service::work_left() const {
  return events_queue_.size() > (looks_ ? 1U : 0U) + (reports_due_ ? 1U : 0U);
}

void Service::scale() {
  looks_ = false;
  const Picoseconds next = autoscaler_->look(instances_, now_);
  if (next == kNever || !work_left()) return;
  looks_ = true;
  events_queue_.push({next, 0, kScale, 0});
}

void Service::report() {
  reports_.report(instances_);
  reports_due_ = false;
  if (!work_left()) return;
  reports_due_ = true;
  events_queue_.push({checked_add(now_, reports_.interval()), 0, kReport, 0});
}

void Service::arrive(std::uint32_t slot) {
  if (coming_[slot].first_hand) expect_next();
  Coming& coming = coming_[slot];
  if (arrived_++ == 0) first_arrival_ = now_;
  for (ServingObserver* observer : observers_)
    observer->arrived(coming.request, coming.first_hand, now_);
  views_.clear();
  choose_takers();
  for (const std::size_t taker : open_) views_.push_back(reports_.view(instances_, taker));
  coming.instance = open_[router_.choose(coming.request, views_)];
  router_.sent(coming.request, coming.instance);
  reports_.sent(coming.request, coming.instance);
  instances_[coming.instance].expect(coming.request);
  const Picoseconds delay = instances_[coming.instance].request_delay();
  if (delay == 0) {
    queue(slot);
  } else {
    events_queue_.push({checked_add(now_, delay), slot, kQueued, 0});
  }
}

/// The router that sends requests to an instance.
Router& Service::router_of(std::size_t instance) {
  return instances_[instance].role() == InstanceRole::kDecode ? handover_->router() : router_;
}

void Service::queue(std::uint32_t slot) {
  Coming& coming = coming_[slot];
  Instance& instance = instances_[coming.instance];
  instance.add(std::move(coming.request), now_);
  if (!instance.busy()) awake_.push_back(coming.instance);
  spare_.push_back(slot);
}

void Service::end_iteration(std::size_t instance, std::size_t lane) {
  instances_[instance].end(lane, log_, ended_);
  awake_.push_back(instance);
  for (const Request& request : ended_.prefilled) router_.prefilled(request);
  for (Instance::Leaving& left : ended_.leaving) {
    router_.answered(left.state.request);
    handover_->leave(std::move(left), instance, now_);
  }
  for (const RequestState& progress : ended_.finished) {
    log_.add(progress, static_cast<std::int32_t>(instance));
    for (ServingObserver* observer : observers_) observer->answered(progress, now_);
    router_of(instance).answered(progress.request);
    if (auto request = source_.after(progress.request, now_)) expect(std::move(*request), false);
  }
}

/// The last bytes of some requests are sent.
void Service::cross() {
  next_crossed_ = kNever;
  for (const Handover::Crossed& crossed : handover_->crossed(now_))
    events_queue_.push({crossed.at, crossed.slot, kMoved, 0});
}

/// The cache of a request has come from another instance: both may go on.
void Service::move(std::uint32_t slot) {
  const Handover::Moved moved = handover_->arrive(slot, now_);
  for (const std::size_t end : {moved.from, moved.to})
    if (!instances_[end].busy()) awake_.push_back(end);
  for (ServingObserver* observer : observers_)
    observer->moved(moved.request, moved.from, moved.to, moved.since, now_);
}

/// Once all that happens at this time has happened: what crosses the fabric shares it anew.
void Service::follow_handover() {
  for (const std::size_t i : awake_) handover_->look_for_room(i, now_);
  const Picoseconds next = handover_->settle(now_);
  if (next == kNever || next == next_crossed_) return;
  next_crossed_ = next;
  events_queue_.push({next, 0, kCrossed, 0});
}

/// Once all that happens at this time has happened.
void Service::begin_iterations() {
  for (const std::size_t i : awake_) {
    while (!instances_[i].busy()) {
      const auto begun = instances_[i].begin(now_);
      if (!begun) break;
      events_queue_.push({begun->end, static_cast<std::uint32_t>(i), kIteration,
                          static_cast<std::uint16_t>(begun->lane)});
      for (ServingObserver* observer : observers_) observer->begun(i, instances_[i], *begun);
    }
  }
  awake_.clear();
}

void Service::handle(const Event& event) {
  if (event.kind == kArrival) arrive(event.target);
  if (event.kind == kQueued) queue(event.target);
  if (event.kind == kIteration) end_iteration(event.target, event.argument);
  if (event.kind == kCrossed) cross();
  if (event.kind == kMoved) move(event.target);
  if (event.kind == kReport) report();
  if (event.kind == kScale || (autoscaler_ != nullptr && !looks_)) scale();
}

void Service::run(const Watch& watch) {
  expect_next();
  if (!reports_.at_once()) report();
  while (!events_queue_.empty() && !stopped_) {
    const Event event = events_queue_.pop();
    now_ = event.time;
    handle(event);
    if (handover_ != nullptr && events_queue_.top_time() != now_) follow_handover();
    if (events_queue_.top_time() != now_) begin_iterations();
    if (++events_ % kEventsBetweenLooks == 0 && watch)
      stopped_ = !watch(now_, static_cast<std::int64_t>(log_.served().size()));
  }
  if (!stopped_ && static_cast<std::int64_t>(log_.served().size()) != arrived_)
    throw std::logic_error("requests are left that nothing happens to");
}

}  // namespace orrery
