// SPDX-License-Identifier: Apache-2.0
#include "workloads/plan/mesh.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

bool fixes(const std::vector<GridCoordinate>& fixed, const std::string& axis) {
  return std::ranges::find(fixed, axis, &GridCoordinate::axis) != fixed.end();
}

/// Every sum of an entry of `offsets` and a multiple of `stride` below `size` of them.
std::vector<int> spread(const std::vector<int>& offsets, int size, int stride) {
  std::vector<int> all;
  all.reserve(offsets.size() * static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i)
    for (const int offset : offsets) all.push_back(offset + i * stride);
  return all;
}

const ParallelConfig& consistent(const ParallelConfig& parallel) {
  require_consistent(parallel);
  return parallel;
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

/// The axes of `order`, those that `size_of` knows.
template <class SizeOf>
RankGrid grid_of(const std::string& order, SizeOf size_of) {
  std::vector<GridAxis> axes;
  std::istringstream rest(order);
  for (std::string axis; std::getline(rest, axis, '-');)
    if (std::optional<GridAxis> placed = size_of(axis)) axes.push_back(*std::move(placed));
  return RankGrid(std::move(axes));
}

using Axis = std::optional<GridAxis>;

/// Where every rank holds all experts, its stage shares them, whatever the order.
bool holds_all_experts(const ParallelConfig& p) { return p.ep * p.etp == 1; }

/// Every token passes tp, cp, dp and pp (Megatron-Core's RankGenerator leaves ep out).
RankGrid token_grid(const ParallelConfig& p) {
  const std::map<std::string, int> sizes = {{"tp", p.tp}, {"cp", p.cp}, {"dp", p.dp}, {"pp", p.pp}};
  return grid_of(p.order, [&](const std::string& axis) {
    const auto size = sizes.find(axis);
    return size == sizes.end() ? Axis() : Axis({axis, size->second});
  });
}

/// Experts lie on etp, ep, pp and the rest, which stands where dp does.
RankGrid expert_grid(const ParallelConfig& p) {
  if (holds_all_experts(p)) return token_grid(p);
  const int rest = p.tp * p.cp * p.dp / (p.ep * p.etp);
  const std::map<std::string, GridAxis> axes = {
      {"tp", {"etp", p.etp}}, {"ep", {"ep", p.ep}}, {"dp", {"edp", rest}}, {"pp", {"pp", p.pp}}};
  return grid_of(p.order, [&](const std::string& axis) {
    const auto placed = axes.find(axis);
    return placed == axes.end() ? Axis() : Axis(placed->second);
  });
}

bool same_stages(const RankGrid& all, const RankGrid& experts) {
  bool same = all.size("pp") == experts.size("pp");
  for (int pp = 0; same && pp < all.size("pp"); ++pp)
    same = all.ranks_at({{"pp", pp}}) == experts.ranks_at({{"pp", pp}});
  return same;
}

/// Megatron-Core asserts the same (parallel_state.py).
const ParallelConfig& with_experts_in_stages(const ParallelConfig& parallel) {
  if (parallel.order != kMegatronOrder && !same_stages(token_grid(parallel), expert_grid(parallel)))
    throw config::KeyError({"parallel.order", "parallel.ep", "parallel.etp"},
                           "in the order " + parallel.order +
                               " the experts of a pipeline stage would lie on ranks of others: "
                               "pp behind dp, or ep * etp = tp * cp");
  return parallel;
}

}  // namespace

RankGrid::RankGrid(std::vector<GridAxis> axes) {
  int stride = 1;
  for (GridAxis& axis : axes) {
    if (axis.size < 1 || has(axis.name))
      throw std::invalid_argument("axis '" + axis.name + "' has no ranks or is there twice");
    const int size = axis.size;
    axes_.push_back({std::move(axis), stride});
    stride *= size;
  }
}

int RankGrid::ranks() const {
  return axes_.empty() ? 1 : axes_.back().stride * axes_.back().axis.size;
}

bool RankGrid::has(std::string_view axis) const {
  return std::ranges::any_of(axes_, [&](const Placed& placed) { return placed.axis.name == axis; });
}

