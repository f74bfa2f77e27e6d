// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/attention_pricer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/app/pricing/decode_summary.h"
#include "workloads/layers/attention/context_parallel.h"
#include "workloads/layers/layers.h"

namespace orrery {
namespace {

constexpr double kMostTokens = 1 << 24;  ///< most tokens of a sequence

/// From `first` on: each node by `ratio` or one above the one before, up to `last`.
std::vector<double> growing_nodes(std::vector<double> first, double ratio, double last) {
  while (first.back() < last)
    first.push_back(std::max(first.back() + 1, std::round(first.back() * ratio)));
  return first;
}

/// Keys of the longest sequence, which says how kernels split all contexts: between multiples of
/// 128, which is how many keys a block takes at a time; beyond 2,048 twelve nodes an octave.
TableAxis longest_axis() {
  std::vector<double> nodes = {1};
  for (double keys = 128; keys <= 2048; keys += 128)
    nodes.insert(nodes.end(), {keys - 1, keys + 1});
  return TableAxis(growing_nodes(std::move(nodes), 1.0595, kMostTokens));
}
/// Mean over longest: at one longest context kernels have the same blocks with less in them.
TableAxis mean_axis() {
  std::vector<double> nodes = {0, 0.1, 0.2};
  for (int percent = 30; percent <= 100; percent += 5) nodes.push_back(percent / 100.0);
  return TableAxis(std::move(nodes));
}

/// Blocks of sequences come in waves, for which every sequence counts.
RowSteps sequence_steps() { return {.exact = 8, .width = 4, .widest = 16, .parity = false}; }
/// Tiles of attention are 64 rows high or more.
RowSteps prompt_steps() { return {.exact = 4, .width = 16, .widest = 256, .parity = false}; }

/// A twentieth of most steps.
RowSteps expansion_steps() { return {.widest = 4096, .tolerance = 1e-2}; }

TableAxis earlier_axis() { return TableAxis(growing_nodes({0, 16, 64, 128}, 1.1892, kMostTokens)); }
/// Blocks of few prompts come in waves, for which each of them counts.
TableAxis prompts_axis() {
  std::vector<double> nodes;
  for (int prompts = 1; prompts <= 64; ++prompts) nodes.push_back(prompts);
  return TableAxis(growing_nodes(std::move(nodes), 1.1892, kMostTokens));
}

/// Latent attention of a chunk expands keys and values by products of all tokens of its sequence;
/// nothing else of it is a product.
StepList products_of(const StepList& steps, bool products) {
  StepList some;
  for (const Step& step : steps.steps()) {
    const Kernel* kernel = step.kernel();
    const bool product = kernel != nullptr && kernel->kind == KernelClass::kGemm;
    if (product == products) some.then(step.work);
  }
  return some;
}

/// The only part of a step of decodes.
AttentionPart decodes_alone(InferenceConfig plan, const BatchShape& shape) {
  plan = with_batch(std::move(plan), shape);
  return rank_work(plan).batch.attention_parts().front();
}

/// Whether layers attend by the same kernels.
bool attends_alike(const LayerConfig& a, const LayerConfig& b) {
  return a.mixer == b.mixer && a.first == b.first && a.window == b.window && a.chunk == b.chunk &&
         a.variant == b.variant && a.attention == b.attention;
}

}  // namespace

InferenceConfig with_batch(InferenceConfig plan, const BatchShape& shape) {
  plan.phase = Phase::kMixed;
  plan.mean_lengths = true;
  plan.batch = {};
  for (const Chunk& chunk : shape.chunks)
    plan.batch.chunks.push_back({chunk.tokens, chunk.context, 1, chunk.samples});
  plan.batch.decodes = summarised_decodes(shape.sequences, shape.longest, shape.context);
  plan.batch.queries = shape.queries;
  plan.adapters = shape.adapters;
  return plan;
}

std::vector<AlikeLayers> alike_layers(const std::vector<LayerConfig>& layers,
                                      bool (*alike)(const LayerConfig& a, const LayerConfig& b)) {
  std::vector<AlikeLayers> all;
  for (const LayerConfig& layer : layers) {
    const auto known = std::ranges::find_if(
        all, [&](const AlikeLayers& kind) { return alike(kind.layer, layer); });
    if (known == all.end()) {
      all.push_back({layer, 1});
    } else {
      ++known->count;
    }
  }
  return all;
}

AttentionPricer::AttentionPricer(const PartPricer& parts, const LlmConfig& model,
                                 const InferenceConfig& plan, const DeviceLoad& taken)
    : parts_(parts),
      model_(model),
      plan_(plan),
      taken_(taken),
      layers_(alike_layers(model.layers, attends_alike)),
      prompts_({earlier_axis(), prompts_axis()}, prompt_steps(),
               [this](std::int64_t tokens, const ColumnTable::Point& at) {
                 return price_prompts(tokens, at);
               }),
      expansions_([this](std::int64_t context) { return price_expansion(context); },
                  expansion_steps()) {}

StepPrice AttentionPricer::price(const AttentionPart& part) const {
  return price(part, [](const StepList& steps) { return steps; });
}

StepPrice AttentionPricer::price(const AttentionPart& part,
                                 const std::function<StepList(const StepList&)>& wanted) const {
  InferenceConfig one = plan_;
  one.phase = Phase::kDecode;
  one.mean_lengths = true;
  one.micro_batch = part.sequences * part.query;
  one.adapters = 0;
  RankWork all = rank_work(one);
  all.batch.phase = Phase::kMixed;
  all.batch.parts.emplace();
  StepPrice sum;
  for (const AlikeLayers& kind : layers_) {
    const StepList steps = attention_part_forward(model_, kind.layer, all, part);
    sum.add(parts_.price(wanted(steps), taken_), kind.count);
  }
  return sum;
}

/// @param at keys of the longest on a rank, and the mean over them
StepPrice AttentionPricer::price_decodes(std::int64_t sequences, std::int64_t queries,
                                         const ColumnTable::Point& at) const {
  const std::int64_t longest = std::llround(at[0] * shards()) - 1;
  const auto keys = std::llround(static_cast<double>(sequences) * at[0] * at[1] * shards());
  const auto context = std::clamp<std::int64_t>(keys - sequences, longest, sequences * longest);
  return price(decodes_alone(plan_, {sequences, longest, context, {}, queries}));
}

/// Without expansions.
/// @param rows tokens; with context parallelism those of a piece, which is what ranks pad a prompt
/// to
StepPrice AttentionPricer::price_prompts(std::int64_t rows, const ColumnTable::Point& at) const {
  const std::int64_t cp = plan_.parallel.cp;
  const std::int64_t tokens = cp == 1 ? rows : 2 * cp * rows;
  const std::int64_t earlier = std::llround(at[0]), sequences = std::llround(at[1]);
  return price(
      {Phase::kPrefill, sequences, tokens, earlier + tokens, {}, true},
      [this](const StepList& steps) { return is_latent() ? products_of(steps, false) : steps; });
}

StepPrice AttentionPricer::price_expansion(std::int64_t context) const {
  const std::int64_t padded = plan_.parallel.cp * context_share(1, plan_.parallel.cp);
  return price({Phase::kPrefill, 1, padded, context, {}, true},
               [](const StepList& steps) { return products_of(steps, true); });
}

ColumnTable& AttentionPricer::decodes(std::int64_t queries) {
  const auto known = decodes_.find(queries);
  if (known != decodes_.end()) return known->second;
  return decodes_
      .try_emplace(queries, std::array{longest_axis(), mean_axis()}, sequence_steps(),
                   [this, queries](std::int64_t sequences, const ColumnTable::Point& at) {
                     return price_decodes(sequences, queries, at);
                   })
      .first->second;
}

bool AttentionPricer::add_decodes(const BatchShape& shape, double weight, PriceTerms& terms) {
  if (shape.sequences == 0) return true;
  const double longest = static_cast<double>(shape.longest + 1) / shards();
  const double mean =
      (static_cast<double>(shape.context) / static_cast<double>(shape.sequences) + 1) / shards();
  return decodes(shape.queries).add(shape.sequences, {longest, mean / longest}, weight, terms);
}

bool AttentionPricer::add_prompts(const BatchShape& shape, double weight, PriceTerms& terms) {
  if (shape.chunks.empty()) return true;
  const int cp = plan_.parallel.cp;
  PromptSum sum;
  for (const Chunk& chunk : shape.chunks) sum.add({1, chunk.tokens, chunk.context + chunk.tokens});
  const Prompts alike = sum.alike();
  const std::int64_t earlier = alike.context - alike.query;
  const std::int64_t rows = cp == 1 ? alike.query : context_piece(alike.query, cp);
  const std::int64_t keys =
      cp == 1 ? sum.keys : alike.sequences * (earlier + cp * context_share(alike.query, cp));
  const bool known = prompts_.add(
      rows, {static_cast<double>(earlier), static_cast<double>(alike.sequences)}, weight, terms);
  return (!is_latent() || expansions_.add(keys, weight, terms)) && known;
}

bool AttentionPricer::add(const BatchShape& shape, double weight, PriceTerms& terms) {
  const bool known = add_decodes(shape, weight, terms);
  return add_prompts(shape, weight, terms) && known;
}

}  // namespace orrery
