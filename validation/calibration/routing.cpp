// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/routing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/units/hash.h"
#include "workloads/base/real.h"

namespace orrery {
namespace {

constexpr int kRoutings = 16;

using Loads = std::vector<std::int64_t>;  ///< token copies of each expert

/// Adds what the experts of one rank ask for, divided by the number of routings.
void add(ExpertLoad& load, const Loads& rank, int routings) {
  for (const std::int64_t rows : rank) {
    if (rows == 0) continue;
    load.active += 1.0 / routings;
    load.rows += real(rows) / routings;
    for (std::size_t i = 0; i < load.blocks.size(); ++i) {
      const std::int64_t height = ExpertLoad::kHeights[i];
      load.blocks[i] += real((rows + height - 1) / height) / routings;
    }
  }
}

std::size_t experts_of_rank(const OperatorRow& row) {
  return static_cast<std::size_t>(std::max<std::int64_t>(1, row.experts / row.moe_ep));
}

/// Token t gives its copy i to expert t + i experts / top_k; few tokens stride over the experts.
Loads balanced_rank(const OperatorRow& row) {
  const std::int64_t stride = (row.experts + row.top_k - 1) / row.top_k;
  Loads loads(static_cast<std::size_t>(row.experts));
  for (std::int64_t token = 0; token < row.tokens; ++token) {
    const std::int64_t first = row.tokens >= stride ? token : token * stride / row.tokens;
    for (std::int64_t copy = 0; copy < row.top_k; ++copy)
      ++loads[static_cast<std::size_t>((first + copy * stride) % row.experts)];
  }
  loads.resize(experts_of_rank(row));
  return loads;
}

/// Raises the smallest loads by `copies` in all, one at a time, none above `most`.
void raise_smallest(Loads& rank, std::int64_t copies, std::int64_t most) {
  std::sort(rank.begin(), rank.end());
  std::size_t level = 1;  // so many are equally small
  while (copies > 0 && rank.front() < most) {
    while (level < rank.size() && rank[level] == rank.front()) ++level;
    const std::int64_t next = level < rank.size() ? std::min(rank[level], most) : most;
    const auto count = static_cast<std::int64_t>(level);
    const std::int64_t each = std::min(next - rank.front(), copies / count);
    for (std::size_t i = 0; i < level; ++i) rank[i] += each;
    copies -= each * count;
    if (each > 0) continue;
    for (std::int64_t i = 0; i < copies; ++i) ++rank[static_cast<std::size_t>(i)];
    return;
  }
}

/// Deals `copies` out to the ranks in turn, to the smallest expert of each.
void raise_in_turn(std::vector<Loads>& ranks, std::int64_t copies, std::int64_t most) {
  std::vector<std::int64_t> room, more(ranks.size());
  room.reserve(ranks.size());
  for (const Loads& rank : ranks) {
    std::int64_t left = 0;
    for (const std::int64_t load : rank) left += most - load;
    room.push_back(left);
  }
  while (copies > 0) {
    std::int64_t open = 0, smallest = copies;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (more[i] == room[i]) continue;
      ++open;
      smallest = std::min(smallest, room[i] - more[i]);
    }
    if (open == 0) break;
    const std::int64_t each = std::max<std::int64_t>(1, std::min(smallest, copies / open));
    for (std::size_t i = 0; i < ranks.size() && copies > 0; ++i) {
      if (more[i] == room[i]) continue;
      more[i] += each;
      copies -= each;
    }
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) raise_smallest(ranks[i], more[i], most);
}

void negate(std::vector<Loads>& ranks) {
  for (Loads& rank : ranks)
    for (std::int64_t& load : rank) load = -load;
}

std::vector<Loads> power_law_ranks(const OperatorRow& row, double exponent, std::uint64_t& state) {
  const std::int64_t copies = row.tokens * row.top_k;
  const bool many = copies > row.experts;
  const double power = 1 - exponent;
  const double low = std::pow(many ? 1.0 : 0.01, power);
  const double high = std::pow(many ? 0.8 * real(row.tokens) : 2.0, power);
  std::vector<double> drawn(static_cast<std::size_t>(row.experts));
  double sum = 0;
  for (double& load : drawn) {
    load = std::pow(low + next_uniform(state) * (high - low), 1 / power);
    sum += load;
  }
  const std::size_t local = experts_of_rank(row);
  std::vector<Loads> ranks(drawn.size() / local, Loads(local));
  std::int64_t excess = 0, total = 0;
  for (std::size_t i = 0; i < ranks.size() * local; ++i) {
    const std::int64_t load = std::llrint(drawn[i] * real(copies) / sum);
    ranks[i / local][i % local] = std::min(load, row.tokens);
    excess += std::max<std::int64_t>(0, load - row.tokens);
    total += load;
  }
  raise_in_turn(ranks, excess, row.tokens);
  if (total < copies) {
    raise_in_turn(ranks, copies - total, row.tokens);
  } else if (total > copies) {
    negate(ranks);
    raise_in_turn(ranks, total - copies, 0);  // lowers the largest
    negate(ranks);
  }
  return ranks;
}

std::int64_t sum_of(const Loads& loads) {
  std::int64_t sum = 0;
  for (const std::int64_t load : loads) sum += load;
  return sum;
}

ExpertLoad routed(const OperatorRow& row) {
  static const std::string prefix = "power_law_";
  ExpertLoad mean;
  mean.experts = real(static_cast<std::int64_t>(experts_of_rank(row)));
  mean.expected = real(row.tokens * row.top_k) / real(row.experts);
  if (!row.distribution.starts_with(prefix)) {
    add(mean, balanced_rank(row), 1);
  } else {
    const double exponent = std::stod(row.distribution.substr(prefix.size()));
    std::uint64_t state = stable_hash(row.distribution);
    for (int routing = 0; routing < kRoutings; ++routing) {
      const std::vector<Loads> ranks = power_law_ranks(row, exponent, state);
      add(mean,
          *std::max_element(ranks.begin(), ranks.end(),
                            [](const Loads& a, const Loads& b) { return sum_of(a) < sum_of(b); }),
          kRoutings);
    }
  }
  return mean.active > 0 ? mean : even_load(1, 1, mean.experts);
}

}  // namespace

ExpertLoad heaviest_rank(const OperatorRow& row) {
  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  static std::map<Key, ExpertLoad> known;  // rows of a table share few routings
  const Key key{row.distribution, row.tokens, row.top_k, row.experts, row.moe_ep};
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const ExpertLoad load = routed(row);
  known.emplace(key, load);
  return load;
}

}  // namespace orrery
