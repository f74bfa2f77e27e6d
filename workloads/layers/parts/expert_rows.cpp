// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/expert_rows.h"

#include <algorithm>
#include <cmath>

#include "workloads/base/real.h"
#include "workloads/software/engine_switches.h"
#include "workloads/software/training_software.h"

namespace orrery {

bool all_reduces(const LayerTask& task) { return task.work.split.all_reduces_experts; }

bool again_alone(const LayerTask& task, RecomputeModule part) {
  return task.work.recomputes(part) && !task.work.recomputes(RecomputeModule::kMoe);
}

bool gathers_tokens(const LayerTask& task) {
  return task.work.split.etp > 1 && task.work.split.ep == 1 && !all_reduces(task);
}
bool gathers_rows(const LayerTask& task) {
  return task.work.split.etp > 1 && task.work.split.ep > 1 && !all_reduces(task);
}

bool sends_tokens_once(const LayerTask& task) {
  return !task.work.trains() && task.work.batch.phase != Phase::kDecode && task.work.split.ep > 1 &&
         !all_reduces(task);
}

bool shared_is_routed(const LayerTask& task) {
  constexpr std::int64_t kExperts = 256;
  const MoeConfig& m = task.model.moe;
  const LayerConfig& layer = task.layer;
  return task.work.kernels.on(kSharesAsRouted) && all_reduces(task) && task.work.split.ep == 1 &&
         m.experts == kExperts && m.shared_intermediate == m.intermediate && !m.shared_gate &&
         task.precision(layer.shared) == task.precision(layer.feed) &&
         task.weights(layer.shared) == task.weights(layer.feed);
}

std::int64_t routed_tokens(const LayerTask& task) {
  return all_reduces(task) ? task.work.tokens() : task.work.split_tokens();
}

double skew_of(const LayerTask& task) {
  if (task.work.passes.expert_capacity > 0) return task.work.passes.expert_capacity;
  return task.work.split.heaviest ? task.work.split.heaviest->skew : 1;
}

double copies_of(const LayerTask& task) {
  const double all = real(task.model.moe.experts_per_token);
  if (!all_reduces(task)) return all;
  return all / task.work.split.ep * skew_of(task) + (shared_is_routed(task) ? 1 : 0);
}

std::int64_t split_width(const LayerTask& task) {
  return task.model.moe.intermediate / task.work.split.etp;
}

std::int64_t permuted_tokens(const LayerTask& task) {
  return routed_tokens(task) * (gathers_tokens(task) ? task.work.split.etp : 1);
}

std::int64_t sent_rows(const LayerTask& task) {
  return task.work.split_tokens() * task.model.moe.experts_per_token;
}

namespace {

/// Rows of the experts' products in balance.
std::int64_t mean_expert_rows(const LayerTask& task) {
  if (!all_reduces(task)) return sent_rows(task) * task.work.split.etp;
  const std::int64_t copies = task.work.tokens() * task.model.moe.experts_per_token;
  return (copies + task.work.split.ep - 1) / task.work.split.ep;
}

/// Rows that fill those of each expert up to a multiple, half of one on average.
double filling_rows(const LayerTask& task) {
  if (!task.work.trains()) return 0;
  return real((expert_software(task).row_multiple.value - 1) * local_experts(task)) / 2;
}

/// Probability that a token has at least one of its experts on a given rank (hypergeometric), each
/// rank holding equally many; node-limited routing takes its groups first.
double rank_reach(const MoeConfig& moe, int ep) {
  const bool limited = moe.groups > 0 && moe.top_groups < moe.groups;
  const double share = limited ? real(moe.top_groups) / real(moe.groups) : 1;
  const double open = real(moe.experts) * share;  // experts that a token can take
  const double here = real(moe.experts) / ep;
  // A rank inside a group is open with it, or not; one of several groups has its share of open
  // ones.
  const bool inside = limited && here <= real(moe.experts) / real(moe.groups);
  const double of_rank = inside ? here : here * share;
  double miss = 1;
  for (std::int64_t i = 0; i < moe.experts_per_token; ++i)
    miss *= std::max(0.0, open - of_rank - real(i)) / std::max(1.0, open - real(i));
  return (inside ? share : 1) * (1 - miss);
}

/// Rows of those that the router picks.
std::int64_t picked_rows(const LayerTask& task) {
  const std::int64_t mean = mean_expert_rows(task);
  return task.work.split.heaviest || task.work.trains()
             ? std::llround(real(mean) * skew_of(task) + filling_rows(task))
             : mean;
}

/// Tokens, for each expert parallel rank, that are routed to the experts of all.
double tokens_a_rank(const LayerTask& task) {
  const RankWork& w = task.work;
  return all_reduces(task) ? real(w.tokens()) / w.split.ep : real(w.split_tokens() * w.split.etp);
}

/// Slots of its experts that some token picks.
double active_slots(const LayerTask& task) {
  const RankWork& w = task.work;
  const double tokens = tokens_a_rank(task);
  return w.split.heaviest ? w.split.heaviest->active(tokens * w.split.ep)
                          : expected_active_slots(task.model.moe, w.split.ep, tokens);
}

void add_load(ExpertLoad& all, const ExpertLoad& load) {
  all.active += load.active;
  all.rows += load.rows;
  for (std::size_t i = 0; i < all.blocks.size(); ++i) all.blocks[i] += load.blocks[i];
}

/// Each expert gets its share of the rows; libraries choose tiles by the mean of all ranks.
ExpertLoad uneven_load(const LayerTask& task, const HeaviestRank& rank) {
  const double tokens = tokens_a_rank(task) * task.work.split.ep;
  ExpertLoad all;
  for (const EqualSlots& equal : rank.slots) {
    const double active = equal.active(tokens);
    all.experts += equal.count;
    if (active <= 0) continue;
    add_load(all, even_load(active, real(picked_rows(task)) * equal.share, equal.count));
  }
  all.expected = real(mean_expert_rows(task)) / all.experts;
  return all;
}

GroupedShape expert_shape(const LayerTask& task, std::int64_t n, std::int64_t k) {
  const RankWork& w = task.work;
  const double active = active_slots(task);
  const double rows = real(picked_rows(task));
  const double slots = real(expert_slots(task.model.moe, w.split.ep));
  GroupedShape shape{.experts = active,
                     .rows = rows,
                     .n = n,
                     .k = k,
                     .load = w.split.heaviest ? uneven_load(task, *w.split.heaviest)
                                              : even_load(active, rows, slots)};
  if (!shared_is_routed(task)) return shape;
  const double all = real(routed_tokens(task));
  add_load(shape.load, even_load(1, all, 1));
  shape.load.experts += 1;
  shape.load.expected = (shape.load.expected * slots + all) / (slots + 1);
  shape.experts += 1;
  shape.rows += all;
  return shape;
}

}  // namespace

double received_tokens(const LayerTask& task) {
  const double tokens = real(task.work.split_tokens()) * task.work.split.ep * task.work.split.etp;
  const double reach = rank_reach(task.model.moe, task.work.split.ep) * skew_of(task);
  return tokens * std::min(1.0, reach);
}

std::int64_t expert_rows(const LayerTask& task) {
  return picked_rows(task) + (shared_is_routed(task) ? routed_tokens(task) : 0);
}

std::int64_t local_experts(const LayerTask& task) {
  return expert_slots(task.model.moe, task.work.split.ep);
}

GroupedShape expert_up(const LayerTask& task) {
  const std::int64_t inputs = task.model.mlp.gated ? 2 : 1;
  return expert_shape(task, inputs * split_width(task), task.model.expert_columns());
}

GroupedShape expert_down(const LayerTask& task) {
  return expert_shape(task, task.model.expert_columns(), split_width(task));
}

const ExpertSoftware& expert_software(const LayerTask& task) { return task.work.software->experts; }

}  // namespace orrery
