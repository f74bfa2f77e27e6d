// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/training/training.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/app/experiments/core/intervals.h"
#include "sim/app/experiments/files/known_names.h"
#include "sim/app/experiments/keys/common_metrics.h"
#include "sim/app/experiments/steps/checkpoint.h"
#include "sim/app/experiments/steps/model_step.h"
#include "sim/app/experiments/training/fitting_changes.h"
#include "workloads/software/narrow_casts.h"
#include "workloads/steps/figures/module_memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/training/optimizer_step.h"

namespace orrery {

using config::between;

const config::Schema<TrainingExperiment>& TrainingExperiment::schema() {
  using E = TrainingExperiment;
  static const config::Schema<E> schema =
      model_schema<E>("training", "one training step of a language model")
          .optional("schedule", &E::schedule,
                    "order in which the stages of a pipeline work: a name, or passes")
          .optional(
              "mtp", &E::mtp,
              "modules of multi-token prediction that train with the model, each a projection, a "
              "layer like the last, and the loss once more (DeepSeek-V3); 0: none",
              between(0, 64))
          .optional("layers_only", &E::layers_only,
                    "n layers without embedding, head and optimizer; 0: the whole model",
                    between(0, 10000))
          .optional(
              "activation_precision", &E::activation_precision,
              "number format of the inputs that matrix products of 8 bits and less keep for the "
              "backward pass; as the software says (keeps_narrow_inputs) where nobody does")
          .optional("recompute", &E::recompute, "what the backward pass computes again")
          .optional("activation_offload", &E::activation_offload,
                    "first layers of each chunk of a stage whose activations lie in the memory of "
                    "the host between their passes (Megatron-LM: cpu_offloading_num_layers)",
                    between(0, 10000))
          .optional("optimizer", &E::optimizer,
                    "what updates weights: Adam, Muon (matrices; embedding, head, norms and biases "
                    "by Adam), or SGD with momentum")
          .optional("muon", &E::muon, "how Muon makes the momentum of each matrix orthogonal")
          .optional("optimizer_states", &E::optimizer_states,
                    "number formats of gradients, moments and weights that the optimizer keeps")
          .optional("optimizer_offload", &E::optimizer_offload,
                    "share of Adam's states that lie in the memory of the host, which updates them")
          .optional("gradient_clipping", &E::gradient_clipping,
                    "whether gradients are scaled by their norm over all ranks, for which every "
                    "stage waits (Megatron-LM: clip_grad above 0)")
          .optional("optimizer_in_backward", &E::optimizer_in_backward,
                    "update the weights of each layer behind its backward pass and free its "
                    "gradients (torchtune: optimizer_in_bwd); needs one micro-batch, "
                    "gradient_clipping: false and no pipeline stages; default: false")
          .optional("sparsity", &E::sparsity,
                    "2:4 structured sparsity of the dense matrices of layers, with masks that hold "
                    "in both directions: products of forward passes and data gradients run at the "
                    "sparse rate of the device, weights are pruned in every step")
          .optional("lora", &E::lora, "adapters that are trained while the model is frozen")
          .optional("packed", &E::packed, "samples that are packed into each sequence")
          .optional("flash_attention", &E::flash_attention, "attention without scores in memory")
          .optional("dropout", &E::dropout, "dropout kernels and masks")
          .optional("expert_routing", &E::expert_routing,
                    "how often tokens pick each expert; without it every rank gets the mean number "
                    "of tokens, as forced balance gives")
          .optional("expert_capacity", &E::expert_capacity,
                    "rows of each expert over the mean: fuller ones drop tokens, others are filled "
                    "up; 0: no token is dropped",
                    between(0, 1000))
          .optional_reference("software", &E::software, "software",
                              "what runs the step: a name of `orrery describe software`, a path, "
                              "or its switches; Megatron-Core where nobody says")
          .alias("optimizer_in_bwd", "optimizer_in_backward")
          .alias("muon_num_ns_steps", "muon.num_ns_steps")
          .alias("muon_tp_mode", "muon.tp_mode")
          .alias("optimizer_offload_fraction", "optimizer_offload.fraction")
          .alias("overlap_cpu_optimizer_d2h_h2d", "optimizer_offload.overlap")
          .alias("cpu_offloading_num_layers", "activation_offload");
  return schema;
}

namespace {

const DeclaredMetric kForwardTime{{"forward_time_s", "s", "forward part of the step", "training"}};
const DeclaredMetric kBackwardTime{
    {"backward_time_s", "s", "backward part of the step", "training"}};
const DeclaredMetric kFlopsPerSPerAccelerator{{"flops_per_s_per_accelerator", "FLOP/s",
                                               "model FLOPs over time and packages", "training",
                                               Follows::kRate}};

const DeclaredMetric kReservedMemory{
    {"reserved_memory_bytes", "B",
     "device memory that PyTorch's allocator has taken on the fullest rank (max_memory_reserved): "
     "tensors in its blocks and the gaps between them; at most the device's, as it gives back what "
     "is free before it fails",
     "training"}};

/// CUDA context of a process that uses PyTorch (huggingface/transformers
/// docs/source/en/model_memory_anatomy.md: one element on the device takes 1,343 MB of nvidia-smi).
constexpr double kContextBytes = 1343.0 * 1024 * 1024;

const DeclaredMetric kUsedMemory{
    {"used_memory_bytes", "B",
     "NVIDIA devices: memory that nvidia-smi shows for a process on the fullest rank, reserved "
     "memory and the CUDA context (1,343 MiB)",
     "training"}};

/// Time that the rank which ends last spends on the given blocks, waits for bytes included, bubbles
/// not.
Seconds time_in(const ReplayResult& replay, const std::vector<BlockId>& blocks) {
  const RoleResult& role = replay.roles[static_cast<std::size_t>(replay.last_role)];
  Picoseconds total = 0;
  for (const BlockId block : blocks) total += role.block_time.at(block);
  return to_seconds(total);
}

/// Time in which no rank has work, at the end of the step.
void add_overhead(ReplayResult& replay, Seconds overhead) {
  const Picoseconds longer = to_picoseconds(overhead);
  replay.end += longer;
  for (RoleResult& role : replay.roles) {
    role.end += longer;
    role.breakdown.host += longer;
  }
}

/// What ranks of each stage hold all the time, for timelines.
void hold_states(const std::vector<MemoryUse>& stages, Program& program) {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    program.roles[i].held = {{"weights", stages[i].weights},
                             {"gradients", stages[i].gradients},
                             {"optimizer", stages[i].optimizer}};
  }
}

/// Adds what calls by the host take to all-reduces whose groups stay inside systems of `ranks`.
void call_from_host(const TrainingSoftware& software, int ranks, const Program& program,
                    PricedProgram& priced) {
  for (std::size_t i = 0; i < program.transfers.size(); ++i) {
    const Transfer& transfer = program.transfers[i];
    if (transfer.kind != TransferKind::kAllReduce || !inside_a_system(transfer, ranks)) continue;
    const Seconds delay = software.call_delay(transfer.bytes);
    priced.transfers[i].isolated_time += delay;
    priced.transfers[i].cost.latency += to_picoseconds(delay);
    priced.costs.transfers[i].latency += to_picoseconds(delay);
  }
}

ModelStep sized(const LlmConfig& llm, const TrainingConfig& config, Program program) {
  const std::int64_t encoded = llm.has_encoder() ? rank_work(config).batch.encoder : 0;
  return {std::move(program),
          static_cast<double>(config.global_batch * (config.sequence + encoded)),
          model_flops(llm, config)};
}

const RegisterExperiment<TrainingExperiment> registered_training(
    "training", "training steps, whole or of some layers");

}  // namespace

