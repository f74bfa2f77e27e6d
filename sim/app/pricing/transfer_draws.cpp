// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/transfer_draws.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/machine/draws.h"

namespace orrery {
namespace {

/// Measured collectives of one size of time: what the calibration left out of its fit. Beyond what
/// was measured the last class stands for the spread.
const ResidualClass& residuals_of(const NetworkCalibration& calibration, double time_us) {
  const auto below = [&](const ResidualClass& r) { return r.below_us > time_us; };
  const auto at = std::find_if(calibration.residuals.begin(), calibration.residuals.end(), below);
  return at == calibration.residuals.end() ? calibration.residuals.back() : *at;
}

bool measured(const Experiment& experiment, const Transfer& transfer) {
  const bool tokens =
      transfer.kind == TransferKind::kDispatch || transfer.kind == TransferKind::kCombine;
  return experiment.network && !tokens && transfer.pair_bytes.empty() && !transfer.host;
}

bool inside_a_system(const Transfer& transfer, int ranks_per_system) {
  return std::all_of(transfer.groups.begin(), transfer.groups.end(), [&](const auto& group) {
    return std::all_of(group.begin(), group.end(), [&](int rank) {
      return rank / ranks_per_system == group.front() / ranks_per_system;
    });
  });
}

}  // namespace

Provenance transfer_provenance(const Experiment& experiment, const Transfer& transfer) {
  if (!measured(experiment, transfer)) return Provenance::kAnalytic;
  const NetworkCalibration& calibration = *experiment.network;
  const int ranks = static_cast<int>(transfer.groups.front().size());
  const bool own = calibration.system == experiment.system.id &&
                   inside_a_system(transfer, experiment.system.ranks());
  return own && calibration.covers(transfer.bytes, ranks) ? Provenance::kCalibrated
                                                          : Provenance::kExtrapolated;
}

std::vector<double> transfer_draws(const Experiment& experiment, const Transfer& transfer,
                                   Seconds time) {
  if (!measured(experiment, transfer) || experiment.network->residuals.empty()) return {};
  const NetworkCalibration& calibration = *experiment.network;
  const ResidualClass& spread = residuals_of(calibration, time.base() * 1e6);
  std::vector<double> factors = normal_draws(
      experiment.seed, "collective " + calibration.id + " " + to_string(transfer.kind));
  for (double& factor : factors) factor = std::exp(spread.median + spread.sigma * factor);
  return factors;
}

}  // namespace orrery
