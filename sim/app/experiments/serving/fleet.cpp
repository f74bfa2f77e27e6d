// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/fleet.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sim/app/experiments/engines/engine_site.h"
#include "sim/app/experiments/serving/adapters.h"
#include "sim/app/experiments/serving/transfer.h"
#include "workloads/base/require.h"
#include "workloads/ops/kernels.h"
#include "workloads/steps/figures/memory.h"

namespace orrery {
config::KeyError within(const config::KeyError& error, std::size_t group) {
  std::vector<std::string> paths;
  for (const std::string& path : error.paths()) paths.push_back(group_path(group, path));
  return {std::move(paths), error.message(), error.advice()};
}

namespace {

/// A context longer than any window, half of what fits.
double long_context(const LlmConfig& llm) {
  constexpr std::int64_t kLong = 1 << 22;
  return static_cast<double>(llm.positions > 0 ? llm.positions / 2 - 1 : kLong);
}

/// What a stage needs of a step.
MemoryUse use_of(const LlmConfig& llm, InferenceConfig step, const MixedBatch& batch,
                 std::size_t stage) {
  step.batch = batch;
  return inference_memory(llm, step)[stage];
}

/// The step of the draft model: only a module of the model has its experts, and adapters
/// change the model alone.
InferenceConfig draft_step(const ServingGroup& group) {
  InferenceConfig step = serving_step(group);
  step.lora.reset();
  step.two_batch_overlap = false;
  step.images = 0;
  if (group.speculative->method != SpeculativeMethod::kMtp) step.expert_routing.reset();
  return step;
}

/// Weights of the draft model, and what a token takes in its cache; all of it on one stage.
struct DraftMemory {
  Bytes weights, token;
};

DraftMemory draft_memory(const LlmConfig& target, const ServingGroup& group) {
  if (!group.speculative) return {};
  const std::optional<LlmConfig> draft = group.speculative->draft(target);
  if (!draft) return {};
  const InferenceConfig step = draft_step(group);
  const auto use = [&](const LlmConfig& llm, std::int64_t context) {
    return use_of(llm, step, {{}, {{context, 1}}}, 0);
  };
  DraftMemory memory;
  const MemoryUse one = use(*draft, 1000);
  memory.weights = one.weights;
  memory.token = (use(*draft, 2000).kv_cache - one.kv_cache) / 1000;
  if (group.speculative->shares_embeddings()) {
    LlmConfig twice = *draft;
    twice.layers.push_back(twice.layers.back());
    memory.weights = use(twice, 1000).weights - one.weights;
  }
  return memory;
}

/// Tokens of a block: what the engine says, or, where blocks hold states too, as many as make a
/// block of a layer as large as a layer's states (vLLM, platforms/interface.py,
/// _align_hybrid_block_size: 528 tokens of Qwen3.5-4B in bf16).
std::int64_t block_tokens_beside(const StateMemory& states, const EngineMemory& engine) {
  if (engine.state_tokens > 0 || states.token.base() == 0) return engine.block_tokens;
  const Bytes step = states.token * static_cast<double>(engine.block_tokens);
  const double steps = std::max(1.0, std::ceil(states.largest / step));
  return static_cast<std::int64_t>(steps) * engine.block_tokens;
}

/// Blocks, and what of them states take.
/// @param fixed of a sequence: windows and states
void divide_cache(const StateMemory& states, const EngineMemory& engine, Bytes token, Bytes fixed,
                  int shards, ServingMemory& memory) {
  if (const Bytes windows = fixed - states.sequence;
      memory.window_tokens > 0 && token.base() == 0 && windows.base() >= 1) {
    // No layer keeps all tokens: blocks hold the latest ones alone.
    token = windows / static_cast<double>(memory.window_tokens);
    fixed = states.sequence;
    memory.most_kept = memory.window_tokens + memory.window_chunk;
  }
  const bool in_blocks = states.sequence.base() > 0 && engine.states_in_blocks;
  const bool alone = states.sequence.base() > 0 && token.base() == 0;
  if (alone || in_blocks) fixed -= states.sequence;
  if (memory.window_tokens > 0 && token.base() > 0) {
    memory.window = in_blocks ? fixed : fixed - states.sequence;
    fixed -= memory.window;
  }
  memory.set_aside = fixed * static_cast<double>(engine.most_sampled);
  if (alone) {
    memory.block_tokens = ServingMemory::kNoTokens;
    memory.block = memory.states = states.sequence;
    return;
  }
  memory.block_tokens = block_tokens_beside(states, engine) * shards;
  memory.block = token * static_cast<double>(memory.block_tokens);
  if (states.sequence.base() == 0) return;
  memory.state_blocks = static_cast<std::int64_t>(std::ceil(states.sequence / memory.block));
  memory.state_tokens = engine.state_tokens > 0 ? engine.state_tokens : memory.block_tokens;
  if (in_blocks) memory.states = states.sequence;
}

/// The sampler's memory on the last stage: logits of max_num_seqs sequences, and the hidden states
/// of the largest iteration and of those sequences.
Bytes sampling_bytes(const LlmConfig& llm, const ServingGroup& group, const EngineMemory& engine) {
  const auto tokens = static_cast<double>(engine.most_tokens);
  const double rows = std::min(tokens, static_cast<double>(engine.most_sampled));
  return group.engine->overheads().sampled_element * (rows * static_cast<double>(llm.vocabulary)) +
         Bytes((tokens + rows) * static_cast<double>(llm.hidden) *
               activation_bytes(group.precision));
}

/// Sets activations, libraries, communicators and graphs of a rank.
void add_overheads(const Machine& machine, const LlmConfig& llm, const ServingGroup& group,
                   std::size_t stage, const MemoryUse& use, ServingMemory& memory) {
  const EngineOverheads own = group.engine->overheads();
  const EngineMemory engine = group.engine->memory();
  memory.working = use.working + use.activations + use.logits;
  if (own.sampled_element.base() > 0 && static_cast<int>(stage) + 1 == group.parallel.pp) {
    const Bytes sampling = sampling_bytes(llm, group, engine);
    memory.sampling = sampling > memory.working;
    memory.working = std::max(sampling, memory.working);
  }
  // Stages of a pipeline send messages, which switches do not reduce.
  const bool connected = group.parallel.tp > 1 && machine.system().scale_up.switch_reduction;
  memory.before = own.context + (connected ? own.connected : Bytes(0));
  memory.libraries = own.libraries;
  memory.graphs_in_share = own.graphs_in_share;
  if (connected) memory.communicators = own.communicators;
  if (const std::int64_t graphs = group.engine->captured_graphs(); graphs > 0)
    memory.graphs =
        own.graph_pool + own.graph_layer * (static_cast<double>(graphs * llm.layer_count()) /
                                            static_cast<double>(group.parallel.pp));
}

/// What the engine leaves to the cache of what it may use.
Bytes left_for_cache(const EngineMemory& engine, Bytes capacity, ServingMemory& memory) {
  using Of = EngineMemory::Of;
  const Bytes loaded = memory.weights + memory.libraries + memory.set_aside;
  const Bytes ran = memory.working + memory.communicators;
  if (engine.of == Of::kStatic) {
    memory.usable = (capacity - memory.before) * engine.share;
    return memory.usable - loaded;
  }
  if (engine.of == Of::kLeftOver) {
    memory.usable = capacity - memory.before;
    return (memory.usable - loaded - ran) * engine.share;
  }
  memory.usable = capacity * engine.share;
  return memory.usable - memory.weights - memory.overheads();
}

/// The model as its cache sees it.
LlmConfig cached_model(LlmConfig llm, const EngineMemory& engine) {
  if (!engine.whole_windows) return llm;
  for (LayerConfig& layer : llm.layers) layer.window = layer.chunk = 0;
  return llm;
}

ServingMemory stage_memory(const Machine& machine, const LlmConfig& llm, const ServingGroup& group,
                           std::size_t stage) {
  const EngineMemory engine = group.engine->memory();
  const InferenceConfig step = serving_step(group);
  // As few prompts as the model's positions allow.
  const std::int64_t longest =
      llm.positions > 0 ? std::min(llm.positions, engine.most_tokens) : engine.most_tokens;
  const std::int64_t prompts = (engine.most_tokens + longest - 1) / longest;
  const MixedBatch largest{{{longest, 0, prompts, true}}, {}};
  const MemoryUse use = use_of(llm, step, largest, stage);
  const LlmConfig cached = cached_model(llm, engine);
  const auto cache = [&](double context) {
    const DecodeGroup one{static_cast<std::int64_t>(context), 1};
    return use_of(cached, step, {{}, {one}}, stage).kv_cache;
  };
  const double length = long_context(llm);
  const Bytes token = (cache(2 * length) - cache(length)) / length;
  const Bytes fixed = cache(length) - token * (length + 1);
  ServingMemory memory;
  const DraftMemory draft = draft_memory(llm, group);
  memory.weights = use.weights + draft.weights;
  for (const LayerConfig& layer : cached.layers)
    memory.window_tokens = std::max(memory.window_tokens, layer.most_kept());
  if (engine.of == EngineMemory::Of::kDevice) memory.window_chunk = engine.most_tokens;
  divide_cache(state_memory(llm, step, static_cast<int>(stage)), engine, token + draft.token, fixed,
               group.parallel.cache_shards(), memory);
  add_overheads(machine, llm, group, stage, use, memory);
  memory.device = machine.usable_memory(0);
  const Bytes left = left_for_cache(engine, memory.device, memory);
  memory.blocks = engine.blocks;
  if (engine.blocks == 0 && memory.block.base() > 0)
    memory.blocks = static_cast<std::int64_t>(std::max(0.0, left / memory.block));
  return memory;
}

void require_group(const LlmConfig& llm, const ServingGroup& group) {
  require_supported(llm, serving_step(group));
  matrix_peak(group.system.accelerator, group.precision);
  if (!group.speculative) return;
  if (const auto draft = group.speculative->draft(llm))
    require_supported(*draft, draft_step(group));
}

/// Keys and values are kept in the format of activations, but where 8 bits are asked for.
Precision cache_precision(const ServingGroup& group) {
  if (group.kv_precision == CacheFormat::kFp8) return Precision::kFp8;
  return group.precision == Precision::kFp32 ? Precision::kFp32 : Precision::kBf16;
}

/// Blocks that a rank has for keys and values.
ServingMemory serving_memory(const Machine& machine, const LlmConfig& llm,
                             const ServingGroup& group) {
  ServingMemory least = stage_memory(machine, llm, group, 0);
  for (int stage = 1; stage < group.parallel.pp; ++stage) {
    const ServingMemory other = stage_memory(machine, llm, group, static_cast<std::size_t>(stage));
    if (other.blocks < least.blocks) least = other;
  }
  return least;
}

}  // namespace

InferenceConfig serving_step(const ServingGroup& group) {
  InferenceConfig step;
  step.parallel = group.parallel;
  step.phase = Phase::kMixed;
  step.mx_products = scales_blocks(group.system.accelerator);
  step.index_precision = index_precision(group.system.accelerator);
  use_kernels(*group.engine.object, step);
  step.batch = {{}, {{1, 1}}};
  step.images = group.images;
  step.image = group.image;
  step.two_batch_overlap = group.two_batch_overlap;
  if (group.expert_routing) step.expert_routing = group.expert_routing->with_file_read();
  step.lora = group.lora;
  step.precision = group.precision;
  if (element_bytes(group.precision) >= 2) step.widened_bits = group.widened_bits;
  step.kv_precision = cache_precision(group);
  return step;
}

double ServingMemory::requests(std::int64_t tokens) const {
  if (states_alone()) return static_cast<double>(blocks);
  if (most_kept > 0) tokens = std::min(tokens, most_kept);
  const auto length = static_cast<double>(tokens);
  double taken =
      static_cast<double>(state_blocks) + std::ceil(length / static_cast<double>(block_tokens));
  if (window_tokens > 0) {
    // vllm v1/kv_cache_interface.py, SlidingWindowSpec.max_memory_usage_bytes
    const auto kept = static_cast<double>(window_tokens + window_chunk);
    taken += std::min(length, kept) / static_cast<double>(window_tokens) * (window / block);
  }
  return static_cast<double>(blocks) / taken;
}

std::vector<ScaleRules> scale_rules(const std::vector<ServingGroup>& groups) {
  std::vector<ScaleRules> all;
  std::size_t first = 0;
  for (const ServingGroup& group : groups) {
    ScaleRules rules;
    rules.first = first;
    rules.least = rules.most = static_cast<std::size_t>(group.replicas);
    first += rules.most;
    if (group.autoscale) {
      rules.least = static_cast<std::size_t>(group.autoscale->min);
      rules.requests = group.autoscale->requests;
      rules.interval = group.autoscale->interval;
      rules.start = group.autoscale->start;
      rules.cool_down = group.autoscale->cool_down;
      rules.ramp = group.autoscale->ramp;
    }
    all.push_back(rules);
  }
  return all;
}

void require_groups(const LlmConfig& llm, const std::vector<ServingGroup>& groups) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    try {
      require_group(llm, groups[i]);
    } catch (const config::KeyError& error) {
      throw within(error, i);
    }
  }
}

