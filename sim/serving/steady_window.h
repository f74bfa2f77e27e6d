// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/serving/instance.h"
#include "sim/serving/serving_log.h"
#include "sim/serving/serving_observer.h"

namespace orrery {

/// The time in which a service is neither filling nor draining: from one lifetime of a request
/// after the first arrival until the last arrival. The lifetime is that of the first request or the
/// mean over all, whichever is longer: the first one runs alone, and others take longer.
///
/// Observes a run. Follow-ups (the next request of a client, the next turn of a conversation)
/// extend the window only where all else arrives at once: conversations that go on after the last
/// one began are a load that fades.
class SteadyWindow final : public ServingObserver {
 public:
  /// Both outlive it. The log keeps the gaps between tokens from the end of the first request to
  /// the last arrival apart.
  SteadyWindow(const std::vector<Instance>& instances, ServingLog& log)
      : instances_(instances), log_(log) {}

  void arrived(const Request& request, bool first_hand, Picoseconds now) override;
  void answered(const RequestState& progress, Picoseconds now) override;

  /// Whether requests arrive over time, whoever is answered.
  bool open() const { return open_; }
  /// Time from the first arrival to the last.
  Seconds horizon() const { return to_seconds(until_ - first_arrival_); }
  /// When the first lifetime has passed; kNotYet before any request is answered.
  Picoseconds from() const;
  Picoseconds until() const { return until_; }
  bool empty() const { return until_ <= from(); }
  Seconds length() const { return to_seconds(until_ - from()); }
  /// Joules above idle that the devices of each instance took in it, to a thousandth of the
  /// horizon.
  std::vector<double> energies() const;

 private:
  /// Joules of all instances at some time.
  struct Mark {
    Picoseconds at = 0;
    std::vector<double> energies;
  };

  Mark mark(Picoseconds now) const;
  void keep(Mark last);

  const std::vector<Instance>& instances_;
  ServingLog& log_;
  bool any_ = false, open_ = false;
  std::int64_t first_ = 0;  ///< number of the first request
  Picoseconds first_arrival_ = 0, first_end_ = kNotYet, until_ = 0;
  std::vector<Mark> marks_;  ///< marks from the first arrival to the last
  Picoseconds spacing_ = 0;  ///< least time between two marks
};

}  // namespace orrery
