// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/experiments/experiment.h"
#include "sim/app/experiments/graph_times.h"
#include "sim/app/experiments/link_keys.h"
#include "workloads/formats/graph_files.h"

namespace orrery {

/// Whether host operators of a graph take their time, or none.
enum class HostWork : std::uint8_t { kKeep, kDrop };

/// The operator graphs of a run as a user names them.
struct GraphConfig {
  std::string path;  ///< a file, a folder, or a prefix: see GraphFiles
  FilePath groups;   ///< JSON file of communicators
  bool repair = false;
  std::map<std::string, std::int64_t> dimensions;  ///< sizes of symbolic dimensions
  HostWork host = HostWork::kKeep;
  static const config::Schema<GraphConfig>& schema();

  GraphFiles files() const { return {path, groups.path, repair, dimensions}; }
};

/// An operator graph of another program, replayed on a machine of ours.
struct ReplayExperiment final : MachineExperiment {
  ReplayExperiment() { kind = "replay"; }

  GraphConfig graph;
  Durations durations = Durations::kRecorded;
  std::map<std::string, double> scale;  ///< times of a class of nodes over what they would be
  Recorded recorded = Recorded::kClasses;
  static const config::Schema<ReplayExperiment>& schema();

  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  std::vector<InputFile> input_files() const override;
  void strip_names(nlohmann::ordered_json& configuration) const override;
  void check_plan(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void run(const SimulateOptions& options, RunRecord& record) const override;
  bool is_quick() const override;
  TableView table() const override;

 private:
  TimeScales scales() const;
};

}  // namespace orrery

namespace orrery::config {

template <>
struct EnumNames<HostWork> {
  static constexpr std::pair<HostWork, const char*> values[] = {{HostWork::kKeep, "keep"},
                                                                {HostWork::kDrop, "drop"}};
};

}  // namespace orrery::config