TrainingConfig TrainingExperiment::training(const ParallelConfig& plan) const {
  TrainingConfig config;
  config.parallel = plan;
  config.micro_batch = batch.micro > 0 ? batch.micro : 1;
  config.global_batch = batch.global > 0 ? batch.global : config.micro_batch * plan.dp;
  config.sequence = batch.sequence;
  config.encoder_sequence = batch.encoder_sequence;
  config.precision = precision;
  config.narrow_inputs = activation_precision
                             ? *activation_precision == CacheFormat::kFp8
                             : software.keeps_narrow_inputs.value && element_bytes(precision) < 2;
  // Transformer Engine 0004dbd pytorch/module/base.py: _2X_ACC_DGRAD, _2X_ACC_WGRAD True.
  config.fp8_gradient_rate = system.accelerator.compute.full_accumulation.value;
  config.recompute = recompute;
  config.activation_offload = activation_offload;
  config.optimizer = optimizer;
  config.muon = muon;
  config.optimizer_states = optimizer_states;
  config.optimizer_offload = optimizer_offload;
  config.gradient_clipping = gradient_clipping;
  config.optimizer_in_backward = optimizer_in_backward;
  config.sparse_weights = sparsity == Sparsity::kTwoOfFour;
  config.lora = lora;
  config.packed = packed;
  config.schedule = schedule.name;
  config.written = schedule.written();
  config.mtp = mtp;
  config.layers_only = layers_only;
  config.flash_attention = flash_attention;
  config.dropout = dropout;
  if (expert_routing && plan.ep == parallel.ep)
    config.expert_routing = expert_routing->with_file_read();
  config.expert_capacity = expert_capacity;
  TrainingSoftware used = software;
  if (optimizer_states.gradients == GradientStates::kFp32)
    used.main_gradients.value = GradientFormat::kFp32;
  if (optimizer_states.gradients == GradientStates::kBf16)
    used.main_gradients.value = GradientFormat::kWeights;
  config.software = std::make_shared<const TrainingSoftware>(std::move(used));
  if (optimizer_states.placement == MomentPlacement::kPaged && is_bound())
    config.moments_on_host = moments_without_room(config);
  return config;
}

