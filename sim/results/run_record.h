// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/results/configuration.h"
#include "sim/results/result_rows.h"

namespace orrery {

/// One number of a result. Names and units are fixed (`describe metrics`).
struct Metric {
  std::string name;
  double value = 0;
  std::string unit;
  /// p10, p90; none where nothing was fitted
  std::optional<std::pair<double, double>> interval = std::nullopt;
};

/// Numbers of a result that belong together, such as the time of each rank. Printed, not stored.
struct MetricList {
  std::string name;
  std::vector<double> values;
  std::string unit;
};

/// One word of a result ("algorithm": "ring").
struct Label {
  std::string name;
  std::string value;
};

/// What one class of operators did on the rank that ends last.
struct ClassBreakdown {
  std::string name;  ///< "gemm", "all_reduce tp", ...
  std::uint64_t count = 0;
  double time_s = 0;  ///< sum of durations, overlapped or not
  double flops = 0;
  double bytes = 0;
};

/// What one part of the machine did in a run. Printed, not stored.
struct ComponentUse {
  std::string name;       ///< name such as "system0/node3"
  double busy_share = 0;  ///< share of the run with kernels on its accelerators
  double sent_bytes = 0;  ///< put on links by its accelerators
};

/// What a link, or a class of links, carried in a run.
struct LinkUse {
  std::string name;         ///< "system0/node0/accelerator3->group0/leaf3", "accelerator->leaf"
  std::uint64_t links = 1;  ///< physical ones, one way
  double bytes = 0;         ///< payload, on all of them
  double busy_share = 0;  ///< share of the run, had they carried it at full rate: mean of the links
  double peak_share = 0;  ///< share of the run of the busiest link, likewise at full rate
};

enum class RunStatus { kOk, kInfeasible, kFailed };

/// "ok", "infeasible", "failed", and back.
/// @throws std::invalid_argument for another word.
const char* to_string(RunStatus status);
RunStatus run_status_from(std::string_view word);

/// The one metric that belongs to a run, not to its result: it is printed, but in no digest.
inline constexpr std::string_view kWallTimeMetric = "wall_time_s";

/// The result of one experiment, as it is printed, stored and passed between processes.
struct RunRecord {
  // Defined once: they are long, and many files copy one.
  RunRecord();
  RunRecord(const RunRecord&);
  RunRecord(RunRecord&&) noexcept;
  RunRecord& operator=(const RunRecord&);
  RunRecord& operator=(RunRecord&&) noexcept;
  ~RunRecord();
  std::string identity;    ///< SHA-256 point identity, hex
  std::string experiment;  ///< kind: "training", "inference", ...
  std::string name;        ///< what the user calls it
  RunStatus status = RunStatus::kOk;
  std::string reason;  ///< why infeasible or failed: "needs 90.2 GB of 77.0 GB per rank"
  std::vector<Metric> metrics;
  std::vector<Label> labels;
  std::vector<MetricList> lists;
  std::vector<ClassBreakdown> classes;
  std::vector<ComponentUse> components;
  std::vector<LinkUse> link_classes;
  std::vector<LinkUse> links;  ///< links that carried something; where the experiment asks for them
  std::vector<ResultRows> rows;  ///< where the experiment asks for them; stored, not printed
  nlohmann::ordered_json provenance = nlohmann::ordered_json::object();
  std::shared_ptr<const Configuration> base;  ///< resolved; null: not known
  std::vector<Variation> varied;              ///< what the point has otherwise than its base

  const Metric* find(std::string_view metric) const;
  /// Every resolved value.
  std::vector<Parameter> parameters() const;
  /// Value at a path, as a number; none where there is no such parameter, or it is no number.
  std::optional<double> parameter(std::string_view path) const;
  /// Resolved, canonical.
  nlohmann::ordered_json configuration() const;
};

/// Numbers must be finite and names unique among metrics and labels.
/// @throws std::logic_error naming the first that is not: such a result is a bug of ours.
void require_valid(const RunRecord& record);

/// {"schema": "orrery.run/1", ...}. Labels are metrics with text; "breakdown" repeats the metrics
/// breakdown.*_s under their short names. Numbers are printed so that they read back exactly.
/// @throws std::logic_error as require_valid.
nlohmann::ordered_json to_json(const RunRecord& record);

/// What most of the time of a result rests on: "measurements" of its device, "carried over" from
/// another device or from other shapes, or published "priors". ", known error" follows where a
/// published result of such runs is missed.
std::string rests_on(const RunRecord& record);

}  // namespace orrery
