// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/two_batch_pricer.h"

#include <algorithm>

#include "workloads/layers/layers.h"
#include "workloads/plan/stages.h"
#include "workloads/software/engine_switches.h"
#include "workloads/steps/inference/two_batches.h"

namespace orrery {
namespace {

bool is_exchange(const Step& step) {
  return step.collective() != nullptr && step.collective()->scope == Scope::kExpert;
}

/// Steps of half a layer before attention, which has none of its own without parts.
std::size_t steps_before_attention(const LlmConfig& model, const LayerConfig& layer,
                                   RankWork work) {
  const StepList without = attention_half_forward(model, layer, work);
  work.batch.parts->push_back({Phase::kDecode, work.tokens(), 1, 1, {}, true});
  const StepList with = attention_half_forward(model, layer, work);
  std::size_t same = 0;
  while (same < without.steps().size() && without.steps()[same].name() == with.steps()[same].name())
    ++same;
  return same;
}

/// SMs that DeepGEMM's products of prompts leave to exchanges.
std::int64_t units_left(const PartPricer& parts, const InferenceConfig& plan) {
  const auto& exchange = parts.machine().machine->system().expert_exchange;
  const bool leaves = plan.two_batch_overlap && plan.kernels.experts == ExpertKernels::kDeepGemm;
  return leaves && exchange ? exchange->units.value : 0;
}

StepPrice sum_of(const PriceTerms& terms) {
  StepPrice sum;
  for (const PriceTerm& term : terms) sum.add(*term.price, term.weight);
  return sum;
}

}  // namespace

TwoBatchPricer::TwoBatchPricer(const PartPricer& parts, const LlmConfig& model,
                               const InferenceConfig& plan)
    : parts_(parts),
      prompts_(parts.keeping_off(units_left(parts, plan))),
      model_(model),
      plan_(plan) {
  if (!plan.two_batch_overlap) return;
  for (const auto& stage : layer_ranges(model.layer_count(), plan.parallel)) {
    bool goes_on = false;
    const LayerRange range = stage.front();
    for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
      const LayerConfig& layer = model.layers[static_cast<std::size_t>(i)];
      if (layer.moe && !goes_on) runs_.push_back(0);
      goes_on = layer.moe;
      if (!layer.moe) continue;
      ++runs_.back();
      layers_.push_back(layer);
    }
  }
}

TwoBatchPricer::Batch TwoBatchPricer::batch_of(const MixedBatch& half, std::int64_t padding) {
  Batch batch;
  for (const PrefillChunk& chunk : half.chunks)
    batch.chunks.insert(batch.chunks.end(), static_cast<std::size_t>(chunk.count),
                        {chunk.tokens, chunk.context, chunk.samples});
  batch.shape.sequences = half.decoding();
  batch.shape.queries = half.queries;
  for (const DecodeGroup& group : half.decodes) {
    batch.shape.context += group.context * group.count;
    batch.shape.longest = std::max(batch.shape.longest, group.context);
  }
  batch.tokens = batch.of_experts = half.tokens() + padding;
  batch.decodes = half.chunks.empty();
  return batch;
}

/// The kernels of a segment of a layer, or its exchange.
StepList TwoBatchPricer::steps(Segment segment, const LayerConfig& layer, bool decodes,
                               std::int64_t tokens) const {
  InferenceConfig one = plan_;
  one.phase = Phase::kDecode;
  one.micro_batch = tokens;
  RankWork work = rank_work(model_, one);
  work.batch.phase = decodes ? Phase::kDecode : Phase::kMixed;
  work.batch.parts.emplace();
  work.takes_turns = true;
  work.turns_by_stages = plan_.kernels.on(kDecodesByStages);
  StepList all = attention_half_forward(model_, layer, work);
  all.append(feed_half_forward(model_, layer, work));
  const std::size_t projections = steps_before_attention(model_, layer, work);
  StepList wanted;
  Segment at = Segment::kProject;
  std::size_t dispatch = StepList::kStart;
  for (std::size_t i = 0; i < all.steps().size(); ++i) {
    const Step& step = all.steps()[i];
    const bool needs_dispatch = std::ranges::find(step.after, dispatch) != step.after.end();
    if (is_exchange(step)) {
      const bool sent = at == Segment::kRoute || at == Segment::kSend;
      at = sent ? Segment::kDispatch : Segment::kCombine;
      if (at == Segment::kDispatch) dispatch = i;
    } else if (at == Segment::kProject && i >= projections) {
      at = Segment::kRoute;
    } else if (at == Segment::kRoute && i > projections && step.begins_turn) {
      at = Segment::kSend;
    } else if (at == Segment::kDispatch || at == Segment::kShared) {
      at = needs_dispatch ? Segment::kExperts : Segment::kShared;
    } else if (at == Segment::kCombine) {
      at = Segment::kAddUp;
    }
    if (at == segment) wanted.then(step.work);
  }
  return wanted;
}

StepPrice TwoBatchPricer::evaluate(Segment segment, bool decodes, std::int64_t tokens,
                                   const DeviceLoad& taken) const {
  StepPrice mean;
  for (const auto& [layer, count] : alike_layers(layers_, same_layer))
    mean.add(parts_of(decodes).price(steps(segment, layer, decodes, tokens), taken),
             count / static_cast<double>(layers_.size()));
  return mean;
}

