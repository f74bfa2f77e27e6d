// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/experiments/serving.h"
#include "validation/calibration/errors.h"
#include "validation/checks/serving_rows.h"

namespace orrery {

using TimeInterval = std::pair<double, double>;  ///< p10 and p90 of a time [ms]

/// A measured run beside its prediction.
struct ServingComparison {
  ServingRow row;
  std::string reason;  ///< why there is no prediction
  double ttft_ms = 0, tpot_ms = 0;
  bool experts = false;  ///< the model has some
  std::optional<TimeInterval> ttft_interval = {}, tpot_interval = {};
};

/// Whether a run is served again at p10 and p90 of its steps, which takes three times as long.
enum class Intervals : std::uint8_t { kNone, kServed };

/// Serves measured runs on simulated hardware. Runs on the same hardware by the same plan share
/// their prices.
class ServingValidation {
 public:
  /// @param models folder with Hugging Face configurations ("org--name.json") of models that the
  /// library lacks; empty: none
  explicit ServingValidation(std::string models = {}) : models_(std::move(models)) {}

  ServingComparison compare(const ServingRow& row, Intervals intervals = Intervals::kNone);

  /// Finds out which clients of an unknown protocol come in waves, as those of SGLang do whose
  /// prompts are of one length: none of a model by a version on a device where first tokens of one
  /// of its rows come sooner, in the mean, than half of the time in which the devices could compute
  /// a prompt of each client at their peak. Those of other engines fall out of step by themselves.
  void learn_protocols(const std::vector<ServingRow>& rows);

  /// What hosts take in all comparisons from now on; none: what each engine's does by itself.
  void set_host(const std::optional<HostCosts>& host) { host_ = host; }

  /// A published model as experiments name it: a name of the library, or {hf: PATH}; empty: none.
  std::string model_of(const std::string& path);

 private:
  void predict(const ServingRow& row, Intervals intervals, ServingComparison& comparison);

  std::string models_;
  std::optional<HostCosts> host_;
  std::set<std::string> out_of_step_;  ///< runs whose clients do not come in waves
  std::map<std::string, std::string>
      names_;  ///< models of the library by what they are published as
  std::map<std::string, std::unique_ptr<ServingFleet>> fleets_;
};

/// How intervals hold measured times: 80 % of these should be inside.
struct Coverage {
  std::size_t inside = 0, all = 0;
  double width = 0;  ///< median of p90 / p10
};

/// Rows that are judged together.
struct ServingTarget {
  std::string name;
  ErrorSummary tpot, ttft;
  Coverage tpot_coverage = {}, ttft_coverage = {};
};

/// Dense models; models of experts whose engine's version is known, without rows of DeepSeek-R1
/// whose key has been measured with times an answer that differ by more than 10 % (draft tokens are
/// no part of keys); then each of these models.
std::vector<ServingTarget> serving_targets(const std::vector<ServingComparison>& comparisons);

/// Errors of both times, in the summary's microseconds.
/// @param of rows with a prediction
ServingTarget serving_target(const std::string& name,
                             const std::vector<const ServingComparison*>& of);

}  // namespace orrery
