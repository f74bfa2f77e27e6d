// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/rank_parameters.h"

#include "workloads/layers/alike_layers.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/models/encoder_alone.h"
#include "workloads/plan/expert_placement.h"
#include "workloads/plan/stages.h"

namespace orrery {
namespace {

std::int64_t norm_size(const LlmConfig& model) { return model.hidden * (model.norm_bias ? 2 : 1); }

std::int64_t norm_vectors(const LlmConfig& model) { return model.norm_bias ? 2 : 1; }

std::int64_t padded_vocabulary_rows(const LlmConfig& model, int tp) {
  return (model.vocabulary + tp - 1) / tp;
}

RankParameters of_part(const PartParameters& p, std::int64_t biases) {
  return {p.split + p.split_vectors, p.whole + p.whole_vectors, 0, p.sixteen_bit, 2, biases};
}

RankParameters mlp(const LlmConfig& model, const LayerConfig& layer, int tp) {
  return of_part(mlp_weights({model, layer, training_rank(tp)}).parameters(),
                 model.mlp_of(layer).bias ? 2 : 0);
}

/// Experts as Megatron-Core splits them: each one's matrices over etp, by columns and then by rows,
/// so that the second bias is whole on every rank.
RankParameters moe(const LlmConfig& model, const LayerConfig& layer,
                   const ParallelConfig& parallel) {
  const MoeConfig& m = model.moe;
  const std::int64_t slots = expert_slots(m, parallel.ep);
  const ExpertWeights weights =
      moe_weights({model, layer, training_rank(parallel.tp, parallel.etp)});
  RankParameters p = of_part(weights.whole.parameters(), 0);
  p.experts = slots * weights.expert.parameters().total();
  p.matrices = 1 + 2 * slots + (m.shared_intermediate > 0 ? 2 : 0);
  p.vectors = m.norms + (m.router_bias ? 1 : 0) + (m.expert_bias ? 2 : 0);
  return p;
}

RankParameters mixer(const LlmConfig& model, const LayerConfig& layer, int tp) {
  const Mixer* kind = mixer_of(model, layer);
  if (kind == nullptr) return {};
  const AttentionConfig& a = model.attention_of(layer);
  const std::int64_t biases =
      layer.mixer == MixerKind::kAttention ? (a.qkv_bias ? 1 : 0) + (a.output_bias ? 1 : 0) : 0;
  return of_part(kind->weights(model, layer, tp).parameters(), biases);
}

RankParameters feed(const LlmConfig& model, const LayerConfig& layer,
                    const ParallelConfig& parallel) {
  if (!layer.feeds) return {};
  return layer.moe ? moe(model, layer, parallel) : mlp(model, layer, parallel.tp);
}

/// Bytes of an element of a checkpoint's matrix in device memory. Where products read its format as
/// it is, their scales are in what was measured of them; in memory they are not.
double held_bytes(const LayerTask& task, StoredFormat stored) {
  const Precision precision = task.precision(stored);
  WeightFormat format = task.weights(stored);
  const bool as_it_is = stored == StoredFormat::kPrecision && element_bytes(precision) < 1;
  const bool microscaled = stored == StoredFormat::kMxFourBit && format.bits > 0;
  if (as_it_is || microscaled) format.scale_bits = task.model.scale_bits;
  return weight_bytes(precision, format);
}

}  // namespace

RankParameters& RankParameters::operator+=(const RankParameters& other) {
  split += other.split;
  whole += other.whole;
  experts += other.experts;
  sixteen_bit += other.sixteen_bit;
  matrices += other.matrices;
  vectors += other.vectors;
  return *this;
}

RankParameters RankParameters::operator-(const RankParameters& other) const {
  return {split - other.split,       whole - other.whole,
          experts - other.experts,   sixteen_bit - other.sixteen_bit,
          matrices - other.matrices, vectors - other.vectors};
}

LayerHalves layer_halves(const LlmConfig& model, const LayerConfig& layer,
                         const ParallelConfig& parallel) {
  LayerHalves halves{mixer(model, layer, parallel.tp), feed(model, layer, parallel)};
  const auto add_norms = [&](RankParameters& half, std::int64_t norms) {
    half.whole += norms * norm_size(model);
    half.sixteen_bit += norms * norm_size(model);
    half.vectors += norms * norm_vectors(model);
  };
  const bool crosses = layer.kind == LayerKind::kCross;
  if (crosses) halves.attention += mixer(model, layer, parallel.tp);
  if (layer.position_biases)
    halves.attention.split +=
        model.relative_positions * (model.attention_of(layer).heads / parallel.tp);
  const std::int64_t norms = model.norms_of(layer);
  const std::int64_t behind = !layer.feeds                      ? 0
                              : layer.mixer == MixerKind::kNone ? norms
                                                                : norms / 2;
  const std::int64_t mixture = mixture_parameters(model);
  for (RankParameters* half : {&halves.attention, &halves.feed}) {
    half->whole += mixture;
    half->sixteen_bit += mixture;
  }
  add_norms(halves.attention, norms - behind + (crosses ? 1 : 0));
  add_norms(halves.feed, behind);
  return halves;
}

RankParameters layer_parameters(const LlmConfig& model, const LayerConfig& layer,
                                const ParallelConfig& parallel) {
  LayerHalves halves = layer_halves(model, layer, parallel);
  halves.attention += halves.feed;
  return halves.attention;
}

RankParameters embedding_parameters(const LlmConfig& model, int tp) {
  RankParameters p;
  p.split = padded_vocabulary_rows(model, tp) * model.hidden;
  p.whole = (model.positions + model.segments) * model.hidden;
  p.sixteen_bit = p.total();
  p.matrices = 1 + (model.positions > 0 ? 1 : 0) + (model.segments > 0 ? 1 : 0);
  return p;
}

RankParameters head_parameters(const LlmConfig& model, int tp, bool same_stage_as_embedding) {
  RankParameters p;
  if (is_encoder_alone(model)) {
    p.whole = p.sixteen_bit = pooler_parameters(model);
    return p;
  }
  if (!model.tied_embeddings || !same_stage_as_embedding) {
    p.split = padded_vocabulary_rows(model, tp) * model.hidden;
    p.matrices = 1;
  }
  if (model.head_bias) p.split += padded_vocabulary_rows(model, tp);
  p.whole = (model.final_norm ? norm_size(model) : 0) + streams_head_parameters(model);
  p.sixteen_bit = p.total();
  p.vectors = (model.final_norm ? norm_vectors(model) : 0) + (model.head_bias ? 1 : 0);
  return p;
}

RankParameters encoder_end_parameters(const LlmConfig& model) {
  RankParameters p;
  p.whole = p.sixteen_bit = norm_size(model);
  p.vectors = norm_vectors(model);
  return p;
}

RankParameters decoder_embedding_parameters(const LlmConfig& model, int tp,
                                            bool same_stage_as_embedding) {
  return same_stage_as_embedding ? RankParameters{} : embedding_parameters(model, tp);
}

RankParameters module_parameters(const LlmConfig& model, const ParallelConfig& parallel) {
  RankParameters p = layer_parameters(model, model.module_layer(), parallel);
  p.split += 2 * model.hidden * (model.hidden / parallel.tp);
  p.whole += 3 * norm_size(model);
  p.sixteen_bit += 3 * norm_size(model);
  p.matrices += 1;
  p.vectors += 3 * norm_vectors(model);
  return p;
}

RankParameters stage_parameters(const LlmConfig& model, const ParallelConfig& parallel,
                                const Placement& placement, int stage, ModelEnds ends) {
  RankParameters p;
  OfAlikeLayers of_layer(
      [&](const LayerConfig& layer) { return layer_parameters(model, layer, parallel); });
  const std::int64_t encoder = model.encoder_layers();
  bool decoder_starts = false;  // here
  for (const std::int64_t i :
       layers_of_stage(model.layer_count(), parallel, placement, stage, ends.modules)) {
    if (ends.with && i + 1 == encoder) p += encoder_end_parameters(model);
    decoder_starts = decoder_starts || (encoder > 0 && i == encoder);
    p += of_layer(model.layer(i));
  }
  if (!ends.with) return p;
  const bool first = placement.holds(stage, 0);
  const bool last = placement.holds(stage, placement.slices() - 1);
  if (first) p += embedding_parameters(model, parallel.tp);
  if (decoder_starts) p += decoder_embedding_parameters(model, parallel.tp, first);
  if (last) p += head_parameters(model, parallel.tp, first || decoder_starts);
  if (ends.modules == 0 || !placement.holds(stage, module_slice(parallel, placement))) return p;
  for (int module = 0; module < ends.modules; ++module) p += module_parameters(model, parallel);
  const bool has_table = first || (last && model.tied_embeddings);
  if (!has_table) p += embedding_parameters(model, parallel.tp);
  return p;
}

RankParameters stage_parameters(const LlmConfig& model, const ParallelConfig& parallel, int stage) {
  RankParameters p =
      stage_parameters(model, parallel, Placement::round_robin(parallel.pp, parallel.vpp), stage);
  if (stage != 0 || !model.vision) return p;
  const TowerParameters tower = tower_parameters(*model.vision, parallel.tp);
  p.split += tower.split;
  p.whole += tower.whole;
  p.sixteen_bit += tower.total();
  return p;
}

double saved_weight_bytes(const LlmConfig& model, const ParallelConfig& parallel, int stage,
                          const RankWork& work) {
  const double element = element_bytes(work.formats.precision);
  const auto saved = [&](const LayerConfig& layer, StoredFormat stored, std::int64_t count) {
    const LayerTask task{model, layer, work};
    return static_cast<double>(count) * (element - held_bytes(task, stored));
  };
  double bytes = 0;
  if (stage == parallel.pp - 1 && model.head != StoredFormat::kSixteenBit &&
      (!model.tied_embeddings || parallel.pp > 1)) {
    const LayerConfig none;
    const LayerTask task{model, none, work};
    const double stored = held_bytes(task, model.head);
    bytes += static_cast<double>(padded_vocabulary_rows(model, parallel.tp) * model.hidden) *
             (element_bytes(unquantised(work.formats.precision)) - stored);
  }
  OfAlikeLayers of_layer([&](const LayerConfig& layer) {
    double of = saved(layer, layer.attention, mixer(model, layer, parallel.tp).quantised());
    if (!layer.feeds) return of;
    if (layer.moe) {
      const RankParameters all = moe(model, layer, parallel);
      of += saved(layer, layer.feed, all.experts);
      of += saved(layer, layer.shared, all.quantised() - all.experts);
    } else {
      of += saved(layer, layer.feed, mlp(model, layer, parallel.tp).quantised());
    }
    return of;
  });
  const LayerRange range = layers_of_stage(model.layer_count(), parallel, stage);
  for (std::int64_t i = range.first; i < range.end(); ++i) bytes += of_layer(model.layer(i));
  return bytes;
}

RankParameters adapter_parameters(const LlmConfig& model, const LayerConfig& layer,
                                  const RankWork& work) {
  RankParameters all;
  for (const Linear& linear : adapted_linears({model, layer, work})) {
    for (const Adapter& adapter : adapters_of(work, linear)) {
      const std::int64_t in = adapter.in * work.lora.rank, out = work.lora.rank * adapter.out;
      (linear.split == MatrixSplit::kRows ? all.split : all.whole) += in;
      (linear.split == MatrixSplit::kColumns ? all.split : all.whole) += out;
    }
  }
  all.sixteen_bit = all.total();
  return all;
}

}  // namespace orrery
