// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/step_pricer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/app/pricing/decode_summary.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/layers.h"

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
RowSteps chunk_steps() { return {.exact = 4, .width = 16, .widest = 256, .parity = false}; }

/// A twentieth of most steps.
RowSteps expansion_steps() { return {.tolerance = 1e-2}; }

TableAxis earlier_axis() { return TableAxis(growing_nodes({0, 16, 64, 128}, 1.1892, kMostTokens)); }

/// Whether a collective comes last that carries all tokens, whoever shares them out.
bool gathers(const StepList& steps) {
  const LayerCollective* last = steps.steps().empty() ? nullptr : steps.steps().back().collective();
  return last != nullptr && last->scope == Scope::kTensor;
}

/// All steps but such a collective.
StepList without_gather(const StepList& steps) {
  if (!gathers(steps)) return steps;
  StepList rest;
  for (std::size_t i = 0; i + 1 < steps.steps().size(); ++i)
    rest.aside(steps.steps()[i].work, steps.steps()[i].after);
  return rest;
}

/// Such a collective without the other steps.
StepList gather_alone(const StepList& steps) {
  StepList last;
  if (gathers(steps)) last.then(steps.steps().back().work);
  return last;
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

/// Products of experts, and what is between them.
StepList products_of_experts(const StepList& steps) {
  const auto is_product = [&](std::size_t i) {
    const Kernel* kernel = i < steps.steps().size() ? steps.steps()[i].kernel() : nullptr;
    return kernel != nullptr && kernel->kind == KernelClass::kGroupedGemm;
  };
  StepList some;
  for (std::size_t i = 0; i < steps.steps().size(); ++i)
    if (is_product(i) || (i > 0 && is_product(i - 1) && is_product(i + 1)))
      some.then(steps.steps()[i].work);
  return some;
}

bool attends_alike(const LayerConfig& a, const LayerConfig& b) {
  return a.window == b.window && a.attention == b.attention;
}

bool alike(const LayerConfig& a, const LayerConfig& b) {
  return attends_alike(a, b) && a.moe == b.moe && a.feed == b.feed && a.shared == b.shared;
}

/// What the smallest step touches of a rank's memory: nearly all of it weights.
Bytes least_touched(const LlmConfig& model, InferenceConfig plan) {
  plan.phase = Phase::kMixed;
  plan.batch = {.chunks = {}, .decodes = {{1, 1}}, .queries = 1};
  plan.adapters = 0;
  const Program program = build_inference(model, plan);
  Bytes least = program.kernels.front().reuse;
  for (const Kernel& kernel : program.kernels) least = std::min(least, kernel.reuse);
  return least;
}

InferenceConfig with_batch(InferenceConfig plan, const BatchShape& shape) {
  plan.phase = Phase::kMixed;
  plan.batch = {};
  for (const Chunk& chunk : shape.chunks)
    plan.batch.chunks.push_back({chunk.tokens, chunk.context, 1, chunk.samples});
  plan.batch.decodes = summarised_decodes(shape.sequences, shape.longest, shape.context);
  plan.batch.queries = shape.queries;
  plan.adapters = shape.adapters;
  return plan;
}

/// The only part of a step of decodes.
AttentionPart decodes_alone(InferenceConfig plan, const BatchShape& shape) {
  plan = with_batch(std::move(plan), shape);
  return layer_work(plan).attention_parts().front();
}

}  // namespace

StepPricer::StepPricer(const StepMachine& machine, LlmConfig model, const InferenceConfig& plan)
    : model_(std::move(model)),
      plan_(plan),
      parts_(machine, plan.parallel, least_touched(model_, plan)),
      clock_(machine.accelerator(), machine.power, plan.parallel.pp),
      layers_(kinds(false)),
      attentions_(kinds(true)),
      decode_tokens_([this](std::int64_t tokens) { return price_tokens(Phase::kDecode, tokens); }),
      mixed_tokens_([this](std::int64_t tokens) { return price_tokens(Phase::kMixed, tokens); }),
      decode_shares_([this](std::int64_t rows) { return price_shares(Phase::kDecode, rows); }),
      mixed_shares_([this](std::int64_t rows) { return price_shares(Phase::kMixed, rows); }),
      experts_([this](std::int64_t tokens) { return price_experts(tokens); }),
      head_([this](std::int64_t rows) { return price_head(rows); }),
      chunks_({earlier_axis(), TableAxis({0})}, chunk_steps(),
              [this](std::int64_t tokens, const ColumnTable::Point& at) {
                return price_chunk(tokens, std::llround(at[0]));
              }),
      expansions_([this](std::int64_t context) { return price_expansion(context); },
                  expansion_steps()) {}