StepPrice TwoBatchPricer::segment(const Batch& batch, Segment segment, const DeviceLoad& taken) {
  const bool decodes = batch.decodes;
  const auto [table, added] = tables_.try_emplace(
      {segment, decodes, taken}, [this, segment, decodes, taken](std::int64_t tokens) {
        return evaluate(segment, decodes, tokens, taken);
      });
  PriceTerms terms;
  const bool shared = segment == Segment::kExperts;
  known_ = table->second.add(shared ? batch.of_experts : batch.tokens, 1, terms) && known_;
  return sum_of(terms);
}

StepPrice TwoBatchPricer::attention(const Batch& batch, const DeviceLoad& taken) {
  AttentionPricer& tables =
      attention_.try_emplace({taken, batch.decodes}, parts_of(batch.decodes), model_, plan_, taken)
          .first->second;
  BatchShape shape = batch.shape;
  shape.chunks = batch.chunks;
  PriceTerms terms;
  known_ = tables.add(shape, 1 / static_cast<double>(model_.layer_count()), terms) && known_;
  return sum_of(terms);
}

DeviceLoad TwoBatchPricer::load(Segment segment, const Batch& batch) {
  const auto [entry, added] = loads_.try_emplace({segment, batch.decodes, batch.tokens});
  if (added) {
    const StepList exchange = steps(segment, layers_.front(), batch.decodes, batch.tokens);
    entry->second = parts_.load(*exchange.steps().front().collective());
  }
  return entry->second;
}

/// Loads that are alike are asked for once.
template <class Price>
TwoBatchPricer::Prices TwoBatchPricer::prices(const Loads& loads, Price price) {
  Prices all;
  all.alone = price(DeviceLoad());
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const auto same = static_cast<std::size_t>(
        std::find(loads.begin(), loads.begin() + static_cast<std::ptrdiff_t>(i), loads.at(i)) -
        loads.begin());
    all.beside.at(i) = loads.at(i).none() ? all.alone
                       : same < i         ? all.beside.at(same)
                                          : price(loads.at(i));
  }
  return all;
}

TwoBatchPricer::Layer TwoBatchPricer::layer(const Batch& batch, const Loads& loads) {
  const auto kernels = [&](Segment which) {
    return prices(loads, [&](const DeviceLoad& taken) { return segment(batch, which, taken); });
  };
  Layer all;
  all.project = kernels(Segment::kProject);
  all.route = kernels(Segment::kRoute);
  all.send = kernels(Segment::kSend);
  all.attend = prices(loads, [&](const DeviceLoad& taken) { return attention(batch, taken); });
  all.shared = kernels(Segment::kShared);
  all.experts = kernels(Segment::kExperts);
  all.add_up = kernels(Segment::kAddUp);
  all.dispatch = segment(batch, Segment::kDispatch);
  all.combine = segment(batch, Segment::kCombine);
  return all;
}

TurnWork TwoBatchPricer::Prices::at(std::size_t point) const {
  TurnWork work{alone.at.at(point).time, {}};
  for (std::size_t i = 0; i < beside.size(); ++i)
    work.beside.at(i) = std::max(work.alone, beside.at(i).at.at(point).time);
  return work;
}

TurnLayer TwoBatchPricer::Layer::at(std::size_t point) const {
  return {project.at(point), attend.at(point),           route.at(point),
          send.at(point),    shared.at(point),           experts.at(point),
          add_up.at(point),  dispatch.at.at(point).time, combine.at.at(point).time};
}

StepPrice TwoBatchPricer::price(const MixedBatch& batch, std::int64_t padding,
                                std::int64_t mean_tokens) {
  known_ = true;
  const std::array<MixedBatch, 2> both = halves(batch);
  std::array<Batch, 2> batches = {batch_of(both[0], (padding + 1) / 2),
                                  batch_of(both[1], padding / 2)};
  if (mean_tokens > 0) {
    batches[0].of_experts = (mean_tokens + 1) / 2;
    batches[1].of_experts = std::max<std::int64_t>(mean_tokens / 2, 1);
  }
  const Loads loads = {load(Segment::kDispatch, batches[0]), load(Segment::kDispatch, batches[1]),
                       load(Segment::kCombine, batches[0]), load(Segment::kCombine, batches[1])};
  const std::array<Layer, 2> layers = {layer(batches[0], loads), layer(batches[1], loads)};
  StepPrice price;
  for (const Layer& of : layers) {
    for (const StepPrice* part :
         {&of.project.alone, &of.attend.alone, &of.route.alone, &of.send.alone, &of.shared.alone,
          &of.experts.alone, &of.add_up.alone, &of.dispatch, &of.combine})
      price.add(*part, static_cast<double>(layers_.size()));
  }
  const bool staged =
      plan_.kernels.on(kDecodesByStages) && batches[0].decodes && batches[1].decodes;
  for (std::size_t i = 0; i < ClockGrid::kPoints; ++i) {
    const std::array<TurnLayer, 2> turns = {layers[0].at(i), layers[1].at(i)};
    price.at.at(i).time = 0;
    for (const std::int64_t run : runs_)
      price.at.at(i).time += staged ? staged_time(turns, run) : alternating_time(turns, run);
  }
  return price;
}

}  // namespace orrery
