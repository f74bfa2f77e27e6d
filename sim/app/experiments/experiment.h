// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/output.h"
#include "sim/config/schema.h"
#include "sim/graph/costs.h"
#include "sim/machine/network_calibration.h"
#include "sim/machine/system_config.h"
#include "sim/results/identity.h"
#include "sim/results/run_record.h"
#include "workloads/inference/inference.h"
#include "workloads/llm/model_config.h"
#include "workloads/operators/cache_format.h"
#include "workloads/operators/operator.h"
#include "workloads/training/training.h"

namespace orrery {

enum class ExperimentKind : std::uint8_t { kOperator, kCollective, kTraining, kInference };

/// What of the links a result has: their classes, or each link that carried something as well.
enum class Recorded : std::uint8_t { kClasses, kLinks };

/// Sequences of a step; 0 means derived: global = micro * dp, or micro = global / dp.
struct BatchConfig {
  std::int64_t global = 0;
  std::int64_t micro = 0;
  std::int64_t sequence = 0;  ///< tokens of each sequence (training, prefill)
  static const config::Schema<BatchConfig>& schema();
};

/// What runs beside kernels and what it leaves to them.
struct ContentionConfig {
  double units = 1;       ///< operator: share of the SMs
  double memory = 1;      ///< operator: share of the memory bandwidth
  bool transfers = true;  ///< training, inference: transfers slow the kernels beside them
  static const config::Schema<ContentionConfig>& schema();
};

struct CollectiveConfig {
  TransferKind kind = TransferKind::kAllReduce;
  Bytes bytes;             ///< as nccl-tests counts them: see Transfer
  std::int64_t ranks = 0;  ///< the first `ranks` of the machine; 0: all
  std::string algorithm = "auto";
  std::string protocol = "auto";
  Precision precision = Precision::kBf16;  ///< of the elements; int8: sums of bytes
  /// all_to_all with parts of different sizes: from rank i to rank j at [i][j]; here or in a CSV
  /// file without a header, in bytes.
  std::vector<std::vector<Bytes>> matrix;
  FilePath matrix_file;
  /// send_receive: a rank (0 and 1 where neither is given), "host" or "storage"; "all" ranks at
  /// once with one of those.
  std::string from, to;
  // Dispatch and combine have tokens instead of bytes; see ExpertRouting.
  std::int64_t tokens = 0;  ///< of each rank
  std::int64_t hidden = 0;
  int experts = 0;
  int top_k = 0;
  int expert_groups = 0;
  int top_groups = 0;
  ExpertRouting::Router router = ExpertRouting::Router::kUniform;
  ExpertRouting::Mode mode = ExpertRouting::Mode::kNormal;
  double skew = 1;  ///< of an all_to_all, too
  static const config::Schema<CollectiveConfig>& schema();

  bool exchanges_tokens() const {
    return kind == TransferKind::kDispatch || kind == TransferKind::kCombine;
  }
  /// The transfer among these ranks.
  Transfer transfer(std::vector<int> group) const;

  bool byte_sums() const { return precision == Precision::kInt8; }
};

/// Links that degrade, fail or come back.
struct FaultConfig {
  std::string link;     ///< name, glob or class: see LinkStates
  Seconds at;           ///< from when on
  double capacity = 0;  ///< share of the healthy capacity that is then left; 0: down, 1: whole
  static const config::Schema<FaultConfig>& schema();
};

/// One experiment as the user writes it.
struct Experiment {
  ExperimentKind kind = ExperimentKind::kTraining;
  std::string name;
  SystemConfig system;
  int nodes = 1;  ///< copies of the system
  ModelConfig model;
  ParallelConfig parallel;
  std::string schedule = kAutoSchedule;
  BatchConfig batch;
  Phase phase = Phase::kDecode;
  std::int64_t kv_length = 0;
  int layers_only = 0;
  Precision precision = Precision::kBf16;
  CacheFormat kv_precision = CacheFormat::kBf16;
  CacheFormat activation_precision = CacheFormat::kBf16;
  Recompute recompute = Recompute::kNone;
  bool flash_attention = true;
  bool dropout = false;
  Fidelity fidelity = Fidelity::kAuto;
  std::string calibration = "auto";  ///< "auto", "none", a name of the library or a path
  std::vector<FilePath> measured;    ///< operator tables whose times override the model
  ContentionConfig contention;
  double memory_reserve = 0.1;  ///< share of the device memory that the job cannot use
  std::int64_t seed = 0;
  std::optional<config::OneOf<OperatorConfig>> op;
  std::optional<CollectiveConfig> collective;
  std::vector<FaultConfig> faults;  ///< those of one time apply in order
  Recorded record = Recorded::kClasses;
  /// Of the collectives of the system, already applied to it; none: not calibrated.
  std::shared_ptr<const NetworkCalibration> network;
  static const config::Schema<Experiment>& schema();

  int ranks() const { return parallel.ranks(); }
  /// Accelerators that the experiment uses (a rank is a die).
  double accelerators() const { return static_cast<double>(ranks()) / system.accelerator.dies; }
};

/// What a result rests on beside the configuration.
struct ExperimentFile {
  std::string role;    ///< "calibration", "network_calibration", "measured", "model", ...
  std::string path;    ///< empty: its values count (the device of a calibration), not its bytes
  std::string sha256;  ///< of the bytes, or of the values
};

/// A checked experiment with all that identifies it.
struct LoadedExperiment {
  Experiment experiment;
  config::Node node;                     ///< completed: every value with its origin
  nlohmann::ordered_json configuration;  ///< canonical: what the identity is made of
  std::vector<ExperimentFile> files;     ///< part of the identity too
  std::string identity;                  ///< SHA-256 point identity
  std::string warnings;                  ///< rendered, for stderr
  /// Why the values cannot stand together (tp 7 of 32 heads), rendered; then there is no identity.
  std::string contradiction;
};

/// Completes and checks an experiment. Values that are right one by one, but not together, are
/// `contradiction` of the result.
/// @throws config::ConfigError for other mistakes, with everything that is wrong
LoadedExperiment load_point(const config::Node& node, config::Diagnostics& diagnostics,
                            const config::Library& library);

/// Reads an experiment file and applies `--set` assignments.
/// @throws config::ConfigError with everything that is wrong.
LoadedExperiment load_experiment(const std::string& path, const std::vector<std::string>& overrides,
                                 const config::Library& library = config::default_library());

/// The same for a node that is not a file of its own (inline in a sweep or validation file).
LoadedExperiment load_experiment(config::Node node, const std::vector<std::string>& overrides,
                                 config::Diagnostics& diagnostics,
                                 const config::Library& library = config::default_library());

TrainingConfig training_config(const Experiment& experiment);
InferenceConfig inference_config(const Experiment& experiment);

}  // namespace orrery
