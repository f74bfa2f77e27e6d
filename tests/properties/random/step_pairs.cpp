// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random/step_pairs.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/app/experiments/training/training.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "tests/properties/random/compare.h"

namespace orrery {
namespace {

constexpr double kSlack = 0.01;  ///< waves of blocks and fair sharing, as in laws.cpp

/// Time of the kernels of some classes on the rank that ends last.
double time_of(const RunRecord& record, const std::vector<std::string>& classes) {
  double sum = 0;
  for (const ClassBreakdown& c : record.classes)
    if (std::find(classes.begin(), classes.end(), c.name) != classes.end()) sum += c.time_s;
  return sum;
}

/// The result of a step with further settings; none if they are refused or do not fit.
std::optional<RunRecord> with(const RandomExperiment& step, const std::vector<std::string>& set) {
  try {
    RunRecord record = simulate_again(step.with(set));
    if (record.status == RunStatus::kOk) return record;
  } catch (const config::ConfigError&) {
    // Replicas that the machine has no ranks for, or the batch no sequences.
  } catch (const PointFailure&) {
  }
  return std::nullopt;
}

/// Casts are elementwise. Small products run in kernels that fp8 does not make faster, of which the
/// measured ones of some shapes are slower.
void compare_precisions(const RandomExperiment& step, const RunRecord& narrow, Trial& trial) {
  const std::vector<std::string> wider = {"precision=bf16"};
  const std::optional<RunRecord> wide = with(step, wider);
  if (!wide) return;
  const auto more = [&](const std::vector<std::string>& classes) {
    return std::max(0.0, time_of(narrow, classes) - time_of(*wide, classes));
  };
  const double casts = more({"elementwise", "quantize"}), products = more({"gemm", "grouped_gemm"});
  const double before = duration(*wide), after = duration(narrow);
  constexpr double kSmall = 0.1;  // of the time of products
  const bool slower = products > kSmall * time_of(*wide, {"gemm", "grouped_gemm"});
  if (slower || after > before * (1 + kSlack) + casts + products)
    trial.violations.push_back({"fp8 is slower by its casts and products alone",
                                figures("bf16", before, "fp8", after) + ", " +
                                    figures("casts", casts, "products", products),
                                wider});
}

/// What a step does besides communicating.
double own_work(const RunRecord& record) {
  double sum = 0;
  for (const char* part : {"compute_s", "optimizer_s", "host_s"})
    sum += metric(record, std::string("breakdown.") + part);
  return sum;
}

void compare_replicas(const RandomExperiment& step, const RunRecord& few, Trial& trial) {
  const int dp =
      load_experiment(step.file(), step.assignments).as<TrainingExperiment>().parallel.dp;
  const std::vector<std::string> twice = {"parallel.dp=" + std::to_string(2 * dp)};
  const std::optional<RunRecord> many = with(step, twice);
  // The breakdown is that of the stage that ends last, and stages of unlike layers have unlike
  // work.
  if (!many || label(few, "breakdown.stage") != label(*many, "breakdown.stage")) return;
  const double before = own_work(few), after = own_work(*many);
  if (after > before * (1 + kSlack))
    trial.violations.push_back({"twice the replicas do no more work each",
                                figures("before", before, "after", after), twice});
}

}  // namespace

RandomExperiment draw_pair(Draw& draw) {
  RandomExperiment step = draw_training_as_sold(draw);
  step.assignments.push_back("precision=" + draw.of({"fp8", "bf16"}));
  return step;
}

Trial try_pair(const RandomExperiment& step) {
  return tried([&](Trial& trial) {
    const RunRecord record = simulate_again(step);
    if (record.status != RunStatus::kOk) {
      trial.outcome = Trial::Outcome::kInfeasible;
      return;
    }
    const auto& e = load_experiment(step.file(), step.assignments);
    if (e.as<TrainingExperiment>().precision == Precision::kFp8) {
      compare_precisions(step, record, trial);
    } else {
      compare_replicas(step, record, trial);
    }
  });
}

}  // namespace orrery
