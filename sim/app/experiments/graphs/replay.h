// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/graphs/graph_times.h"
#include "sim/app/experiments/keys/link_keys.h"
#include "sim/app/experiments/keys/rank_noise.h"
#include "sim/app/experiments/steps/step_experiment.h"
#include "sim/config/declared.h"
#include "sim/config/file_path.h"
#include "sim/results/table.h"
#include "workloads/formats/graph_files.h"

namespace orrery {

struct ReplayedGraphs;  // replay_graphs.h

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
struct ReplayExperiment final : MachineExperiment, LinkKeys {
  ReplayExperiment() { kind = "replay"; }

  GraphConfig graph;
  Durations durations = Durations::kRecorded;
  std::map<std::string, double> scale;  ///< times of a class of nodes over what they would be
  std::string algorithm = "auto";       ///< algorithm of the collectives that it serves
  NoiseConfig noise;                    ///< what makes kernels differ: slow ranks, draws
  StepContention contention;            ///< whether transfers slow kernels that the model prices
  Unused unused = Unused::kIdle;        ///< accelerators of `nodes` systems that have no graph
  std::optional<CarbonIntensity> carbon_intensity;  ///< none: no CO2 is reported
  static const config::Schema<ReplayExperiment>& schema();

  void complete(config::Node& node, config::Diagnostics& diagnostics) override;
  void check_names(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void check_machine(const config::Node& node, config::Diagnostics& diagnostics) const override;
  std::vector<InputFile> input_files() const override;
  void strip_names(nlohmann::ordered_json& configuration) const override;
  void check_plan(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void run(const SimulateOptions& options, RunRecord& record) const override;
  bool is_quick() const override;
  TableView table() const override;

  TimeScales scales() const;

 private:
  void report_energy(const ReplayedGraphs& all, RunRecord& record) const;
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