std::vector<Bytes> TrainingExperiment::moments_without_room(const TrainingConfig& config) const {
  const LlmConfig llm = model.build();
  std::vector<Bytes> out;
  for (const MemoryUse& use : training_memory(llm, config)) {
    const Bytes moments = optimizer_moments(llm, config, static_cast<int>(out.size()));
    out.push_back(std::clamp(use.total() - usable_memory(), Bytes(), moments));
  }
  return out;
}

std::vector<InputFile> TrainingExperiment::input_files() const {
  std::vector<InputFile> files = ModelExperiment::input_files();
  add_routing_file(expert_routing, files);
  if (!schedule.file.empty()) files.push_back(file_read_now("schedule", schedule.file.path));
  return files;
}

std::vector<MemoryUse> TrainingExperiment::memory(const LlmConfig& llm,
                                                  const ParallelConfig& plan) const {
  return training_memory(llm, training(plan));
}

std::string TrainingExperiment::fitting_text() const {
  const bool host = system.accelerator.host_link.present();
  return orrery::fitting_text(fitting_changes(model.build(), training(), {usable_memory(), host}));
}

void TrainingExperiment::bind_machines() {
  const bool paged = optimizer_states.placement == MomentPlacement::kPaged;
  if (activation_offload > 0 || optimizer_offload.fraction > 0 || paged) system.host.links = true;
  ModelExperiment::bind_machines();
}

bool TrainingExperiment::of_machines(const std::string& path) const {
  return path == "activation_offload" || path.starts_with("optimizer_offload") ||
         path == "optimizer_states.placement" || ModelExperiment::of_machines(path);
}

void TrainingExperiment::require_plan(const LlmConfig& llm) const {
  require_supported(llm, training());
  matrix_peak(system.accelerator, precision);
  if (sparsity == Sparsity::kTwoOfFour && system.accelerator.compute.structured_sparsity.value <= 1)
    throw config::KeyError(
        "sparsity", system.accelerator.name + " has no faster products of 2:4 sparse weights");
}

ModelStep TrainingExperiment::step(const LlmConfig& llm) const {
  const TrainingConfig config = training();
  return sized(llm, config, build_training(llm, config).program);
}

void TrainingExperiment::complete(config::Node& node, config::Diagnostics& diagnostics) {
  ModelExperiment::complete(node, diagnostics);
  take_expert_ranks(model, ExpertSharing::kTensor, parallel, node);
}

void TrainingExperiment::check_names(const config::Node& node,
                                     config::Diagnostics& diagnostics) const {
  ModelExperiment::check_names(node, diagnostics);
  if (schedule.file.path.empty() && schedule.passes.empty())
    check_name({"schedule", "schedule"}, resolved_schedule(schedule.name, parallel.vpp),
               names_of<ScheduleRegistry>(), node, diagnostics);
}

void TrainingExperiment::check(const config::Node& node, config::Diagnostics& diagnostics) const {
  ModelExperiment::check(node, diagnostics);
  if (batch.sequence == 0)
    complain(diagnostics, node, {"batch"}, "batch.sequence must be given (tokens of a sequence)");
}

void TrainingExperiment::check_plan(const config::Node& node,
                                    config::Diagnostics& diagnostics) const {
  ModelExperiment::check_plan(node, diagnostics);
  const LlmConfig llm = model.build();
  if (llm.vision)
    diagnostics.warning(node.at_path("model")->where(), 1,
                        llm.name + ": the language model trains alone, without its vision tower");
}

