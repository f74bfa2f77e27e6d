// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/experiments/serving.h"

namespace orrery {

/// A fleet under some load: whether it keeps what users were promised. Times and goodput are those
/// of the steady window where requests arrive over time.
struct CapacityTrial {
  double value = 0;  ///< requests in a second, speed of a trace, or replicas
  double ttft_p99_ms = 0, tpot_p99_ms = 0, e2el_p99_ms = 0;
  double goodput = 0;       ///< requests in a second that kept all bounds
  double mean_e2el_ms = 0;  ///< mean time of whole requests
  double throughput = 0;    ///< requests answered in a second, over the whole run
  double requests = 0;      ///< requests of the run, lengthened where they were too few
  std::string load = {};    ///< stable, saturated or undecided
  std::string fails = {};   ///< the bound that is not kept; empty: all are

  bool holds() const { return fails.empty(); }
};

using CapacityTry = std::function<CapacityTrial(double value)>;

/// The answer, with all that was tried for it, in order.
struct CapacityAnswer {
  std::optional<double> value;  ///< none: nothing that was tried holds
  std::vector<CapacityTrial> trials;
};

/// Values that may be tried.
struct CapacityRange {
  double least = 0, most = 0;
};

/// The highest value that holds, taking all below one that holds to hold: doubles or halves from
/// `start`, then bisects down to a relative width. Values have four digits.
CapacityAnswer find_highest(const CapacityTry& attempt, double start, const CapacityRange& range,
                            double width);

/// The least whole number that holds, taking all above one that holds to hold: goes from `start` by
/// 1, 2, 4 and so on to where it changes, then bisects. Ends without a value where a larger number
/// changes nothing.
CapacityAnswer find_fewest(const CapacityTry& attempt, int start, int most);

/// What is looked for.
enum class Capacity { kMaxRate, kInstances };

/// A question to a serving experiment. All trials share the prices of one fleet.
class CapacitySearch {
 public:
  /// @param settings as of `--set`, bounds of `serving.slo` among them
  /// @throws UsageError for another kind of experiment, one without an SLO, or clients that have no
  /// rate; config::ConfigError
  CapacitySearch(std::string file, std::vector<std::string> settings, Capacity what);

  using Heard = std::function<void(const CapacityTrial&)>;
  /// @param heard hears of each trial, those with other seeds too; may be empty
  CapacityAnswer find(const Heard& heard);
  /// Seeds that an answer is tried with; a trace has none.
  int seeds() const { return seeded_ ? 5 : 1; }
  /// The number of seeds, the given one first, with which a value holds.
  int seeds_that_hold(double value);
  /// From the answer in steps of 2 %, or of one replica, to where all seeds hold; none within
  /// twenty.
  std::optional<double> value_for_all_seeds(double answer);

  /// The key that changes: "serving.workload.rate".
  const std::string& path() const { return path_; }
  /// The bounds in words: "p99 TTFT 2 s, p99 TPOT 50 ms".
  std::string bounds() const;

 private:
  RunRecord run(double value, std::int64_t seed, double requests) const;
  CapacityTrial attempt(double value, std::int64_t seed) const;
  int first_fleet() const;
  const CapacityTrial& known(double value, std::int64_t seed);
  bool all_hold(double value);
  const ServingExperiment& base() const { return loaded_.as<ServingExperiment>(); }
  std::string setting(double value) const;

  std::string file_;
  std::vector<std::string> settings_;
  Capacity what_;
  LoadedExperiment loaded_;
  std::string path_;
  std::string count_;    ///< key of the number of requests or sessions; empty: a trace or clients
  double requests_ = 0;  ///< requests or sessions of the experiment
  double rate_ = 0;      ///< requests or sessions in a second
  double start_ = 1;
  std::int64_t seed_ = 0;
  bool seeded_ = false;
  std::optional<ServingFleet> fleet_;
  std::map<std::pair<double, std::int64_t>, CapacityTrial> known_;  ///< trials by value and seed
  Heard heard_;
};

}  // namespace orrery
