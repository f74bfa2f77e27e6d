// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/inference.h"

#include <algorithm>

#include "sim/app/experiments/core/intervals.h"
#include "sim/app/experiments/engines/engine_site.h"
#include "sim/app/experiments/keys/common_metrics.h"
#include "sim/app/experiments/steps/checkpoint.h"
#include "sim/app/experiments/steps/model_step.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "sim/app/pricing/kernel_slowdowns.h"
#include "workloads/base/require.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/inference/drafts.h"
#include "workloads/steps/inference/two_batches.h"

namespace orrery {

const config::Schema<InferenceExperiment>& InferenceExperiment::schema() {
  using E = InferenceExperiment;
  static const config::Schema<E> schema =
      model_schema<E>("inference", "one step of a fixed batch: prefill, decode or mixed")
          .optional("phase", &E::phase, "prefill, decode, or mixed: both in one step")
          .optional("kv_length", &E::kv_length, "tokens in the KV cache before the step",
                    config::between(0, 1e8))
          .optional("images", &E::images,
                    "images in each prompt of a prefill, for models with a vision tower: the tower "
                    "works on them before the prompt, and the tokens that stand for them are added "
                    "to batch.sequence, which counts text",
                    config::between(0, 1e5))
          .optional("image", &E::image, kImageHelp)
          .optional("mixed", &E::mixed,
                    "what a data-parallel rank does in a step of phase mixed, in the place of "
                    "batch and kv_length")
          .optional("kv_precision", &E::kv_precision, kKvPrecisionHelp)
          .optional("expert_routing", &E::expert_routing, kExpertRoutingHelp)
          .optional("lora", &E::lora, "adapters that devices hold beside the model")
          .optional("adapters", &E::adapters,
                    "different adapters among the tokens of a data-parallel rank, each of which "
                    "has one; 0: lora.max_loras",
                    config::between(0, 1e5))
          .optional("two_batch_overlap", &E::two_batch_overlap, kTwoBatchHelp)
          .optional("engine", &E::engine,
                    "the engine whose kernels run the step, by its keys of a served group ({kind: "
                    "vllm, version: 0.27}); without it norms quantise, and experts and all-reduces "
                    "up to 8 MiB are the measured kernels of TensorRT-LLM. It fills a batch up as "
                    "it would to run it; what it schedules and its host have no part in a step")
          .optional("speculative", &E::speculative,
                    "draft tokens: decodes verify them with the next one, then the passes that "
                    "make the next ones");
  return schema;
}

namespace {

const DeclaredMetric kExpertSkew{{"expert_skew", "1",
                                  "token copies that the experts of the heaviest rank get over the "
                                  "mean of all ranks, where expert_routing is given",
                                  "inference"}};
const DeclaredMetric kTokensPerSPerUser{{"tokens_per_s_per_user", "1/s",
                                         "output tokens of one sequence over time", "inference",
                                         Follows::kRate}};

const RegisterExperiment<InferenceExperiment> registered_inference(
    "inference", "one step of a fixed batch: prefill, decode or mixed");

/// With the weights and the cache of the draft model, on the last stage.
std::vector<MemoryUse> memory_with_drafts(const LlmConfig& llm, const InferenceConfig& config) {
  std::vector<MemoryUse> stages = inference_memory(llm, config);
  if (!config.drafts) return stages;
  const InferenceConfig step = draft_step(config, batch_of(config));
  const auto use = [&](const LlmConfig& held) { return inference_memory(held, step).front(); };
  const MemoryUse draft = use(*config.drafts->model);
  Bytes weights = draft.weights;
  if (config.drafts->of_target) {  // which has the embedding and the head
    LlmConfig twice = *config.drafts->model;
    twice.layers.push_back(twice.layers.back());
    weights = use(twice).weights - draft.weights;
  }
  stages.back().weights += weights;
  stages.back().kv_cache += draft.kv_cache;
  return stages;
}

}  // namespace

InferenceConfig InferenceExperiment::inference(const ParallelConfig& plan) const {
  InferenceConfig config;
  config.parallel = plan;
  config.phase = phase;
  config.batch = mixed;
  config.micro_batch = batch.micro;
  if (batch.global > 0) {
    const std::int64_t dp = plan.dp;
    const std::int64_t micro =
        batch.micro > 0 ? batch.micro : std::max<std::int64_t>(1, batch.global / dp);
    require(batch.global == micro * dp, "batch.global",
            std::to_string(batch.global) + " sequences are not batch.micro times the " +
                std::to_string(dp) + " data-parallel ranks",
            {std::to_string(micro * dp), {}});
    config.micro_batch = batch.global / dp;
  }
  config.sequence = phase == Phase::kPrefill ? batch.sequence : 1;
  config.kv_length = phase == Phase::kDecode ? kv_length : 0;
  config.mx_products = scales_blocks(system.accelerator);
  config.index_precision = index_precision(system.accelerator);
  config.lora = lora;
  if (lora) config.adapters = adapters > 0 ? adapters : lora->max_loras;
  config.precision = precision;
  if (element_bytes(precision) >= 2) config.widened_bits = widened_bits;
  config.kv_precision = kv_precision == CacheFormat::kFp8 ? Precision::kFp8 : Precision::kBf16;
  // Replicas fill the slots of the plan that was written, not of others that are tried beside it.
  if (expert_routing && plan.ep == parallel.ep)
    config.expert_routing = expert_routing->with_file_read();
  config.two_batch_overlap = two_batch_overlap;
  if (engine) use_kernels(*engine->object, config);
  if (images > 0) see(config);
  if (speculative) add_drafts(config);
  if (engine && plan.cp == 1)
    config.layer_tokens =
        engine->object->padded(step_tokens(config), config.phase == Phase::kDecode);
  return config;
}

void InferenceExperiment::see(InferenceConfig& config) const {
  config.images = images;
  config.image = size_of(image);
  if (images == 0 || phase != Phase::kPrefill) return;
  const LlmConfig llm = model.build();
  if (!llm.vision) return;  // require_supported() says so
  if (image || llm.vision->rule.same_for_all())
    config.sequence += images * llm.vision->patches(config.image).tokens;
}

void InferenceExperiment::add_drafts(InferenceConfig& config) const {
  const LlmConfig llm = model.build();
  if (config.phase != Phase::kPrefill) {
    config.batch = batch_of(config);
    config.batch.queries = 1 + speculative->num_speculative_tokens;
    config.phase = Phase::kMixed;
  }
  std::optional<LlmConfig> draft = speculative->draft(llm);
  if (!draft) return;
  config.drafts = {std::make_shared<const LlmConfig>(*std::move(draft)),
                   speculative->method == SpeculativeMethod::kMtp,
                   speculative->num_speculative_tokens};
}

double InferenceExperiment::tokens_given(const InferenceConfig& config) const {
  const auto all = static_cast<double>(step_tokens(config));
  if (!speculative) return all;
  const auto decoding = static_cast<double>(config.batch.decoding());
  const auto verified = static_cast<double>(config.batch.queries);
  return all + decoding * (speculative->speculation().mean_tokens() - verified);
}

std::vector<InputFile> InferenceExperiment::input_files() const {
  std::vector<InputFile> files = ModelExperiment::input_files();
  add_routing_file(expert_routing, files);
  add_draft_files(speculative, files);
  return files;
}

std::vector<MemoryUse> InferenceExperiment::memory(const LlmConfig& llm,
                                                   const ParallelConfig& plan) const {
  return memory_with_drafts(llm, inference(plan));
}

void InferenceExperiment::require_plan(const LlmConfig& llm) const {
  require_supported(llm, inference());
  const AcceleratorConfig& accelerator = system.accelerator;
  matrix_peak(accelerator, precision);
  const bool prefills =
      phase == Phase::kPrefill || (phase == Phase::kMixed && !mixed.chunks.empty());
  const bool fp8_prefill = prefills && kv_precision == CacheFormat::kFp8 &&
                           llm.attention.kind == AttentionKind::kGrouped;
  if (fp8_prefill && !find_precision(accelerator.compute.matrix, Precision::kFp8)) {
    throw config::KeyError("kv_precision",
                           "a prefill over an fp8 cache runs its attention in fp8, for which " +
                               accelerator.name + " has no matrix rate",
                           {"bf16", {}});
  }
}

ModelStep InferenceExperiment::step(const LlmConfig& llm) const {
  const InferenceConfig config = inference();
  // A decode step yields one token a sequence, a prefill works through the whole prompt.
  return {build_inference(llm, config),
          tokens_given(config) * static_cast<double>(config.parallel.dp), model_flops(llm, config)};
}

std::vector<std::string> InferenceExperiment::engine_kernels() const {
  return engine ? engine->object->kernel_calibrations : std::vector<std::string>();
}

bool InferenceExperiment::of_machines(const std::string& path) const {
  return path == "engine.kind" || path == "engine.version" ||
         path.starts_with("engine.kernel_calibrations") || ModelExperiment::of_machines(path);
}

bool InferenceExperiment::has_batch() const {
  return phase == Phase::kMixed || ModelExperiment::has_batch();
}

std::string InferenceExperiment::batch_text() const {
  if (phase == Phase::kMixed) return std::to_string(mixed.tokens()) + " tokens/rank";
  return std::to_string(batch.global > 0 ? batch.global / parallel.dp : batch.micro) + "/rank";
}

std::vector<std::string> InferenceExperiment::batch_paths() const {
  if (phase == Phase::kMixed) return {};
  return {"batch.global", "batch.micro"};
}

void InferenceExperiment::complete(config::Node& node, config::Diagnostics& diagnostics) {
  ModelExperiment::complete(node, diagnostics);
  take_expert_ranks(model, ExpertSharing::kStage, parallel, node);
  widened_bits =
      take_checkpoint_precisions(model, system.accelerator, precision, kv_precision, node);
  ask_precision(model, node, node, diagnostics);
  if (engine)
    engine_defaults =
        follow_release(*engine, engine_site(system.accelerator, parallel, model, speculative),
                       *node.find("engine"), diagnostics);
}

void InferenceExperiment::check(const config::Node& node, config::Diagnostics& diagnostics) const {
  ModelExperiment::check(node, diagnostics);
  refuse_optimizer_shards(node, "", diagnostics);
  if (phase == Phase::kPrefill && batch.sequence == 0)
    complain(diagnostics, node, {"batch"}, "batch.sequence must be given (tokens of a sequence)");
  if (images > 0 && phase != Phase::kPrefill)
    complain(diagnostics, node, {"images"},
             "images are seen with a prompt: they need phase prefill", {"0", {"phase: prefill"}});
  if (phase == Phase::kDecode && kv_length == 0)
    complain(diagnostics, node, {"kv_length", "phase", "experiment"},
             "a decode step needs kv_length");
  if (phase == Phase::kMixed && mixed.empty())
    complain(diagnostics, node, {"mixed", "phase"},
             "a mixed step needs mixed.chunks or mixed.decodes");
  if (phase == Phase::kMixed && (ModelExperiment::has_batch() || batch.sequence > 0))
    complain(diagnostics, node, {"batch"}, "a mixed step has its sequences under 'mixed'");
  if (phase == Phase::kMixed && kv_length > 0)
    complain(diagnostics, node, {"kv_length"}, "a mixed step has its contexts under 'mixed'");
  if (adapters > 0 && !lora)
    complain(diagnostics, node, {"adapters"}, "a step with adapters needs slots for them",
             {{}, {"lora: {max_loras: " + std::to_string(adapters) + "}"}});
  if (phase != Phase::kMixed && !mixed.empty())
    complain(diagnostics, node, {"mixed"}, "only a step of phase mixed has chunks and decodes",
             {{}, {"phase: mixed"}});
}

std::int64_t InferenceExperiment::kept_off(const Kernel& kernel) const {
  if (!two_batch_overlap || phase != Phase::kPrefill || !engine ||
      engine->object->kernels.experts != ExpertKernels::kDeepGemm || !system.expert_exchange)
    return 0;
  return leaves_units(kernel) ? system.expert_exchange->units.value : 0;
}

std::optional<EngineAllReduce> InferenceExperiment::own_all_reduces() const {
  if (parallel.tp == 1) return {};
  if (engine) return all_reduce_rules(*engine->object, inference());
  EngineAllReduce plain;  // TensorRT-LLM's kernels, like those of the step
  plain.fused = Bytes(0);
  return plain;
}

void InferenceExperiment::run(const SimulateOptions& options, RunRecord& record) const {
  const LlmConfig llm = model.build();
  const InferenceConfig config = inference();
  require_supported(llm, config);
  const bool fits = check_memory(*this, memory_with_drafts(llm, config), record);
  if (!fits && !options.beyond_memory) return;

  const ModelStep whole = step(llm);
  const auto kernels = machine().kernels({fidelity, {}, measured}, options.tiles);
  const StepOutcome outcome = replay_step(*this, *kernels, whole.program, options);
  report_step(*this, whole, outcome, record);
  if (!engine_defaults.empty()) add_label(record, kEngineDefaults, engine_defaults);
  add_metric(
      record, kTokensPerSPerUser,
      static_cast<double>(config.sequence) * mean_answer() / to_seconds(outcome.replay.end).base());
  if (config.expert_routing)
    add_metric(record, kExpertSkew,
               heaviest_rank(llm.moe, parallel.ep, *config.expert_routing).skew);
  report_trust({machine(), *kernels, whole.program, outcome, seed}, record,
               some_slower(beyond_graphs(llm.has_moe(), seed), known_slowness()));
}

}  // namespace orrery