const RankGrid::Placed& RankGrid::at(std::string_view axis) const {
  const auto found =
      std::ranges::find_if(axes_, [&](const Placed& placed) { return placed.axis.name == axis; });
  if (found == axes_.end())
    throw std::invalid_argument("no axis '" + std::string(axis) + "' in this grid");
  return *found;
}

int RankGrid::coordinate(int rank, std::string_view axis) const {
  const Placed& placed = at(axis);
  return rank / placed.stride % placed.axis.size;
}

int RankGrid::size(std::string_view axis) const { return at(axis).axis.size; }

int RankGrid::first_at(const std::vector<GridCoordinate>& fixed) const {
  int rank = 0;
  for (const GridCoordinate& coordinate : fixed) rank += coordinate.at * at(coordinate.axis).stride;
  return rank;
}

std::vector<int> RankGrid::ranks_at(const std::vector<GridCoordinate>& fixed) const {
  std::vector<int> ranks = {first_at(fixed)};
  for (const Placed& placed : axes_)
    if (!fixes(fixed, placed.axis.name)) ranks = spread(ranks, placed.axis.size, placed.stride);
  return ranks;
}

RankGroups RankGrid::groups(const std::vector<std::string>& along,
                            const std::vector<GridCoordinate>& fixed) const {
  for (const std::string& axis : along) at(axis);
  std::vector<int> first = {first_at(fixed)}, members = {0};
  for (const Placed& placed : axes_) {
    const std::string& name = placed.axis.name;
    if (fixes(fixed, name)) continue;
    const bool is_along = std::ranges::find(along, name) != along.end();
    std::vector<int>& offsets = is_along ? members : first;
    offsets = spread(offsets, placed.axis.size, placed.stride);
  }
  RankGroups groups(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    groups[i].reserve(members.size());
    for (const int member : members) groups[i].push_back(first[i] + member);
  }
  return groups;
}

RankGroups runs_of(const RankGroups& groups, int length) {
  RankGroups runs;
  for (const std::vector<int>& group : groups)
    for (auto first = group.begin(); first != group.end(); first += length)
      runs.emplace_back(first, first + length);
  return runs;
}

Mesh::Mesh(const ParallelConfig& parallel)
    : Mesh(with_experts_in_stages(consistent(parallel)), token_grid(parallel),
           expert_grid(parallel)) {}

Mesh::Mesh(ParallelConfig parallel, RankGrid all, RankGrid experts)
    : parallel_(std::move(parallel)), all_(std::move(all)), experts_(std::move(experts)) {
  if (!same_stages(all_, experts_))
    throw std::invalid_argument("experts are on other ranks than the rest of a stage");
}

std::vector<int> Mesh::stage(int pp) const { return all_.ranks_at({{"pp", pp}}); }

Mesh::Groups Mesh::groups(const std::vector<std::string>& along, int pp) const {
  if (along == std::vector<std::string>{"dcp"}) return runs_of(groups({"tp"}, pp), parallel_.dcp);
  if (along == std::vector<std::string>{"cp a2a"})
    return runs_of(groups({"cp"}, pp), parallel_.cp_a2a);
  if (along == std::vector<std::string>{"cp p2p"})
    return strided(groups({"cp"}, pp), parallel_.cp_a2a);
  if (holds_all_experts(parallel_)) {
    if (along == std::vector<std::string>{"edp"}) return RankGroups{stage(pp)};
    if (along == std::vector<std::string>{"ep"} || along == std::vector<std::string>{"etp"})
      return runs_of(RankGroups{stage(pp)}, 1);
  }
  const auto has_all = [&](const RankGrid& grid) {
    return std::ranges::all_of(along, [&](const std::string& axis) { return grid.has(axis); });
  };
  return (has_all(all_) ? all_ : experts_).groups(along, {{"pp", pp}});
}

Mesh::Groups Mesh::across(const std::vector<int>& stages) const {
  Groups groups;
  for (const int pp : stages) {
    const std::vector<int> ranks = stage(pp);
    groups.resize(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) groups[i].push_back(ranks[i]);
  }
  return groups;
}

}  // namespace orrery
