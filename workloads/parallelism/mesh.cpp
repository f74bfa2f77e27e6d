// SPDX-License-Identifier: Apache-2.0
#include "workloads/parallelism/mesh.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace orrery {
namespace {

const ParallelConfig& consistent(const ParallelConfig& parallel) {
  require_consistent(parallel);
  return parallel;
}

/// Each group as runs of so many.
RankGroups runs_of(const RankGroups& groups, int length) {
  RankGroups runs;
  for (const std::vector<int>& group : groups)
    for (auto first = group.begin(); first != group.end(); first += length)
      runs.emplace_back(first, first + length);
  return runs;
}

/// Every `stride`-th rank of each group, from each of the first ones.
RankGroups strided(const RankGroups& groups, int stride) {
  RankGroups combs;
  for (const std::vector<int>& group : groups) {
    for (std::size_t first = 0; first < static_cast<std::size_t>(stride); ++first) {
      std::vector<int>& comb = combs.emplace_back();
      for (std::size_t i = first; i < group.size(); i += static_cast<std::size_t>(stride))
        comb.push_back(group[i]);
    }
  }
  return combs;
}

RankGrid megatron_grid(const ParallelConfig& p) {
  return RankGrid({{"tp", p.tp}, {"cp", p.cp}, {"dp", p.dp}, {"pp", p.pp}});
}

RankGrid megatron_experts(const ParallelConfig& p) {
  return RankGrid(
      {{"etp", p.etp}, {"ep", p.ep}, {"edp", p.tp * p.cp * p.dp / (p.ep * p.etp)}, {"pp", p.pp}});
}

}  // namespace

Mesh::Mesh(const ParallelConfig& parallel)
    : Mesh(parallel, megatron_grid(consistent(parallel)), megatron_experts(consistent(parallel))) {}

Mesh::Mesh(const ParallelConfig& parallel, RankGrid all, RankGrid experts)
    : parallel_(parallel), all_(std::move(all)), experts_(std::move(experts)) {
  bool same = all_.size("pp") == experts_.size("pp");
  for (int pp = 0; same && pp < all_.size("pp"); ++pp)
    same = all_.ranks_at({{"pp", pp}}) == experts_.ranks_at({{"pp", pp}});
  if (!same) throw std::invalid_argument("experts are on other ranks than the rest of a stage");
}

std::vector<int> Mesh::stage(int pp) const { return all_.ranks_at({{"pp", pp}}); }

Mesh::Groups Mesh::groups(const std::vector<std::string>& along, int pp) const {
  if (along == std::vector<std::string>{"dcp"}) return runs_of(groups({"tp"}, pp), parallel_.dcp);
  if (along == std::vector<std::string>{"cp a2a"})
    return runs_of(groups({"cp"}, pp), parallel_.cp_a2a);
  if (along == std::vector<std::string>{"cp p2p"})
    return strided(groups({"cp"}, pp), parallel_.cp_a2a);
  const auto has_all = [&](const RankGrid& grid) {
    return std::all_of(along.begin(), along.end(),
                       [&](const std::string& axis) { return grid.has(axis); });
  };
  return (has_all(all_) ? all_ : experts_).groups(along, {{"pp", pp}});
}

Mesh::Groups Mesh::pairs(int from_pp, int to_pp) const {
  const std::vector<int> from = stage(from_pp);
  const std::vector<int> to = stage(to_pp);
  Groups pairs;
  pairs.reserve(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) pairs.push_back({from[i], to[i]});
  return pairs;
}

}  // namespace orrery
