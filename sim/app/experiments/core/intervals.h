// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "sim/app/experiments/core/play.h"
#include "sim/graph/costs.h"
#include "sim/machine/kernel_model.h"

namespace orrery {

/// How much of a time rests on what: seconds, or any unit, by provenance.
class ProvenanceTime {
 public:
  void add(Provenance provenance, double time) { parts_.at(index(provenance)) += time; }
  /// Adds a time that rests on the same in the same shares.
  void add(const ProvenanceTime& shares, double time) {
    const double all = shares.total();
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i] += time * shares.parts_[i] / all;
  }
  double of(Provenance provenance) const { return parts_.at(index(provenance)); }
  double total() const { return std::accumulate(parts_.begin(), parts_.end(), 0.0); }
  /// Whether any of it rests on a fit.
  bool fitted() const {
    return of(Provenance::kMeasured) + of(Provenance::kCalibrated) + of(Provenance::kExtrapolated) >
           0;
  }

 private:
  static std::size_t index(Provenance provenance) { return static_cast<std::size_t>(provenance); }
  std::array<double, 4> parts_{};
};

/// What a result says of collectives whose start nobody published (sim/machine/collective_start.h).
std::string assumed_start(const SystemConfig& system);

/// The `provenance` of a result: shares of the time, and what they rest on.
/// @param calibration id of the calibration in use; empty: none
nlohmann::ordered_json provenance_json(const ProvenanceTime& time, const std::string& calibration);

/// A replayed step with what its draws come from.
struct StepSource {
  const Machine& machine;
  const KernelModel& model;
  const Program& program;
  const StepOutcome& outcome;
  std::int64_t seed;
  /// Kernels that the draws of the program's kernels are those of; null: these themselves.
  const std::vector<Kernel>* shapes = nullptr;
};

/// A step on kDraws equally likely machines, relative to the predicted one.
struct StepDraws {
  std::vector<double> step;     ///< how many times longer the whole takes
  std::vector<double> compute;  ///< how many times longer its kernels take
  double least = 0;  ///< share of the whole that its kernels take at the rates of the device
};

/// First order: a kernel that takes x longer on the rank that ends last lengthens what that rank
/// does by x, a transfer by as much of x as its kernels do not hide of all transfers, and bubbles,
/// which are the work of others, in proportion. tests/properties compares this with replays of
/// drawn prices.
StepDraws step_draws(const StepSource& source);

/// The same for the time `total` that the rank which ends last spends on some blocks.
std::vector<double> block_draws(const StepSource& source, const std::vector<BlockId>& blocks,
                                Seconds total);

/// Adds what the metrics of a step rest on, and the intervals of those that are there. Comes last.
/// @param beyond how many times longer the step takes by what its graph leaves out, by draw; empty:
/// nothing is known of that
void report_trust(const StepSource& source, RunRecord& record,
                  const std::vector<double>& beyond = {});

/// Adds the intervals of what is there of time, power and energy.
/// @param beyond as above
void add_step_intervals(const StepSource& source, RunRecord& record,
                        const std::vector<double>& beyond = {});

/// Lognormal factors of median 1: one uncertain quantity of that name and standard deviation of the
/// logarithm, by draw.
std::vector<double> spread_draws(std::int64_t seed, const std::string& name, double deviation);
/// How many times longer a step of inference takes than its graph, by draw: what neither kernels
/// nor transfers are, such as the host's part. Alike in steps and in served requests.
std::vector<double> beyond_graphs(bool has_experts, std::int64_t seed);
/// The same where one of four machines takes `slower` times longer, by a known error: p90 of times
/// lies beyond it.
std::vector<double> some_slower(std::vector<double> factors, double slower);
/// Both together; `more` may be empty.
std::vector<double> times(std::vector<double> factors, const std::vector<double>& more);

/// Gives an interval to every metric that is a time of the whole run, or so much per time of it.
/// @param factors how many times longer the run takes, by draw
void add_time_intervals(RunRecord& record, const std::vector<double>& factors);

/// Gives an interval to one metric, if the record has it.
/// @param factors how many times larger it is, by draw
void add_interval(RunRecord& record, std::string_view metric, std::vector<double> factors);

/// The power of a run on kDraws equally likely machines, over the predicted one.
struct PowerDraws {
  std::vector<double> factors;  ///< ratios at the predicted times
  double most = 1;              ///< what the caps of all accelerators allow, at any times
};

/// @param average of all accelerators in use
PowerDraws power_draws(const PowerConfig& power, Watts average, double packages, std::int64_t seed);

/// Energy, power and tokens per joule: of the energy only the part of a floor and of busy units
/// follows the time.
/// @param held_share that part of the energy
void add_energy_intervals(RunRecord& record, const std::vector<double>& step, double held_share,
                          const PowerDraws& power);

}  // namespace orrery
