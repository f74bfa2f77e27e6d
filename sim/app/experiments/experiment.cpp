// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/experiment.h"

#include <algorithm>

#include "models/collectives/algorithm.h"
#include "sim/app/experiments/checkpoint.h"
#include "sim/app/experiments/enum_names.h"
#include "sim/app/experiments/experiment_checks.h"
#include "sim/app/experiments/experiment_identity.h"
#include "sim/app/experiments/experiment_network.h"
#include "sim/app/experiments/part_keys.h"
#include "sim/app/experiments/token_keys.h"
#include "sim/config/leaf.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/config/override.h"
#include "sim/config/relations.h"
#include "sim/units/spelling.h"
#include "workloads/require.h"

namespace orrery {

using config::at_least;
using config::between;
using config::Schema;
using namespace literals;

const Schema<BatchConfig>& BatchConfig::schema() {
  static const auto schema =
      Schema<BatchConfig>("batch", "sequences of one step")
          .optional("global", &BatchConfig::global, "sequences in a step; 0: micro * dp",
                    between(0, 1e9))
          .optional("micro", &BatchConfig::micro,
                    "sequences of one pass on a data-parallel rank; 0: global / dp",
                    between(0, 1e9))
          .optional("sequence", &BatchConfig::sequence, "tokens of a sequence (training, prefill)",
                    between(0, 1e8));
  return schema;
}

const Schema<ContentionConfig>& ContentionConfig::schema() {
  static const auto schema =
      Schema<ContentionConfig>("contention", "what runs beside kernels and what it leaves to them")
          .optional("units", &ContentionConfig::units, "operator: share of the SMs",
                    between(0.001, 1))
          .optional("memory", &ContentionConfig::memory, "operator: share of the memory bandwidth",
                    between(0.001, 1))
          .optional("transfers", &ContentionConfig::transfers,
                    "training, inference: whether transfers slow the kernels beside them");
  return schema;
}

const Schema<FaultConfig>& FaultConfig::schema() {
  static const auto schema =
      Schema<FaultConfig>("fault", "links that degrade, fail or come back")
          .required("link", &FaultConfig::link,
                    "a link as `orrery run` and `describe topology --dot` name it, a class such as "
                    "accelerator->leaf, or a glob: \"*->system0/nvswitch3\"")
          .optional("at", &FaultConfig::at, "from when on [ms]", between(Seconds(0), Seconds(9e6)))
          .optional("capacity", &FaultConfig::capacity,
                    "share of the healthy capacity that is then left; 0: the link is down",
                    between(0, 1));
  return schema;
}

const Schema<CollectiveConfig>& CollectiveConfig::schema() {
  static const auto schema = with_part_keys(with_token_keys(
      Schema<CollectiveConfig>("collective", "one collective operation")
          .required("kind", &CollectiveConfig::kind, "which collective")
          .optional("bytes", &CollectiveConfig::bytes,
                    "size as nccl-tests prints it; a barrier has none", between(1_B, 1000_TB))
          .optional("ranks", &CollectiveConfig::ranks, "the first ranks of the machine; 0: all",
                    between(0, 1e7))
          .optional("algorithm", &CollectiveConfig::algorithm,
                    "a name of `orrery describe collectives`, the path of a user-written one, or "
                    "auto: what the library takes where the system has protocols, else the fastest")
          .optional("protocol", &CollectiveConfig::protocol,
                    "ll, ll128, simple, or auto: what the library takes")
          .optional("precision", &CollectiveConfig::precision,
                    "of the elements; bytes (int8) are not reduced in switches; dispatch, combine: "
                    "of the "
                    "tokens on the wire, to which scales of fp8, nvfp4 and int8 come")));
  return schema;
}

namespace {

Schema<Experiment> experiment_schema() {
  Schema<Experiment> schema("experiment", "one simulation");
  schema.required("experiment", &Experiment::kind, "what is simulated")
      .optional("name", &Experiment::name, "what you call it; not part of the point's identity")
      .reference("system", &Experiment::system, "systems", "the machine")
      .optional("nodes", &Experiment::nodes,
                "copies of the system, joined by its scale-out network", between(1, 100000))
      .optional_reference("model", &Experiment::model, "models", "the language model")
      .optional("parallel", &Experiment::parallel, "how the model is spread over ranks")
      .optional("schedule", &Experiment::schedule,
                "training: pipeline schedule, a name of `orrery describe schedules`, or auto: "
                "interleaved "
                "with vpp > 1, else 1f1b")
      .optional("batch", &Experiment::batch, "sequences of one step")
      .optional("phase", &Experiment::phase, "inference: prefill or decode")
      .optional("kv_length", &Experiment::kv_length, "tokens in the KV cache before the step",
                between(0, 1e8))
      .optional("layers_only", &Experiment::layers_only,
                "training: n layers without embedding, head and optimizer; 0: the whole model",
                between(0, 10000))
      .optional("precision", &Experiment::precision,
                "of weights and matrix operands; where inference is given none, that of the "
                "checkpoint (quantization_config of the model's file)")
      .optional(
          "kv_precision", &Experiment::kv_precision,
          "inference: of the KV cache; where none is given, that of the checkpoint, which may "
          "bring scales for fp8")
      .optional(
          "activation_precision", &Experiment::activation_precision,
          "training: of the inputs that matrix products keep for the backward pass; fp8 where "
          "they run in 8 bits or less, as Transformer Engine keeps them")
      .optional("recompute", &Experiment::recompute,
                "training: what the backward pass computes again")
      .optional("flash_attention", &Experiment::flash_attention,
                "attention without scores in memory")
      .optional("dropout", &Experiment::dropout, "training: dropout kernels and masks")
      .optional(
          "fidelity", &Experiment::fidelity,
          "of the kernel model: closed form, tile (thread blocks as discrete events: products, "
          "experts, attention and latent attention; others in closed form), or auto, whichever "
          "predicts a kernel better")
      .optional("calibration", &Experiment::calibration,
                "parameters of the kernel model: auto (what the accelerator names), none (priors), "
                "a calibration of the library, or a path")
      .optional(
          "measured", &Experiment::measured,
          "operator tables (CSV) of this accelerator: kernels that they have take the measured "
          "time")
      .optional("contention", &Experiment::contention,
                "what kernels beside an operator leave to it; whether transfers slow kernels")
      .optional("memory_reserve", &Experiment::memory_reserve,
                "share of device memory left to contexts, communication buffers and fragmentation; "
                "0.1 is what vLLM leaves by default (gpu_memory_utilization 0.9)",
                between(0, 0.9))
      .optional("seed", &Experiment::seed, "of the draws behind intervals", at_least(0))
      .optional("operator", &Experiment::op,
                "experiment operator: one of `orrery describe operators`")
      .optional("collective", &Experiment::collective, "experiment collective: what is sent")
      .optional("record", &Experiment::record,
                "what the result says of links: classes, or links (each that carried something)")
      .optional("faults", &Experiment::faults,
                "links that degrade or fail; what crosses a dead one takes another way, or the run "
                "ends where there is none");
  return schema;
}

/// A user-written algorithm is named relative to the file that names it.
void locate_algorithm(Experiment& e, const config::Node& node) {
  if (!e.collective || !config::Library::is_path(e.collective->algorithm)) return;
  const config::Origin& origin = node.at_path("collective.algorithm")->origin();
  if (origin.kind == config::Origin::Kind::kFile)
    e.collective->algorithm = config::relative_to(e.collective->algorithm, *origin.file);
}

}  // namespace

const Schema<Experiment>& Experiment::schema() {
  static const Schema<Experiment> schema = experiment_schema();
  return schema;
}

LoadedExperiment load_point(const config::Node& node, config::Diagnostics& diagnostics,
                            const config::Library& library) {
  const config::Record& record = Experiment::schema().record();
  LoadedExperiment loaded;
  loaded.node = config::complete(node, record, diagnostics, library);
  const int broken =
      config::fill_and_count_broken_relations(&loaded.experiment, loaded.node, record, diagnostics);
  if (diagnostics.error_count() > broken) diagnostics.throw_if_errors();
  if (broken == 0) {
    read_checkpoint(loaded, diagnostics);
    locate_algorithm(loaded.experiment, loaded.node);
    check_experiment(loaded.experiment, loaded.node, diagnostics);
  }
  loaded.configuration = config::canonical(loaded.node, record);
  if (diagnostics.has_errors()) {
    loaded.contradiction = diagnostics.render();
    return loaded;
  }
  const std::vector<std::string>& followed = loaded.experiment.system.accelerator.followed;
  if (!followed.empty()) {
    diagnostics.warning(loaded.node.where(), 1,
                        "figures of the accelerator follow those that were changed", followed);
  }
  loaded.files = read_files(loaded.experiment);
  loaded.identity = identity_of(loaded.configuration, loaded.files);
  loaded.warnings = diagnostics.render_warnings();
  return loaded;
}

LoadedExperiment load_experiment(config::Node node, const std::vector<std::string>& overrides,
                                 config::Diagnostics& diagnostics, const config::Library& library) {
  for (const std::string& assignment : overrides) {
    config::apply_override(node, Experiment::schema().record(), assignment, diagnostics, library);
  }
  diagnostics.throw_if_errors();
  LoadedExperiment loaded = load_point(node, diagnostics, library);
  diagnostics.throw_if_errors();
  return loaded;
}

LoadedExperiment load_experiment(const std::string& path, const std::vector<std::string>& overrides,
                                 const config::Library& library) {
  config::Diagnostics diagnostics;
  config::Node node = config::load_file(path, diagnostics, library);
  diagnostics.throw_if_errors();
  return load_experiment(std::move(node), overrides, diagnostics, library);
}

TrainingConfig training_config(const Experiment& e) {
  TrainingConfig training;
  training.parallel = e.parallel;
  training.micro_batch = e.batch.micro > 0 ? e.batch.micro : 1;
  training.global_batch =
      e.batch.global > 0 ? e.batch.global : training.micro_batch * e.parallel.dp;
  training.sequence = e.batch.sequence;
  training.precision = e.precision;
  training.narrow_inputs = e.activation_precision == CacheFormat::kFp8;
  training.recompute = e.recompute;
  training.schedule = e.schedule;
  training.layers_only = e.layers_only;
  training.flash_attention = e.flash_attention;
  training.dropout = e.dropout;
  return training;
}

InferenceConfig inference_config(const Experiment& e) {
  InferenceConfig inference;
  inference.parallel = e.parallel;
  inference.phase = e.phase;
  inference.micro_batch = e.batch.micro;
  if (e.batch.global > 0) {
    const std::int64_t dp = e.parallel.dp;
    const std::int64_t micro =
        e.batch.micro > 0 ? e.batch.micro : std::max<std::int64_t>(1, e.batch.global / dp);
    require(e.batch.global == micro * dp, "batch.global",
            std::to_string(e.batch.global) + " sequences are not batch.micro times the " +
                std::to_string(dp) + " data-parallel ranks",
            {std::to_string(micro * dp), {}});
    inference.micro_batch = e.batch.global / e.parallel.dp;
  }
  inference.sequence = e.phase == Phase::kPrefill ? e.batch.sequence : 1;
  inference.kv_length = e.phase == Phase::kDecode ? e.kv_length : 0;
  inference.precision = e.precision;
  inference.kv_precision = e.kv_precision == CacheFormat::kFp8 ? Precision::kFp8 : Precision::kBf16;
  return inference;
}

}  // namespace orrery
