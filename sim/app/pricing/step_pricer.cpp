// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/step_pricer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/machine/clock.h"
#include "workloads/layers/attention/context_parallel.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/ops/kernels.h"
#include "workloads/plan/stages.h"
#include "workloads/steps/inference/two_batches.h"

namespace orrery {
namespace {

/// What stages send of each token, over the width of the model: the mean of all that send.
double mean_residual_copies(const LlmConfig& model, const ParallelConfig& parallel) {
  if (parallel.pp == 1) return 1;
  double copies = 0;
  const auto ranges = layer_ranges(model.layer_count(), parallel);
  for (std::size_t stage = 1; stage < ranges.size(); ++stage)
    copies += residual_copies(model, ranges[stage].front().first);
  return copies / (parallel.pp - 1);
}

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

double packages(const StepMachine& machine, const ParallelConfig& parallel) {
  return static_cast<double>(parallel.ranks()) / machine.accelerator().dies;
}

}  // namespace

StepPricer::StepPricer(const StepMachine& machine, LlmConfig model, const InferenceConfig& plan)
    : model_(std::move(model)),
      plan_(plan),
      parts_(machine, plan.parallel, least_touched(model_, plan)),
      clock_(slowest_of(machine.accelerator(), packages(machine, plan.parallel)), machine.power,
             plan.parallel.pp),
      layers_(alike_layers(model_.layers, same_layer)),
      attention_(parts_, model_, plan_),
      decode_tokens_([this](std::int64_t tokens) { return price_tokens(Phase::kDecode, tokens); }),
      mixed_tokens_([this](std::int64_t tokens) { return price_tokens(Phase::kMixed, tokens); }),
      decode_shares_([this](std::int64_t rows) { return price_shares(Phase::kDecode, rows); }),
      mixed_shares_([this](std::int64_t rows) { return price_shares(Phase::kMixed, rows); }),
      experts_([this](std::int64_t tokens) { return price_experts(tokens); }),
      head_([this](std::int64_t rows) { return price_head(rows); }),
      images_([this](std::int64_t prompts) { return price_images(prompts); }),
      turns_(parts_, model_, plan_),
      decode_rest_(
          [this](std::int64_t tokens) { return price_tokens(Phase::kDecode, tokens, true); }),
      mixed_rest_(
          [this](std::int64_t tokens) { return price_tokens(Phase::kMixed, tokens, true); }) {}

/// So many tokens, without any attention.
RankWork StepPricer::work(Phase phase, std::int64_t tokens) const {
  InferenceConfig one = plan_;
  one.phase = Phase::kDecode;
  one.micro_batch = tokens;
  one.adapters = 0;
  RankWork work = rank_work(model_, one);
  work.batch.phase = phase;
  work.batch.parts.emplace();
  return work;
}

StepPrice StepPricer::price_tokens(Phase phase, std::int64_t tokens, bool turns) const {
  const RankWork all = work(phase, tokens);
  StepPrice price = parts_.price(embedding_forward(model_, all));
  for (const AlikeLayers& kind : layers_) {
    if (turns && kind.layer.moe) continue;
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
                      mean_residual_copies(model_, plan_.parallel) *
                      activation_bytes(all.formats.precision));
  price.add(parts_.messages(message), 1);
  if (all.split.cp > 1) price.add(parts_.price(hidden_gather(model_, all)), 1);
  if (turns) {
    StepList merge;
    merge.then(merge_batches(model_, all));
    price.add(parts_.price(merge), static_cast<double>(turns_.runs()));
  }
  return price;
}

/// Experts whose tokens the tensor parallel ranks share out.
bool StepPricer::shared_out(const LayerConfig& layer) const {
  return layer.moe && plan_.parallel.tp > 1 && !rank_work(plan_).split.all_reduces_experts;
}

/// @param rows tokens of one of the ranks that share them out
StepPrice StepPricer::price_shares(Phase phase, std::int64_t rows) const {
  const RankWork all = work(phase, rows * plan_.parallel.tp);
  StepPrice price;
  for (const AlikeLayers& kind : layers_) {
    if (!shared_out(kind.layer)) continue;
    price.add(parts_.price(without_gather(feed_half_forward(model_, kind.layer, all))), kind.count);
  }
  return price;
}

StepPrice StepPricer::price_experts(std::int64_t tokens) const {
  const RankWork all = work(Phase::kMixed, tokens);
  StepPrice price;
  for (const AlikeLayers& kind : layers_) {
    if (!kind.layer.moe) continue;
    const StepList feed = feed_half_forward(model_, kind.layer, all);
    price.add(parts_.price(products_of_experts(feed)), kind.count);
  }
  return price;
}

StepPrice StepPricer::price_head(std::int64_t rows) const {
  RankWork all = work(Phase::kMixed, rows);
  all.batch.parts->push_back({Phase::kDecode, rows, 1, 1, {}, true});
  return parts_.price(head_forward(model_, all));
}

StepPrice StepPricer::price_images(std::int64_t prompts) const {
  InferenceConfig one = plan_;
  one.phase = Phase::kPrefill;
  one.micro_batch = prompts;
  const TowerWork work = tower_work(model_, one);
  StepPrice price = parts_.price(tower_forward(*model_.vision, work));
  price.add(parts_.price(deepstack_addition(work)),
            static_cast<double>(model_.vision->deepstack()));
  return price;
}

StepPrice StepPricer::price_adapters(std::int64_t adapters, std::int64_t tokens) const {
  RankWork all = work(Phase::kMixed, tokens);
  all.lora = lora_work(plan_.lora, adapters);
  StepPrice price;
  for (const AlikeLayers& kind : layers_)
    price.add(parts_.price(adapters_forward(model_, kind.layer, all)), kind.count);
  return price;
}

std::int64_t StepPricer::tokens_on_rank(const BatchShape& shape) const {
  std::int64_t tokens = shape.sequences * shape.queries;
  for (const Chunk& chunk : shape.chunks) tokens += context_share(chunk.tokens, plan_.parallel.cp);
  return tokens;
}

std::int64_t StepPricer::mean_on_rank(const BatchShape& shape) const {
  if (plan_.parallel.cp == 1 || shape.mean_tokens == 0) return shape.mean_tokens;
  const auto all = static_cast<double>(shape.tokens() + shape.padding);
  const auto own = static_cast<double>(tokens_on_rank(shape) + shape.padding);
  return std::max<std::int64_t>(1,
                                std::llround(static_cast<double>(shape.mean_tokens) * own / all));
}

bool StepPricer::add_tokens(std::int64_t tokens, bool decodes) {
  const bool known = (decodes ? decode_tokens_ : mixed_tokens_).add(tokens, 1, terms_);
  if (std::ranges::none_of(layers_, [this](const auto& kind) { return shared_out(kind.layer); }))
    return known;
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

bool StepPricer::add_turns(const BatchShape& shape) {
  RowTable& rest = shape.chunks.empty() ? decode_rest_ : mixed_rest_;
  bool known = rest.add(shape.tokens() + shape.padding, 1, terms_);
  const auto dense = std::ranges::count(model_.layers, false, &LayerConfig::moe);
  if (dense > 0) {
    const double share = static_cast<double>(dense) / static_cast<double>(model_.layer_count());
    known = attention_.add(shape, share, terms_) && known;
  }
  turned_ = turns_.price(with_batch(plan_, shape).batch, shape.padding, shape.mean_tokens);
  terms_.push_back({&turned_, 1});
  return turns_.known() && known;
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
  if (shape.tokens() == 0) return {};
  const std::int64_t tokens = tokens_on_rank(shape);
  terms_.clear();
  bool known = true;
  if (runs_two_batches(plan_, tokens, shape.chunks.empty())) {
    known = add_turns(shape);
  } else {
    known = add_tokens(tokens + shape.padding, shape.chunks.empty());
    known = move_experts(tokens + shape.padding, mean_on_rank(shape)) && known;
    known = attention_.add(shape, 1, terms_) && known;
  }
  known = add_adapters(shape.adapters, tokens) && known;
  const auto begun = std::ranges::count(shape.chunks, 0, &Chunk::context);
  if (plan_.images > 0 && begun > 0) known = images_.add(begun, 1, terms_) && known;
  std::int64_t sampled = shape.sequences * shape.queries;
  for (const Chunk& chunk : shape.chunks) sampled += chunk.samples ? 1 : 0;
  if (sampled > 0) known = head_.add(sampled, 1, terms_) && known;
  ++asked_;
  if (!known) ++missed_;
  IterationPrice price = clock_.price(terms_);
  price.energy *= plan_.parallel.tp * plan_.parallel.cp;
  return price;
}

Program StepPricer::program(const BatchShape& shape) const {
  return build_inference(model_, with_batch(plan_, shape));
}

IterationPrice SpeculativePricer::price(const BatchShape& shape) {
  IterationPrice all = target_.price(shape);
  if (draft_ == nullptr || shape.tokens() == 0) return all;
  const auto add = [&](const BatchShape& pass, std::int64_t times) {
    const IterationPrice price = draft_->price(pass);
    all.time += static_cast<Picoseconds>(times) * price.time;
    all.energy += static_cast<double>(times) * price.energy;
    all.kernels += static_cast<double>(times) * price.kernels;
  };
  add(shape, 1);
  BatchShape next{.sequences = shape.sequences, .longest = shape.longest, .context = shape.context};
  for (const Chunk& chunk : shape.chunks) {
    if (!chunk.samples) continue;
    ++next.sequences;
    next.context += chunk.context + chunk.tokens;
    next.longest = std::max(next.longest, chunk.context + chunk.tokens);
  }
  if (next.sequences > 0 && draft_tokens_ > 1) add(next, draft_tokens_ - 1);
  return all;
}

}  // namespace orrery