std::vector<StepPricer::LayerKind> StepPricer::kinds(bool attention_alone) const {
  std::vector<LayerKind> all;
  for (const LayerConfig& layer : model_.layers) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const LayerKind& kind) {
      return attention_alone ? attends_alike(kind.layer, layer) : alike(kind.layer, layer);
    });
    if (known == all.end()) {
      all.push_back({layer, 1});
    } else {
      ++known->count;
    }
  }
  return all;
}

/// So many tokens, without any attention.
LayerWork StepPricer::work(Phase phase, std::int64_t tokens) const {
  InferenceConfig one = plan_;
  one.phase = Phase::kDecode;
  one.micro_batch = tokens;
  one.adapters = 0;
  LayerWork work = layer_work(model_, one);
  work.phase = phase;
  work.parts.emplace();
  return work;
}

StepPrice StepPricer::price_tokens(Phase phase, std::int64_t tokens) const {
  const LayerWork all = work(phase, tokens);
  StepPrice price = parts_.price(embedding_forward(model_, all));
  for (const LayerKind& kind : layers_) {
    StepList layer = attention_half_forward(model_, kind.layer, all);
    const StepList feed = feed_half_forward(model_, kind.layer, all);
    if (shared_out(kind.layer)) {
      price.add(parts_.price(gather_alone(feed)), kind.count);
    } else {
      layer.append(feed);
    }
    price.add(parts_.price(layer), kind.count);
  }
  const Bytes message(static_cast<double>(all.row_tokens() * model_.hidden) *
                      activation_bytes(all.precision));
  price.add(parts_.messages(message), 1);
  return price;
}

/// Experts whose tokens the tensor parallel ranks share out.
bool StepPricer::shared_out(const LayerConfig& layer) const {
  return layer.moe && plan_.parallel.tp > 1 && !layer_work(plan_).all_reduces_experts;
}

/// @param rows tokens of one of the ranks that share them out
StepPrice StepPricer::price_shares(Phase phase, std::int64_t rows) const {
  const LayerWork all = work(phase, rows * plan_.parallel.tp);
  StepPrice price;
  for (const LayerKind& kind : layers_) {
    if (!shared_out(kind.layer)) continue;
    price.add(parts_.price(without_gather(feed_half_forward(model_, kind.layer, all))), kind.count);
  }
  return price;
}

StepPrice StepPricer::price_experts(std::int64_t tokens) const {
  const LayerWork all = work(Phase::kMixed, tokens);
  StepPrice price;
  for (const LayerKind& kind : layers_) {
    if (!kind.layer.moe) continue;
    const StepList feed = feed_half_forward(model_, kind.layer, all);
    price.add(parts_.price(products_of_experts(feed)), kind.count);
  }
  return price;
}

StepPrice StepPricer::price_head(std::int64_t rows) const {
  LayerWork all = work(Phase::kMixed, rows);
  all.parts->push_back({Phase::kDecode, rows, 1, 1, {}, true});
  return parts_.price(head_forward(model_, all));
}

StepPrice StepPricer::price_attention(const AttentionPart& part) const {
  return price_attention(part, [](const StepList& steps) { return steps; });
}

StepPrice StepPricer::price_attention(
    const AttentionPart& part, const std::function<StepList(const StepList&)>& wanted) const {
  const LayerWork all = work(Phase::kMixed, part.sequences * part.query);
  StepPrice price;
  for (const LayerKind& kind : attentions_) {
    const StepList steps = attention_part_forward(model_, kind.layer, all, part);
    price.add(parts_.price(wanted(steps)), kind.count);
  }
  return price;
}

/// @param at keys of the longest, and the mean over them
StepPrice StepPricer::price_decodes(std::int64_t sequences, std::int64_t queries,
                                    const ColumnTable::Point& at) const {
  const std::int64_t longest = std::llround(at[0]) - 1;
  const auto keys = std::llround(static_cast<double>(sequences) * at[0] * at[1]);
  const auto context = std::clamp<std::int64_t>(keys - sequences, longest, sequences * longest);
  return price_attention(decodes_alone(plan_, {sequences, longest, context, {}, queries}));
}

/// Without expansions.
StepPrice StepPricer::price_chunk(std::int64_t tokens, std::int64_t earlier) const {
  return price_attention(
      {Phase::kPrefill, 1, tokens, earlier + tokens, {}, true},
      [this](const StepList& steps) { return is_latent() ? products_of(steps, false) : steps; });
}

