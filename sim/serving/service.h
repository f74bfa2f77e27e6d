// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/events/event_queue.h"
#include "sim/serving/autoscaler.h"
#include "sim/serving/handover.h"
#include "sim/serving/instance.h"
#include "sim/serving/request_source.h"
#include "sim/serving/router.h"
#include "sim/serving/serving_log.h"
#include "sim/serving/serving_observer.h"
#include "sim/units/units.h"

namespace orrery {

/// The loads that a router sees. Instances report theirs at fixed intervals; between two reports
/// the router adds the requests that it has sent itself.
class LoadReports {
 public:
  /// @param interval between two reports; 0: every change is reported at once
  explicit LoadReports(Seconds interval = {}) : interval_(to_picoseconds(interval)) {}

  bool at_once() const { return interval_ == 0; }
  Picoseconds interval() const { return interval_; }
  /// All instances report.
  void report(const std::vector<Instance>& instances);
  /// The router has sent a request, which the instance already expects.
  void sent(const Request& request, std::size_t instance);
  /// What the router sees of an instance now.
  InstanceView view(const std::vector<Instance>& instances, std::size_t instance) const;

 private:
  Picoseconds interval_;
  std::vector<InstanceView> last_;  ///< last reports and the requests sent since, by instance
};

/// Requests, the router that spreads them, and the instances that answer them, in time. One event
/// for each arrival and for each iteration.
class Service {
 public:
  /// Hears of a run that goes on; false ends it.
  using Watch = std::function<bool(Picoseconds now, std::int64_t answered)>;

  /// All outlive the service.
  /// @param router chooses among the instances that take prompts
  /// @param handover brings requests from those that take only prompts to others; null: none does
  /// @param reports how the router learns of loads
  Service(std::vector<Instance>& instances, Router& router, RequestSource& source, ServingLog& log,
          Handover* handover = nullptr, LoadReports reports = LoadReports());

  /// @param observer outlives the service
  void observe(ServingObserver& observer) { observers_.push_back(&observer); }

  /// @param autoscaler outlives the service; has all instances
  void scale_by(Autoscaler& autoscaler) { autoscaler_ = &autoscaler; }

  /// Until all requests are answered.
  /// @param watch is asked every few thousand events; may be empty
  /// @throws std::overflow_error for a request that no instance can run
  void run(const Watch& watch = {});

  /// When the last iteration ended.
  Picoseconds now() const { return now_; }
  std::int64_t events() const { return events_; }
  /// When the first request came; 0 before.
  Picoseconds first_arrival() const { return first_arrival_; }
  /// Requests that came.
  std::int64_t arrived() const { return arrived_; }
  bool stopped() const { return stopped_; }

 private:
  enum Kind : std::uint16_t { kArrival, kQueued, kIteration, kCrossed, kMoved, kScale, kReport };

  struct Coming {
    Request request;
    std::size_t instance = 0;
    bool first_hand = true;  ///< given by next(), not by after()
  };

  void expect(Request request, bool first_hand);
  void expect_next();
  void arrive(std::uint32_t slot);
  Router& router_of(std::size_t instance);
  void queue(std::uint32_t slot);
  void end_iteration(std::size_t instance, std::size_t lane);
  void begin_iterations();
  bool work_left() const;
  void scale();
  void report();
  void choose_takers();
  void follow_handover();
  void cross();
  void move(std::uint32_t slot);
  void handle(const Event& event);
  std::uint32_t keep(Coming coming);

  std::vector<Instance>& instances_;
  Router& router_;
  RequestSource& source_;
  ServingLog& log_;
  EventQueue events_queue_;
  std::vector<Coming> coming_;        ///< requests on their way, by slot
  std::vector<std::uint32_t> spare_;  ///< slots without one
  std::vector<std::size_t> awake_;    ///< instances that may begin an iteration now
  std::vector<std::size_t> takers_;   ///< instances that take prompts
  std::vector<std::size_t> open_;     ///< instances that take the request in work
  Autoscaler* autoscaler_ = nullptr;
  bool looks_ = false;        ///< whether a look of the autoscaler is to come
  bool reports_due_ = false;  ///< whether a report of loads is to come
  std::vector<InstanceView> views_;
  Instance::Ended ended_;
  Handover* handover_;
  LoadReports reports_;
  std::vector<ServingObserver*> observers_;
  Picoseconds next_crossed_ = kNever;
  Picoseconds now_ = 0, first_arrival_ = 0;
  std::int64_t events_ = 0, arrived_ = 0;
  bool stopped_ = false;
};

}  // namespace orrery
