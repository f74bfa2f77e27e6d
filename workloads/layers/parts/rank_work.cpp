// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/rank_work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/software/engine_switches.h"
#include "workloads/software/training_software.h"

namespace orrery {
const char* to_string(Phase phase) {
  static const std::map<Phase, const char*> kNames = {{Phase::kTraining, "training"},
                                                      {Phase::kPrefill, "prefill"},
                                                      {Phase::kDecode, "decode"},
                                                      {Phase::kMixed, "mixed"}};
  return kNames.at(phase);
}

bool RankWork::recomputes_products() const {
  return passes.recompute == Recompute::kSelective &&
         software->selective_recompute.value == SelectiveRecompute::kEverySecondProduct;
}

std::int64_t RankWork::launches(std::int64_t operations) const {
  return kernels.on(kOperatorsApart) ? operations : 1;
}

std::int64_t RankWork::logit_rows() const {
  if (batch.phase == Phase::kTraining) return row_tokens();
  std::int64_t rows = 0;
  for (const AttentionPart& part : batch.attention_parts()) {
    const std::int64_t each = part.phase == Phase::kDecode ? part.query : 1;
    rows += part.samples ? part.sequences * each : 0;
  }
  return rows;
}

namespace {

constexpr Precision kWide = Precision::kBf16;

}  // namespace

bool RankWork::quantises_apart(Precision of_products) const {
  const bool fused = kernels.on(kQuantFusion) &&
                     (of_products != Precision::kFp8Block || kernels.on(kBlockQuantFusion));
  return !fused && element_bytes(of_products) < 2;
}

Precision RankWork::normed_precision() const {
  const Precision precision = formats.precision;
  if (batch.phase != Phase::kTraining) return function_precision(precision);
  const NarrowScaling scaling = software->scaling(precision);
  const bool narrow = scaling == NarrowScaling::kFused || scaling == NarrowScaling::kDelayed;
  return narrow ? precision : kWide;
}

Precision RankWork::function_precision(Precision of_products) const {
  const bool casts = batch.phase == Phase::kTraining
                         ? software->scaling(of_products) != NarrowScaling::kFused
                         : quantises_apart(of_products);
  return casts ? kWide : of_products;
}

std::vector<AttentionPart> TokenBatch::attention_parts() const {
  if (parts) return *parts;
  return {{phase, sequences * samples, query / samples, context / samples, {}, true}};
}

const char* to_string(Recompute recompute) {
  return recompute == Recompute::kNone        ? "none"
         : recompute == Recompute::kSelective ? "selective"
                                              : "full";
}

std::vector<AttentionPart> TokenBatch::attention_kernels() const {
  std::vector<AttentionPart> merged;
  PromptSum sum;
  std::size_t place = 0;  // of the kernel over prompts, once there is one
  for (const AttentionPart& part : attention_parts()) {
    const Prompts prompts{part.sequences, part.query, part.context};
    if (part.phase != Phase::kPrefill || sum.sequences == 0) merged.push_back(part);
    if (part.phase != Phase::kPrefill) continue;
    if (sum.sequences == 0) place = merged.size() - 1;
    merged[place].prompts.push_back(prompts);
    sum.add(prompts);
  }
  if (sum.sequences == 0) return merged;
  AttentionPart& all = merged[place];
  const Prompts alike = sum.alike();
  all.sequences = alike.sequences;
  all.query = alike.query;
  all.context = alike.context;
  const Prompts first = all.prompts.front();
  const auto same = [&first](const Prompts& other) {
    return other.query == first.query && other.context == first.context;
  };
  if (std::ranges::all_of(all.prompts, same)) all.prompts.clear();
  return merged;
}

RankWork training_rank(int tp, int etp) {
  RankWork work;
  work.split.tp = tp;
  work.split.etp = etp;
  return work;
}

RankWork encoder_work(RankWork work) {
  work.batch.query = work.batch.context = work.batch.encoder;
  return work;
}

double causal_pairs(std::int64_t query, std::int64_t context, std::int64_t window) {
  const std::int64_t limit = window > 0 ? std::min(window, context) : context;
  // Keys seen by new token i are context - query + i + 1, a ramp that `limit` cuts off.
  const std::int64_t first = context - query + 1;
  const std::int64_t ramp = std::clamp<std::int64_t>(limit - first, 0, query);
  const auto rising =
      static_cast<double>(ramp) * (static_cast<double>(first) + static_cast<double>(ramp - 1) / 2);
  return rising + static_cast<double>(query - ramp) * static_cast<double>(limit);
}

std::int64_t local_kv_heads(const AttentionConfig& attention, int tp) {
  return std::max<std::int64_t>(1, attention.kv_heads / tp);
}

void require_divisible(const LlmConfig& model, const ParallelConfig& parallel) {
  const int tp = parallel.tp;
  for (const LayerConfig& layer : model.layers) {
    const Mixer* mixer = mixer_of(model, layer);
    if (mixer != nullptr) mixer->require_split(model, layer, tp);
    if (layer.feeds && !layer.moe)
      require_divides(model.mlp_of(layer).intermediate, tp, "tp", "columns of the MLP");
  }
  require(parallel.pp == 1 || model.shared_block.blocks == 0, "parallel.pp",
          "layers of model '" + model.name + "' share weights, which one pipeline stage holds",
          {"1", {}});
  const std::string no_experts = "model '" + model.name + "' has no experts";
  require(parallel.ep == 1 || model.has_moe(), "parallel.ep", no_experts, {"1", {}});
  require(parallel.etp == 1 || model.has_moe(), "parallel.etp", no_experts, {"1", {}});
  if (model.has_moe())
    require_divides(model.moe.intermediate, parallel.etp, "etp", "columns of an expert");
}

void PromptSum::add(const Prompts& prompts) {
  sequences += prompts.sequences;
  tokens += prompts.sequences * prompts.query;
  keys += prompts.sequences * prompts.context;
  pairs += real(prompts.sequences) * causal_pairs(prompts.query, prompts.context, 0);
}

Prompts PromptSum::alike() const {
  const auto query = std::max<std::int64_t>(1, std::llround(real(tokens) / real(sequences)));
  const double earlier = pairs / real(sequences) / real(query) - real(query + 1) / 2;
  return {sequences, query, query + std::max<std::int64_t>(0, std::llround(earlier))};
}

}  // namespace orrery