ServingFleet::ServingFleet(std::vector<std::shared_ptr<const Machine>> machines, LlmConfig llm,
                           const std::vector<ServingGroup>& groups, const KernelChoice& choice)
    : machines_(std::move(machines)), llm_(std::move(llm)) {
  require_groups(llm_, groups);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const InferenceConfig step = serving_step(groups[i]);
    const EngineAllReduce rules = all_reduce_rules(*groups[i].engine.object, step);
    const StepMachine machine =
        step_machine(machines_[i], choice, true, rules, groups[i].algorithms);
    pricers_.push_back(std::make_unique<StepPricer>(machine, llm_, step));
    drafts_.emplace_back();
    speculative_.emplace_back();
    if (!groups[i].speculative) continue;
    const SpeculativeConfig& speculative = *groups[i].speculative;
    if (auto draft = speculative.draft(llm_))
      drafts_.back() =
          std::make_unique<StepPricer>(machine, std::move(*draft), draft_step(groups[i]));
    speculative_.back() = std::make_unique<SpeculativePricer>(
        *pricers_.back(), drafts_.back().get(), speculative.num_speculative_tokens);
  }
}

namespace {

/// Where states alone are kept, prefixes are not: vLLM turns that off for such models by itself.
KvRules kv_rules(const ServingGroup& group, const ServingMemory& memory,
                 std::int64_t draft_tokens) {
  const EngineMemory engine = group.engine->memory();
  KvRules rules{memory.block_tokens, memory.blocks, engine.prefix_caching && !memory.states_alone(),
                draft_tokens};
  if (rules.prefix_caching) rules.tiers = kv_tiers(group, memory);
  rules.state_blocks = memory.state_blocks;
  rules.state_tokens = memory.state_tokens;
  rules.states_apart = !engine.states_in_blocks;
  if (memory.window.base() >= 1) {  // less is rounding
    rules.window = memory.window_tokens;
    rules.window_blocks = memory.window / memory.block;
  }
  rules.most_kept = memory.most_kept;
  return rules;
}

}  // namespace