void TrainingExperiment::strip_names(nlohmann::ordered_json& configuration) const {
  ModelExperiment::strip_names(configuration);
  erase_keys(configuration["software"], {"software", "name"});
  erase_keys(configuration["schedule"], {"file"});
}

namespace {

/// Time of the kernels that make operands of products in 8 or 4 bits, which a step in bf16 has not.
void explain_casts(nlohmann::ordered_json& explanation) {
  double casts = 0;
  for (const nlohmann::ordered_json& row : explanation.value("kernels", nlohmann::ordered_json()))
    if (is_narrow_cast(row.at("name").get<std::string>())) casts += row.at("total_s").get<double>();
  if (casts > 0) explanation["narrow_casts"] = {{"time_s", casts}};
}

}  // namespace

void TrainingExperiment::explain(const KnownReplay& replay,
                                 nlohmann::ordered_json& explanation) const {
  ModelExperiment::explain(replay, explanation);
  explain_casts(explanation);
  const LlmConfig llm = model.build();
  const std::vector<MemoryUse> stages = memory(llm, parallel);
  const MemoryUse& worst = worst_stage(stages);
  const auto stage = static_cast<int>(&worst - stages.data());
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ModuleMemory& row : module_memory(llm, training(), stage, worst))
    rows.push_back({{"module", row.module},
                    {"parameters", row.parameters},
                    {"weights_bytes", row.weights.base()},
                    {"gradients_bytes", row.gradients.base()},
                    {"optimizer_bytes", row.optimizer.base()},
                    {"activations_bytes", row.activations.base()}});
  explanation["memory_by_module"] = {{"stage", stage}, {"modules", rows}};
}

void TrainingExperiment::run(const SimulateOptions& options, RunRecord& record) const {
  const LlmConfig llm = model.build();
  const TrainingConfig config = training();
  require_supported(llm, config);
  const std::vector<MemoryUse> memory = training_memory(llm, config);
  const bool fits = check_memory(*this, memory, record);
  const auto fullest = static_cast<int>(&worst_stage(memory) - memory.data());
  const Bytes reserved =
      std::max(memory[static_cast<std::size_t>(fullest)].total(),
               std::min(training_reserved(llm, config, fullest), machine().usable_memory(0)));
  add_metric(record, kReservedMemory, reserved.base());
  if (system.accelerator.name.starts_with("NVIDIA "))
    add_metric(record, kUsedMemory, reserved.base() + kContextBytes);
  if (!fits && !options.beyond_memory) return;

  const bool traced = !options.trace.empty();
  // Files of other programs tell which results a backward pass needs.
  const bool tensors = traced || options.stand_in != nullptr;
  TrainingProgram built = build_training(llm, config, tensors);
  if (traced) hold_states(memory, built.program);
  const ModelStep whole = sized(llm, config, std::move(built.program));
  const auto kernels = machine().kernels({fidelity, {}, measured}, options.tiles);
  const Repricing repricing = [&](PricedProgram& priced) {
    call_from_host(software, system.ranks(), whole.program, priced);
  };
  StepOutcome outcome = replay_step(*this, *kernels, whole.program, options, repricing);
  add_overhead(outcome.replay, software.step_overhead.value);
  for (Picoseconds& time : outcome.steps) time += to_picoseconds(software.step_overhead.value);
  report_step(*this, whole, outcome, record);

  const auto stage = static_cast<std::size_t>(outcome.replay.last_role);
  const Seconds forward = time_in(outcome.replay, built.forward[stage]);
  const Seconds backward = time_in(outcome.replay, built.backward[stage]);
  add_metric(record, kForwardTime, forward.base());
  add_metric(record, kBackwardTime, backward.base());
  add_metric(record, kFlopsPerSPerAccelerator,
             whole.model_flops.base() / to_seconds(outcome.replay.end).base() / accelerators());
  const StepSource source{machine(), *kernels, whole.program, outcome, seed};
  const double of_experts = llm.has_moe() ? software.experts.unmodelled.value : 0;
  const std::vector<double> beyond =
      some_slower(spread_draws(seed, "what graphs of steps leave out",
                               std::hypot(software.unmodelled.value, of_experts)),
                  known_slowness());
  report_trust(source, record, beyond);
  if (!record.find("step_time_s")->interval) return;
  add_interval(record, "forward_time_s",
               times(block_draws(source, built.forward[stage], forward), beyond));
  add_interval(record, "backward_time_s",
               times(block_draws(source, built.backward[stage], backward), beyond));
}

}  // namespace orrery