StepPrice StepPricer::price_expansion(std::int64_t context) const {
  return price_attention({Phase::kPrefill, 1, 1, context, {}, true},
                         [](const StepList& steps) { return products_of(steps, true); });
}

StepPrice StepPricer::price_adapters(std::int64_t adapters, std::int64_t tokens) const {
  LayerWork all = work(Phase::kMixed, tokens);
  all.lora = lora_work(plan_.lora, adapters);
  StepPrice price;
  for (const LayerKind& kind : layers_)
    price.add(parts_.price(adapters_forward(model_, kind.layer, all)), kind.count);
  return price;
}

bool StepPricer::add_tokens(std::int64_t tokens, bool decodes) {
  const bool known = (decodes ? decode_tokens_ : mixed_tokens_).add(tokens, 1, terms_);
  const bool shares = std::any_of(layers_.begin(), layers_.end(),
                                  [this](const LayerKind& kind) { return shared_out(kind.layer); });
  if (!shares) return known;
  const std::int64_t tp = plan_.parallel.tp;
  const std::int64_t rows = (tokens + tp - 1) / tp;
  return (decodes ? decode_shares_ : mixed_shares_).add(rows, 1, terms_) && known;
}

/// Experts that data parallel ranks share do not wait for the rank with the most tokens: they have
/// those of all.
bool StepPricer::move_experts(std::int64_t tokens, std::int64_t mean) {
  if (mean == 0 || mean == tokens || plan_.parallel.ep == 1 || !model_.has_moe()) return true;
  const bool known = experts_.add(mean, 1, terms_);
  return experts_.add(tokens, -1, terms_) && known;
}

ColumnTable& StepPricer::decodes(std::int64_t queries) {
  const auto known = decodes_.find(queries);
  if (known != decodes_.end()) return known->second;
  return decodes_
      .try_emplace(queries, std::array{longest_axis(), mean_axis()}, sequence_steps(),
                   [this, queries](std::int64_t sequences, const ColumnTable::Point& at) {
                     return price_decodes(sequences, queries, at);
                   })
      .first->second;
}

bool StepPricer::add_decodes(const BatchShape& shape) {
  if (shape.sequences == 0) return true;
  const auto longest = static_cast<double>(shape.longest + 1);
  const double mean = static_cast<double>(shape.context) / static_cast<double>(shape.sequences) + 1;
  return decodes(shape.queries).add(shape.sequences, {longest, mean / longest}, 1, terms_);
}

bool StepPricer::add_chunk(const Chunk& chunk) {
  const bool known = chunks_.add(chunk.tokens, {static_cast<double>(chunk.context), 0}, 1, terms_);
  return (!is_latent() || expansions_.add(chunk.context + chunk.tokens, 1, terms_)) && known;
}

/// Kernels of adapters pass over tokens that are computed for nothing.
bool StepPricer::add_adapters(std::int64_t adapters, std::int64_t tokens) {
  if (adapters == 0 || !plan_.lora) return true;
  const auto evaluate = [this, adapters](std::int64_t rows) {
    return price_adapters(adapters, rows);
  };
  return adapters_.try_emplace(adapters, evaluate).first->second.add(tokens, 1, terms_);
}

IterationPrice StepPricer::price(const BatchShape& shape) {
  const std::int64_t tokens = shape.tokens();
  if (tokens == 0) return {};
  terms_.clear();
  bool known = add_tokens(tokens + shape.padding, shape.chunks.empty());
  known = move_experts(tokens + shape.padding, shape.mean_tokens) && known;
  known = add_adapters(shape.adapters, tokens) && known;
  known = add_decodes(shape) && known;
  std::int64_t sampled = shape.sequences * shape.queries;
  for (const Chunk& chunk : shape.chunks) {
    sampled += chunk.samples ? 1 : 0;
    known = add_chunk(chunk) && known;
  }
  if (sampled > 0) known = head_.add(sampled, 1, terms_) && known;
  ++asked_;
  if (!known) ++missed_;
  IterationPrice price = clock_.price(terms_);
  price.energy *= plan_.parallel.tp;
  return price;
}

Program StepPricer::program(const BatchShape& shape) const {
  return build_inference(model_, with_batch(plan_, shape));
}

std::size_t StepPricer::entries() const {
  std::size_t more = 0;
  for (const auto& [queries, table] : decodes_) more += table.entries();
  for (const auto& [adapters, table] : adapters_) more += table.entries();
  return more + decode_tokens_.entries() + mixed_tokens_.entries() + decode_shares_.entries() +
         mixed_shares_.entries() + experts_.entries() + head_.entries() + chunks_.entries() +
         expansions_.entries();
}

}  // namespace orrery
