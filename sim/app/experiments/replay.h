// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/experiment.h"
#include "sim/app/experiments/graph_times.h"
#include "sim/app/experiments/link_keys.h"
#include "sim/app/experiments/rank_noise.h"
#include "sim/results/table.h"
#include "workloads/formats/graph_files.h"

namespace orrery {

/// Whether host operators of a graph take their time, or none.
enum class HostWork : std::uint8_t { kKeep, kDrop };

/// What floating-point numbers of a model are run in.
enum class GraphPrecision : std::uint8_t { kFile, kFp32, kTf32, kBf16, kFp16, kFp8 };

/// The operator graphs of a run as a user names them.
struct GraphConfig {
  std::string path;  ///< a file, a folder, or a prefix: see GraphFiles
  FilePath groups;   ///< JSON file of communicators
  bool repair = false;
  std::map<std::string, std::int64_t> dimensions;  ///< sizes of symbolic dimensions
  HostWork host = HostWork::kKeep;
  GraphPrecision precision = GraphPrecision::kFile;
  bool fuse = true;
  bool fuse_kernels = false;
  static const config::Schema<GraphConfig>& schema();

  GraphFiles files() const;
};

/// An operator graph of another program, replayed on a machine of ours.
struct ReplayExperiment final : MachineExperiment {
  ReplayExperiment() { kind = "replay"; }

  GraphConfig graph;
  Durations durations = Durations::kRecorded;
  std::map<std::string, double> scale;  ///< times of a class of nodes over what they would be
  std::string algorithm = "auto";       ///< algorithm of the collectives that it serves
  Recorded recorded = Recorded::kClasses;
  std::vector<FaultConfig> faults;  ///< links that fail; faults of one time apply in order
  NoiseConfig noise;                ///< what makes kernels differ: slow ranks, draws
  static const config::Schema<ReplayExperiment>& schema();

  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check_machine(const config::Node& node, config::Diagnostics& diagnostics) const override;
  std::vector<InputFile> input_files() const override;
  void strip_names(nlohmann::ordered_json& configuration) const override;
  void check_plan(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void run(const SimulateOptions& options, RunRecord& record) const override;
  bool is_quick() const override;
  TableView table() const override;

 private:
  TimeScales scales() const;
};

/// What the nodes of the rank that ends last take together, by class, overlapped or not, those that
/// take longest first; nothing for results of other kinds.
std::optional<Table> replayed_class_table(const RunRecord& record);

}  // namespace orrery

namespace orrery::config {

template <>
struct EnumNames<HostWork> {
  static constexpr std::pair<HostWork, const char*> values[] = {{HostWork::kKeep, "keep"},
                                                                {HostWork::kDrop, "drop"}};
};

template <>
struct EnumNames<GraphPrecision> {
  static constexpr std::pair<GraphPrecision, const char*> values[] = {
      {GraphPrecision::kFile, "file"}, {GraphPrecision::kFp32, "fp32"},
      {GraphPrecision::kTf32, "tf32"}, {GraphPrecision::kBf16, "bf16"},
      {GraphPrecision::kFp16, "fp16"}, {GraphPrecision::kFp8, "fp8"}};
};

}  // namespace orrery::config