std::vector<ServingMemory> ServingFleet::memory(const std::vector<ServingGroup>& groups) const {
  std::vector<ServingMemory> all;
  for (std::size_t i = 0; i < groups.size(); ++i)
    all.push_back(serving_memory(*machines_[i], llm_, groups[i]));
  return all;
}

std::vector<Instance> ServingFleet::instances(const std::vector<ServingGroup>& groups,
                                              IterationPricer* pricer,
                                              const std::optional<HostCosts>& host,
                                              const std::vector<Slowness>& slowness) const {
  const std::vector<ServingMemory> memories = memory(groups);
  std::vector<Instance> instances;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Speculation speculation;
    IterationPricer* prices = pricers_[i].get();
    if (groups[i].speculative) {
      speculation = groups[i].speculative->speculation();
      prices = speculative_[i].get();
    }
    if (pricer != nullptr) prices = pricer;
    InstanceRules rules;
    rules.kv = kv_rules(groups[i], memories[i], speculation.draft_tokens());
    rules.adapters = adapter_rules(llm_, groups[i]);
    rules.ranks = groups[i].parallel.dp;
    rules.lanes = groups[i].parallel.pp;
    rules.role = groups[i].role;
    rules.speculation = speculation;
    rules.host = host;
    if (!slowness.empty()) rules.slowness = slowness[i];
    for (int replica = 0; replica < groups[i].replicas; ++replica)
      instances.emplace_back(*groups[i].engine.object, *prices, rules);
  }
  return instances;
}

}  // namespace orrery
