// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "workloads/base/require.h"
#include "workloads/layers/attention/context_training.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/models/encoder_alone.h"
#include "workloads/plan/stages.h"
#include "workloads/steps/training/backward_update.h"

namespace orrery {
namespace {

using Paths = std::vector<std::string>;

/// The multiple of `unit` nearest to `value`, at least one.
std::string nearest_multiple(std::int64_t value, std::int64_t unit) {
  return std::to_string(std::max<std::int64_t>(1, (value + unit / 2) / unit) * unit);
}

void require_batch(const LlmConfig& model, const TrainingConfig& c) {
  require(c.global_batch > 0 && c.micro_batch > 0 && c.sequence > 0, "batch",
          "global, micro and sequence must be at least 1");
  const std::int64_t unit = c.micro_batch * c.parallel.dp;
  require(c.global_batch % unit == 0, Paths{"batch.global", "batch.micro", "parallel.dp"},
          fmt::format("{} sequences do not divide by batch.micro * parallel.dp = {}",
                      c.global_batch, unit),
          {{}, {"batch.global: " + nearest_multiple(c.global_batch, unit) + " would do"}});
  require(
      model.positions == 0 || c.sequence <= model.positions, "batch.sequence",
      fmt::format("model '{}' has {} positions, got {}", model.name, model.positions, c.sequence),
      {std::to_string(model.positions), {}});
  require_split_sequences(model, c.parallel, c.software->cp_comm_type.value, c.sequence);
  require(c.parallel.cp == 1 || c.flash_attention, Paths{"flash_attention", "parallel.cp"},
          "context parallelism needs attention without scores in memory (flash_attention: true)");
  const std::int64_t tokens = c.micro_batch * c.sequence / c.parallel.cp;
  require(!c.parallel.sp || tokens % c.parallel.tp == 0,
          Paths{"batch.sequence", "parallel.sp", "batch.micro"},
          "sequence parallelism: the " + std::to_string(tokens) +
              " tokens of a micro-batch do not divide by tp = " + std::to_string(c.parallel.tp),
          {{}, {"batch.sequence: " + nearest_multiple(c.sequence, c.parallel.tp) + " would do"}});
}

/// "schedule: interleaved, or parallel.vpp: 1": schedules for these chunks, or chunks for this one.
std::string fitting_schedules(const PipelineSchedule& schedule, int chunks) {
  std::string text;
  for (const auto& [name, item] : ScheduleRegistry::items())
    if (item.entry->chunks().holds(chunks)) text += (text.empty() ? "schedule: " : ", ") + name;
  const ChunkLimits limits = schedule.chunks();
  const int nearest = std::clamp(chunks, limits.fewest, limits.most);
  return fmt::format("{}{}parallel.vpp: {}", text, text.empty() ? "" : ", or ", nearest);
}

void require_schedule(const TrainingConfig& c) {
  const PipelineSchedule& schedule = schedule_of(c);
  const std::string name = c.written ? "passes" : resolved_schedule(c.schedule, c.parallel.vpp);
  require(schedule.chunks().holds(c.parallel.vpp), Paths{"schedule", "parallel.vpp"},
          fmt::format("schedule {} has {} of layers per stage, got parallel.vpp = {}", name,
                      schedule.chunks().text(), c.parallel.vpp),
          {{}, {fitting_schedules(schedule, c.parallel.vpp)}});
  const std::int64_t multiple = schedule.micro_batch_multiple(pipeline_shape(c));
  require(
      c.micro_batches() % multiple == 0, Paths{"schedule", "batch.global", "parallel.pp"},
      fmt::format("{} needs micro-batches in multiples of {}, got {}", name, multiple,
                  c.micro_batches()),
      {{},
       {"batch.global: " +
        nearest_multiple(c.global_batch, c.micro_batch * c.parallel.dp * multiple) + " would do"}});
  const std::string fault = schedule.fault(pipeline_shape(c));
  require(fault.empty(), Paths{"schedule", "parallel.pp", "batch.global"},
          fmt::format("schedule {} needs {}, got pp = {} and {} micro-batches", name, fault,
                      c.parallel.pp, c.micro_batches()));
  schedule.check(pipeline_shape(c));
}

void require_layers_only(const LlmConfig& model, const TrainingConfig& c) {
  require(c.layers_only >= 0 && c.layers_only <= model.layer_count(), "layers_only",
          fmt::format("model '{}' has {} layers, got {}", model.name, model.layer_count(),
                      c.layers_only),
          {std::to_string(model.layer_count()), {}});
  require(c.layers_only == 0 || (c.parallel.pp == 1 && c.parallel.dp == 1), "layers_only",
          "needs pp = 1 and dp = 1");
}

bool has_head_gates(const LlmConfig& model) {
  return std::ranges::any_of(
      model.layers, [&](const LayerConfig& layer) { return model.attention_of(layer).head_gate; });
}

void require_recomputation(const LlmConfig& model, const TrainingConfig& c) {
  if (!rank_work(c).recomputes_products()) return;
  const bool dense = !model.has_moe() && model.attention.kind == AttentionKind::kGrouped &&
                     model.norms_per_layer == 2 && c.flash_attention &&
                     unlike_attention(model).empty() && !model.attention.output_gate &&
                     !model.parallel_block && !has_head_gates(model);
  require(dense && c.parallel.tp == 1, Paths{"recompute", "software.selective_recompute"},
          "recomputation by operator (every_second_product) is known of dense layers with "
          "FlashAttention and tp = 1 only",
          {{}, {"recompute: full"}});
}

void require_shards(const TrainingConfig& c) {
  const int replicas = expert_replicas(c);
  require(replicas % c.parallel.copies() == 0, Paths{"parallel.dp_shard", "parallel.ep"},
          std::to_string(replicas) + " replicas of experts do not divide by the " +
              std::to_string(c.parallel.copies()) + " copies that dp / dp_shard leaves");
  require(placement_of(c).copies() == 1 || (c.parallel.zero <= 1 && c.parallel.copies() == 1),
          Paths{"schedule", "parallel.zero", "parallel.dp_shard"},
          "unsupported: sharded gradients or weights where stages hold the same slices (dualpipe)",
          {{}, {"parallel.zero: 1"}});
}

void require_modules(const TrainingConfig& c) {
  require(c.mtp >= 0, "mtp", "a number of modules is at least 0");
  require(c.mtp == 0 || c.layers_only == 0, std::vector<std::string>{"mtp", "layers_only"},
          "layers alone have no modules of multi-token prediction");
}

void require_offload(const LlmConfig& model, const TrainingConfig& c) {
  if (c.activation_offload == 0) return;
  std::int64_t longest = 0;
  for (const auto& chunks : layer_ranges(model.layer_count(), c.parallel, placement_of(c), c.mtp))
    for (const LayerRange& chunk : chunks) longest = std::max(longest, chunk.count);
  require(c.activation_offload <= longest, "activation_offload",
          fmt::format("the longest chunk of a stage has {} layers, got {}", longest,
                      c.activation_offload),
          {std::to_string(longest), {}});
  for (const Pass& pass : schedule_of(c).passes(pipeline_shape(c), 0))
    require(!pass.with_next, Paths{"activation_offload", "schedule"},
            "activations on the host are not modelled where passes run side by side", {"0", {}});
}

void require_sparsity(const LlmConfig& model, const TrainingConfig& c) {
  if (!c.sparse_weights) return;
  const std::string other = unlike_attention(model);
  require(other.empty(), "sparsity", "unsupported: sparse weights of " + other, {"none", {}});
  require(!c.lora, Paths{"sparsity", "lora"}, "unsupported: adapters of a sparse model");
  require(c.parallel.zero < 3, Paths{"parallel.zero", "sparsity"},
          "unsupported: compressed weights that are gathered layer by layer (zero 3)", {"1", {}});
}

/// Parts of attention of which inference alone is modelled.
void require_attention(const LlmConfig& model, const TrainingConfig& c) {
  for (const LayerConfig& layer : model.layers) {
    require(layer.chunk == 0 || c.flash_attention, "flash_attention",
            "chunked attention without scores in memory alone is modelled: model '" + model.name +
                "' has it",
            {"true", {}});
  }
}

void require_encoder(const LlmConfig& model, const TrainingConfig& c) {
  require(model.has_encoder() || c.encoder_sequence == 0, "batch.encoder_sequence",
          "model '" + model.name + "' has no encoder", {"0", {}});
  if (!model.has_encoder()) return;
  require(!is_encoder_alone(model), "model",
          "unsupported: training of model '" + model.name + "', an encoder alone");
  const std::string what = " with an encoder and a decoder";
  require(c.parallel.cp == 1, "parallel.cp", "unsupported: context parallelism" + what, {"1", {}});
  require(c.mtp == 0, "mtp", "unsupported: multi-token prediction" + what, {"0", {}});
  require(!c.lora, "lora", "unsupported: adapters" + what);
  require(c.packed.mean == 0, "packed", "unsupported: packed samples" + what, {"0", {}});
  const std::int64_t tokens = c.micro_batch * rank_work(c).batch.encoder;
  require(!c.parallel.sp || tokens % c.parallel.tp == 0,
          Paths{"batch.encoder_sequence", "parallel.sp"},
          fmt::format("sequence parallelism: the {} tokens that an encoder reads of a micro-batch "
                      "do not divide by tp = {}",
                      tokens, c.parallel.tp));
}

void require_dense_attention(const LlmConfig& model) {
  for (const LayerConfig& layer : model.layers) {
    const Mixer* mixer = mixer_of(model, layer);
    require(mixer == nullptr || mixer->trains(), "model",
            "unsupported: training of " + std::string(layer.mixer.name) + ", which model '" +
                model.name + "' has; inference is modelled");
  }
}

void require_optimizer(const LlmConfig& model, const TrainingConfig& c) {
  const bool muon = c.optimizer == OptimizerKind::kMuon;
  require(!muon || c.parallel.zero <= 1, Paths{"parallel.zero", "optimizer"},
          "Muon needs whole matrices of weights and gradients: zero 0, or 1, where replicas share "
          "them out",
          {"1", {}});
  require(!muon || !model.has(MixerKind::kSharedBlock), "optimizer",
          "Muon of matrices that several layers share is not modelled", {"adam", {}});
  require(!muon || !c.lora, Paths{"lora", "optimizer"}, "adapters are trained by adam or sgd",
          {{}, {"optimizer: adam"}});
  require(!muon || c.precision != Precision::kFp16, Paths{"optimizer", "precision"},
          "Megatron-Core has no Muon for fp16", {{}, {"precision: bf16"}});
  require(c.optimizer_offload.fraction == 0 || c.optimizer_states.are_usual(),
          Paths{"optimizer_offload", "optimizer_states"},
          "hosts update weights and moments of 32 bits");
  require(c.optimizer_offload.fraction == 0 || c.optimizer == OptimizerKind::kAdam,
          Paths{"optimizer_offload", "optimizer"}, "hosts update weights by adam alone",
          {{}, {"optimizer: adam"}});
}

void require_precision(const TrainingConfig& c) {
  require(!c.narrow_inputs || element_bytes(c.precision) < 2,
          Paths{"activation_precision", "precision"},
          "products of 16 bits and more keep their inputs as they are: fp8 activations need a "
          "precision of 8 bits or less",
          {{}, {"activation_precision: bf16, or precision: fp8"}});
}

/// What Megatron-Core asks for the same (transformer/transformer_config.py, core 0.14).
void require_batch_overlap(const TrainingConfig& c) {
  const ExpertSoftware& software = c.software->experts;
  if (!pipeline_shape(c).pairs) return;
  const std::string path = "software.experts.batch_overlap";
  require(software.dispatcher.value != TokenDispatcher::kAllGather,
          Paths{path, "software.experts.dispatcher"},
          "Megatron-Core has no overlap over batches for its allgather dispatcher",
          {{}, {"software.experts.dispatcher: alltoall"}});
  require(schedule_of(c).can_pair(pipeline_shape(c)),
          Paths{path, "schedule", "parallel.pp", "parallel.vpp"},
          "forward passes run beside backward passes of another micro-batch where schedule is "
          "1f1b with pp = 1, or interleaved",
          {{}, {"parallel.vpp: 2"}});
}

/// Layers that share the selection of the layer before are on its chunk: it is not sent, in
/// Megatron-Core neither.
void require_selections(const LlmConfig& model, const TrainingConfig& c) {
  const LlmConfig trained = trained_model(model, c);
  for (const auto& of_stage :
       layer_ranges(trained.layer_count(), c.parallel, placement_of(c), c.mtp)) {
    for (const LayerRange& range : of_stage) {
      if (range.count == 0) continue;
      const LayerConfig& first = trained.layers[static_cast<std::size_t>(range.first)];
      const bool apart = c.parallel.pp * c.parallel.vpp > 1 && trained.has(MixerKind::kSharedBlock);
      require(!apart, "parallel.pp",
              "unsupported: pipeline stages of blocks that layers share, which model '" +
                  model.name + "' has",
              {"1", {}});
      require(first.mixer != MixerKind::kSharedSparse, Paths{"parallel.pp", "parallel.layout"},
              fmt::format("layer {} of model '{}' begins a chunk of layers and shares the "
                          "selection of the layer before, which stages do not send",
                          range.first, model.name));
    }
  }
}

void require_experts(const LlmConfig& model, const TrainingConfig& c) {
  require_batch_overlap(c);
  const bool routed = c.expert_routing || c.expert_capacity > 0;
  require(model.has_moe() || !routed, c.expert_routing ? "expert_routing" : "expert_capacity",
          "model '" + model.name + "' has no experts");
  if (!model.has_moe()) return;
  if (model.moe.experts % c.parallel.ep != 0)
    require(false, "parallel.ep",
            fmt::format("{} experts do not divide by ep = {}", model.moe.experts, c.parallel.ep),
            divisors_near(model.moe.experts, c.parallel.ep));
  if (c.expert_routing) {
    require_supported(*c.expert_routing, model, c.parallel.ep);
    require(c.expert_routing->redundant_experts == 0, "expert_routing.redundant_experts",
            "training has one copy of each expert", {"0", {}});
  }
  // Tensor parallel ranks have to take different tokens; Megatron-LM asks the same.
  require(c.parallel.tp == 1 || c.parallel.sp, Paths{"parallel.sp", "parallel.tp"},
          "training experts with tp > 1 needs sequence parallelism (sp: true)");
}

}  // namespace

void require_supported(const LlmConfig& model, const TrainingConfig& config) {
  require_supported(config.parallel);
  require_divisible(model, config.parallel);
  require_batch(model, config);
  require_attention(model, config);
  require_schedule(config);
  require_layers_only(model, config);
  require_modules(config);
  require_experts(model, config);
  require_precision(config);
  require_dense_attention(model);
  require_optimizer(model, config);
  require_backward_update(model, config);
  require_encoder(model, config);
  require_sparsity(model, config);
  require_recompute(model, config.recompute);
  require_fine_tuning(model, config);
  require(config.activation_offload == 0 || config.recompute.num_layers == 1,
          Paths{"activation_offload", "recompute"},
          "activations of layers that are recomputed together cannot lie on the host");
  require_offload(model, config);
  require_recomputation(model, config);
  require_shards(config);
  require_selections(model, config);
}

}  // namespace orrery
