// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/figures/statistics.h"

#include <cstddef>

#include "sim/graph/executions.h"
#include "workloads/layers/closed_forms.h"
#include "workloads/models/encoder_alone.h"

namespace orrery {
namespace {

void add_scaled(ClassStatistics& sum, const ClassStatistics& part, std::uint64_t times) {
  const auto factor = static_cast<double>(times);
  sum.count += part.count * times;
  sum.matrix_flops += part.matrix_flops * factor;
  sum.vector_flops += part.vector_flops * factor;
  sum.bytes += part.bytes * factor;
}

void add_scaled(ProgramStatistics& sum, const ProgramStatistics& part, std::uint64_t times) {
  for (const auto& [name, entry] : part.kernels) add_scaled(sum.kernels[name], entry, times);
  for (const auto& [name, entry] : part.transfers) add_scaled(sum.transfers[name], entry, times);
}

/// Products of a head that every token or only some need.
Flops head_flops(const LlmConfig& model, double tokens) {
  return Flops(2 * static_cast<double>(head_adds(model)) * tokens);
}

/// Forward FLOPs of one sequence from its first token to `length`, head included for every token.
Flops sequence_flops(const LlmConfig& model, std::int64_t length) {
  if (length == 0) return Flops();
  return model_flops_per_token(model, length, true) * static_cast<double>(length);
}

/// Forward FLOPs of a token in a module of multi-token prediction: projection, a layer like the
/// last, and the head.
Flops module_flops_per_token(const LlmConfig& model, std::int64_t sequence) {
  LlmConfig layer = model;
  layer.layers = {model.layers.back()};
  const auto hidden = static_cast<double>(model.hidden);
  return model_flops_per_token(layer, sequence, true) + Flops(2 * 2 * hidden * hidden);
}

/// The next tokens of sequences of these lengths, each of which sees all that its window leaves.
Flops decode_flops(const LlmConfig& model, const std::vector<std::int64_t>& contexts) {
  Flops flops;
  for (const std::int64_t context : contexts) flops += model_flops_per_token(model, context, false);
  return flops;
}

}  // namespace

Flops ProgramStatistics::matrix_flops() const {
  Flops sum;
  for (const auto& [name, entry] : kernels) sum += entry.matrix_flops;
  return sum;
}

ProgramStatistics role_statistics(const Program& program, std::size_t role) {
  const ExecutionCounts counts = count_executions(program, program.roles.at(role));
  ProgramStatistics statistics;
  each_run(counts.kernels, [&](std::size_t id, std::uint64_t runs) {
    const Kernel& kernel = program.kernels[id];
    add_scaled(statistics.kernels[to_string(kernel.kind)],
               {1, kernel.matrix_flops, kernel.vector_flops, kernel.read + kernel.written}, runs);
  });
  each_run(counts.transfers, [&](std::size_t id, std::uint64_t runs) {
    const Transfer& transfer = program.transfers[id];
    add_scaled(statistics.transfers[std::string(to_string(transfer.kind)) + " " + transfer.purpose],
               {1, Flops(), Flops(), transfer.bytes}, runs);
  });
  return statistics;
}

ProgramStatistics program_statistics(const Program& program) {
  ProgramStatistics statistics;
  for (std::size_t role = 0; role < program.roles.size(); ++role)
    add_scaled(statistics, role_statistics(program, role), program.roles[role].ranks.size());
  return statistics;
}

Flops model_flops(const LlmConfig& model, const TrainingConfig& config) {
  const auto tokens = static_cast<double>(config.global_batch * config.sequence);
  const LlmConfig trained = trained_model(model, config);
  const std::int64_t seen = config.sequence / config.packed.equal_samples(config.sequence);
  Flops forward = trained.has_encoder()
                      ? encoder_decoder_flops(trained, rank_work(config).batch.encoder, seen) *
                            static_cast<double>(config.global_batch)
                      : model_flops_per_token(trained, seen, true) * tokens;
  if (config.mtp > 0) forward += module_flops_per_token(trained, seen) * tokens * config.mtp;
  if (config.layers_only > 0) forward -= head_flops(model, tokens);
  if (!config.lora) return forward * 3;
  const bool trains_head = config.lora->saves(SavedModule::kLmHead);
  return forward * 2 + (trains_head ? head_flops(trained, tokens) : Flops());
}

Flops model_flops(const LlmConfig& model, const InferenceConfig& config) {
  const RankWork work = rank_work(config);
  Flops flops;
  for (const AttentionPart& part : work.batch.attention_parts()) {
    const auto sequences = static_cast<double>(part.sequences * config.parallel.dp);
    if (part.phase == Phase::kDecode) {
      // The one new token of each sequence sees every key that its window leaves.
      flops += part.contexts.empty() ? model_flops_per_token(model, part.context, false) * sequences
                                     : decode_flops(model, part.contexts) * config.parallel.dp;
      continue;
    }
    const std::int64_t without_logits = part.query - (part.samples ? 1 : 0);
    const Flops one = sequence_flops(model, part.context) -
                      sequence_flops(model, part.context - part.query) -
                      head_flops(model, static_cast<double>(without_logits));
    flops += one * sequences;
  }
  if (const TowerWork images = tower_work(model, config); images.images > 0)
    flops += Flops(tower_flops(*model.vision, images.image)) *
             static_cast<double>(images.images * config.parallel.dp);
  return flops;
}

}  // namespace orrery
