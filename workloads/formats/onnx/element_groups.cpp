// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "workloads/formats/onnx/passes.h"

namespace orrery::onnx {
namespace {

constexpr std::size_t kMostVisited =
    512;  // groups that are looked at for one that waits for itself

struct Group {
  std::vector<std::size_t> members;  ///< kernels, ascending
  std::int64_t elements = 0;
  std::int64_t width = 0;  ///< elements of the rows that it sums over; 0: none
  bool fuses = false;
  bool moves = false;  ///< whether slices or concatenations are among them
};

class ElementGroups {
 public:
  explicit ElementGroups(LoweredModel& model)
      : model_(model), users_(model), group_of_(model.kernels.size()) {
    std::iota(group_of_.begin(), group_of_.end(), std::size_t{0});
    groups_.reserve(model.kernels.size());
    for (std::size_t i = 0; i < model.kernels.size(); ++i) {
      const Lowered& kernel = model.kernels[i];
      const bool fuses = kernel.fusing != Fusing::kAlone, moves = kernel.fusing == Fusing::kMoves;
      groups_.push_back({{i}, kernel.elements, kernel.width, fuses, moves});
    }
  }

  void run() {
    for (std::size_t i = 0; i < group_of_.size(); ++i) {
      if (!groups_[i].fuses) continue;
      for (const ValueUse& use : model_.kernels[i].reads) {
        const std::size_t maker = users_.maker[use.value];
        if (maker == kNobody) continue;
        const std::size_t earlier = group_of_[maker], later = group_of_[i];
        if (earlier != later && fit(groups_[earlier], groups_[later]) && !apart(earlier, later))
          merge(earlier, later);
      }
    }
    model_.kernels = in_order();
  }

 private:
  /// Whether two groups go over the same elements, or one over the rows of the other.
  static bool fit(const Group& a, const Group& b) {
    if (!a.fuses || !b.fuses) return false;
    if (a.width > 0 && b.width > 0 && a.width != b.width) return false;
    const std::int64_t width = std::max(a.width, b.width);
    const std::int64_t large = std::max(a.elements, b.elements);
    const std::int64_t small = std::min(a.elements, b.elements);
    if (large == small) return true;
    if (width > 0 && large == small * width) return true;
    return (a.moves || b.moves) && width == 0 && large == 2 * small;  // halves that are turned
  }

  /// Whether the later group waits for one that waits for the earlier one.
  bool apart(std::size_t earlier, std::size_t later) const {
    const std::size_t first = groups_[earlier].members.front();
    std::vector<std::size_t> open = {later};
    std::set<std::size_t> seen = {later};
    while (!open.empty()) {
      const std::size_t group = open.back();
      open.pop_back();
      for (const std::size_t member : groups_[group].members) {
        for (const ValueUse& use : model_.kernels[member].reads) {
          if (users_.maker[use.value] == kNobody) continue;
          const std::size_t before = group_of_[users_.maker[use.value]];
          if (before == earlier && group != later) return true;
          if (before == earlier || groups_[before].members.back() < first ||
              !seen.insert(before).second)
            continue;
          if (seen.size() > kMostVisited) return true;
          open.push_back(before);
        }
      }
    }
    return false;
  }

  void merge(std::size_t earlier, std::size_t later) {
    Group& into = groups_[earlier];
    Group& from = groups_[later];
    for (const std::size_t member : from.members) group_of_[member] = earlier;
    const auto middle =
        into.members.insert(into.members.end(), from.members.begin(), from.members.end());
    std::inplace_merge(into.members.begin(), middle, into.members.end());
    into.elements = std::max(into.elements, from.elements);
    into.width = std::max(into.width, from.width);
    into.moves = into.moves || from.moves;
    from = {};
  }

  /// Groups so that each comes after what it waits for, the one that began first before others.
  std::vector<Lowered> in_order() {
    std::vector<std::set<std::size_t>> waits(groups_.size());
    std::vector<std::vector<std::size_t>> next(groups_.size());
    for (std::size_t i = 0; i < group_of_.size(); ++i) {
      for (const ValueUse& use : model_.kernels[i].reads) {
        if (users_.maker[use.value] == kNobody) continue;
        const std::size_t before = group_of_[users_.maker[use.value]];
        if (before != group_of_[i] && waits[group_of_[i]].insert(before).second)
          next[before].push_back(group_of_[i]);
      }
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    std::vector<std::size_t> left(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      left[g] = waits[g].size();
      if (!groups_[g].members.empty() && left[g] == 0) ready.push(g);
    }
    std::vector<Lowered> kernels;
    kernels.reserve(groups_.size());
    while (!ready.empty()) {
      const std::size_t group = ready.top();
      ready.pop();
      kernels.push_back(joined(group));
      for (const std::size_t later : next[group])
        if (--left[later] == 0) ready.push(later);
    }
    return kernels;
  }

  Lowered joined(std::size_t g) {
    const Group& group = groups_[g];
    if (group.members.size() == 1) return std::move(model_.kernels[group.members.front()]);
    const auto larger = [&](std::size_t a, std::size_t b) {
      return model_.kernels[a].elements < model_.kernels[b].elements;
    };
    const std::size_t main = *std::max_element(group.members.begin(), group.members.end(), larger);
    Lowered all;
    all.kernel.m = model_.kernels[main].kernel.m;
    all.kernel.n = model_.kernels[main].kernel.n;
    all.kernel.precision = model_.kernels[main].kernel.precision;
    all.kernel.kind = group.width > 0 ? KernelClass::kNormalization : KernelClass::kElementwise;
    all.fusing = group.width > 0 ? Fusing::kRows : Fusing::kElements;
    all.elements = group.elements;
    all.width = group.width;
    all.op = "Fused";
    all.kernel.name = fmt::format("{} .. {}", model_.kernels[group.members.front()].kernel.name,
                                  model_.kernels[group.members.back()].kernel.name);
    std::set<ValueId> read;
    for (const std::size_t member : group.members) {
      Lowered& one = model_.kernels[member];
      all.kernel.vector_flops += one.kernel.vector_flops;
      all.kernel.exponentials += one.kernel.exponentials;
      for (const ValueUse& use : one.reads) {
        const bool inside =
            users_.maker[use.value] != kNobody && group_of_[users_.maker[use.value]] == g;
        if (!inside && read.insert(use.value).second) all.reads.push_back(use);
      }
      for (const ValueUse& use : one.writes)
        if (leaves(use.value, g)) all.writes.push_back(use);
    }
    return all;
  }

  bool leaves(ValueId value, std::size_t group) const {
    const std::vector<std::size_t>& readers = users_.readers[value];
    return users_.kept[value] ||
           std::any_of(readers.begin(), readers.end(),
                       [&](std::size_t reader) { return group_of_[reader] != group; });
  }

  LoweredModel& model_;
  const Users users_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;
};

}  // namespace

void group_elements(LoweredModel& model) { ElementGroups(model).run(); }

}  // namespace orrery::onnx
