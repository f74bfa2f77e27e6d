// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/serving/instance.h"
#include "sim/serving/serving_log.h"
#include "sim/serving/serving_observer.h"

namespace orrery {

/// The time in which a service is neither filling nor draining: from the end of the first request
/// that arrived until the last arrival. Observes a run, and has the log keep the gaps between
/// tokens of that time apart.
///
/// Follow-ups (the next request of a client, the next turn of a conversation) extend it only where
/// all else arrives at once: conversations that go on after the last one began are a load that
/// fades.
class SteadyWindow final : public ServingObserver {
 public:
  /// Both outlive it.
  SteadyWindow(const std::vector<Instance>& instances, ServingLog& log)
      : instances_(instances), log_(log) {}

  void arrived(const Request& request, bool first_hand, Picoseconds now) override;
  void answered(const RequestState& progress, Picoseconds now) override;

  /// Whether requests arrive over time, whoever is answered.
  bool open() const { return open_; }
  /// Time from the first arrival to the last.
  Seconds horizon() const { return to_seconds(until_ - first_arrival_); }
  /// Whether anything is in it: the last request arrived after the first had ended.
  bool empty() const { return from_ == kNotYet || until_ <= from_; }
  Picoseconds from() const { return from_; }
  Picoseconds until() const { return until_; }
  Seconds length() const { return to_seconds(until_ - from_); }
  /// Joules above idle that the devices of an instance took in it, to an iteration.
  double energy(std::size_t instance) const {
    return energy_until_[instance] - energy_from_[instance];
  }

 private:
  std::vector<double> energies() const;

  const std::vector<Instance>& instances_;
  ServingLog& log_;
  bool any_ = false, open_ = false;
  std::int64_t first_ = 0;  ///< number of the first request
  Picoseconds first_arrival_ = 0, from_ = kNotYet, until_ = 0;
  std::vector<double> energy_from_, energy_until_;  ///< joules by instance
};

}  // namespace orrery
