// SPDX-License-Identifier: Apache-2.0
#include "workloads/plan/expert_placement.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "workloads/base/real.h"

namespace orrery {
namespace {

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// In a unit in which the largest is 1, so that equal loads are whole numbers.
void scale_to_largest(std::vector<double>& loads) {
  const double largest = *std::ranges::max_element(loads);
  for (double& load : loads) load /= largest;
}

/// Loads of all replicas, those of an expert next to each other.
std::vector<double> replica_loads(const std::vector<double>& loads,
                                  const std::vector<std::int64_t>& replicas) {
  std::vector<double> all;
  for (std::size_t expert = 0; expert < loads.size(); ++expert)
    all.insert(all.end(), static_cast<std::size_t>(replicas[expert]),
               loads[expert] / real(replicas[expert]));
  return all;
}

/// The loads of each rank.
std::vector<std::vector<double>> placed(const std::vector<double>& loads, int ep,
                                        ExpertBalancing balancing) {
  std::vector<std::vector<double>> ranks(static_cast<std::size_t>(ep));
  if (balancing == ExpertBalancing::kEplb) {
    const std::vector<int> rank_of = eplb_packing(loads, ep);
    for (std::size_t i = 0; i < loads.size(); ++i)
      ranks[static_cast<std::size_t>(rank_of[i])].push_back(loads[i]);
    return ranks;
  }
  const std::size_t slots = loads.size() / ranks.size();
  for (std::size_t i = 0; i < loads.size(); ++i) ranks[i / slots].push_back(loads[i]);
  return ranks;
}

}  // namespace

double EqualSlots::active(double tokens) const {
  return count * (1 - std::pow(1 - chance, tokens));
}

double HeaviestRank::active(double tokens) const {
  double sum = 0;
  for (const EqualSlots& equal : slots) sum += equal.active(tokens);
  return sum;
}

std::vector<double> attainable_loads(std::vector<double> loads, std::int64_t picked) {
  scale_to_largest(loads);
  std::vector<double> falling = loads;
  std::ranges::sort(falling, std::greater<>());
  // With the i largest cut to a level L: picked * L = i L + what the others have.
  double others = sum_of(falling), level = 0;
  for (std::size_t cut = 0; cut < static_cast<std::size_t>(picked); ++cut) {
    level = others / real(picked - static_cast<std::int64_t>(cut));
    if (falling[cut] <= level) break;
    others -= falling[cut];
  }
  for (double& load : loads) load = std::min(load, level);
  return loads;
}

std::vector<std::int64_t> eplb_replicas(const std::vector<double>& loads, std::int64_t redundant) {
  std::vector<std::int64_t> replicas(loads.size(), 1);
  for (std::int64_t i = 0; i < redundant; ++i) {
    std::size_t most = 0;
    for (std::size_t expert = 1; expert < loads.size(); ++expert) {
      if (loads[expert] / real(replicas[expert]) > loads[most] / real(replicas[most]))
        most = expert;
    }
    ++replicas[most];
  }
  return replicas;
}

std::vector<int> eplb_packing(const std::vector<double>& loads, int ranks) {
  std::vector<std::size_t> falling(loads.size());
  std::iota(falling.begin(), falling.end(), std::size_t{0});
  std::ranges::stable_sort(falling,
                           [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });
  const std::size_t room = loads.size() / static_cast<std::size_t>(ranks);
  std::vector<double> load(static_cast<std::size_t>(ranks));
  std::vector<std::size_t> count(load.size());
  std::vector<int> rank_of(loads.size());
  for (const std::size_t next : falling) {
    std::size_t least = load.size();
    for (std::size_t rank = 0; rank < load.size(); ++rank) {
      if (count[rank] == room) continue;
      if (least == load.size() || load[rank] < load[least]) least = rank;
    }
    load[least] += loads[next];
    ++count[least];
    rank_of[next] = static_cast<int>(least);
  }
  return rank_of;
}

HeaviestRank heaviest_rank(const MoeConfig& moe, int ep, const std::vector<double>& loads,
                           std::int64_t redundant, ExpertBalancing balancing) {
  const std::vector<double> attainable = attainable_loads(loads, moe.experts_per_token);
  const double total = sum_of(attainable);
  const std::vector<double> slots = replica_loads(attainable, eplb_replicas(attainable, redundant));
  std::vector<std::vector<double>> ranks = placed(slots, ep, balancing);
  std::vector<double>& heaviest = *std::ranges::max_element(
      ranks, [](const std::vector<double>& a, const std::vector<double>& b) {
        return sum_of(a) < sum_of(b);
      });
  const double all = sum_of(heaviest);
  HeaviestRank result;
  result.skew = std::max(1.0, all * ep / total);
  result.placed = moe.experts + redundant;
  result.in_order = balancing == ExpertBalancing::kNone;
  std::ranges::sort(heaviest, std::greater<>());
  for (std::size_t i = 0, end = 0; i < heaviest.size(); i = end) {
    while (end < heaviest.size() && heaviest[end] == heaviest[i]) ++end;
    const auto count = static_cast<double>(end - i);
    const double chance = std::min(1.0, real(moe.experts_per_token) * heaviest[i] / total);
    result.slots.push_back({count, chance, count * heaviest[i] / all});
  }
  return result;
}

std::int64_t expert_slots(const MoeConfig& moe, int ep) {
  return (moe.experts + moe.redundant + ep - 1) / ep;
}

double expected_active_slots(const MoeConfig& moe, int ep, double tokens) {
  const double slots = real(expert_slots(moe, ep));
  // A token picks experts_per_token different slots of all, so it misses a given one with 1 - k /
  // slots; tokens are independent.
  const double miss = 1 - real(moe.experts_per_token) / (slots * ep);
  return slots * (1 - std::pow(miss, tokens * ep));
}

}  // namespace orrery
