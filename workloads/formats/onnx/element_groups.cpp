// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/element_groups.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

namespace orrery::onnx {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);
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
  explicit ElementGroups(LoweredModel& model) : model_(model) {
    const std::size_t count = model.kernels.size();
    group_of_.resize(count);
    std::iota(group_of_.begin(), group_of_.end(), std::size_t{0});
    maker_.assign(model.values.size(), kNone);
    groups_.reserve(count);
    for (std::size_t i = 0; i < model.outputs.size(); ++i) kept_.insert(model.output(i));
    for (std::size_t i = 0; i < count; ++i) {
      const Lowered& kernel = model.kernels[i];
      groups_.push_back({{i},
                         kernel.elements,
                         kernel.width,
                         kernel.fusing != Fusing::kAlone,
                         kernel.fusing == Fusing::kMoves});
      for (const ValueUse& use : kernel.writes) maker_[use.value] = i;
    }
  }

  void run() {
    for (std::size_t i = 0; i < group_of_.size(); ++i) {
      if (!groups_[i].fuses) continue;
      for (const ValueUse& use : model_.kernels[i].reads) {
        const std::size_t maker = maker_[use.value];
        if (maker == kNone) continue;
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

  /// Groups whose results a group reads, one as often as it does.
  std::vector<std::size_t> read_by(std::size_t group) const {
    std::vector<std::size_t> before;
    for (const std::size_t member : groups_[group].members)
      for (const ValueUse& use : model_.kernels[member].reads)
        if (maker_[use.value] != kNone) before.push_back(group_of_[maker_[use.value]]);
    return before;
  }

  /// Whether the later group waits for one that waits for the earlier one.
  bool apart(std::size_t earlier, std::size_t later) const {
    const std::size_t first = groups_[earlier].members.front();
    std::vector<std::size_t> open = {later};
    std::set<std::size_t> seen = {later};
    while (!open.empty()) {
      const std::size_t group = open.back();
      open.pop_back();
      for (const std::size_t before : read_by(group)) {
        if (before == earlier) {
          if (group != later) return true;
          continue;
        }
        if (groups_[before].members.back() < first || !seen.insert(before).second) continue;
        if (seen.size() > kMostVisited) return true;
        open.push_back(before);
      }
    }
    return false;
  }

  void merge(std::size_t earlier, std::size_t later) {
    Group& into = groups_[earlier];
    Group& from = groups_[later];
    std::vector<std::size_t> members;
    members.reserve(into.members.size() + from.members.size());
    std::merge(into.members.begin(), into.members.end(), from.members.begin(), from.members.end(),
               std::back_inserter(members));
    for (const std::size_t member : from.members) group_of_[member] = earlier;
    into.members = std::move(members);
    into.elements = std::max(into.elements, from.elements);
    into.width = std::max(into.width, from.width);
    into.moves = into.moves || from.moves;
    from = {};
  }

  /// Groups so that each comes after what it waits for, the one that began first before others.
  std::vector<Lowered> in_order() {
    std::vector<std::set<std::size_t>> waits(groups_.size());
    std::vector<std::vector<std::size_t>> next(groups_.size());
    std::vector<std::vector<std::size_t>> readers(model_.values.size());
    for (std::size_t i = 0; i < group_of_.size(); ++i) {
      for (const ValueUse& use : model_.kernels[i].reads) {
        readers[use.value].push_back(i);
        if (maker_[use.value] == kNone) continue;
        const std::size_t before = group_of_[maker_[use.value]];
        if (before != group_of_[i] && waits[group_of_[i]].insert(before).second)
          next[before].push_back(group_of_[i]);
      }
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (!groups_[g].members.empty() && waits[g].empty()) ready.push(g);
    std::vector<std::size_t> left(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) left[g] = waits[g].size();
    std::vector<Lowered> kernels;
    kernels.reserve(groups_.size());
    while (!ready.empty()) {
      const std::size_t group = ready.top();
      ready.pop();
      kernels.push_back(joined(group, readers));
      for (const std::size_t later : next[group])
        if (--left[later] == 0) ready.push(later);
    }
    return kernels;
  }

  Lowered joined(std::size_t g, const std::vector<std::vector<std::size_t>>& readers) {
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
    all.kernel.name = model_.kernels[group.members.front()].kernel.name + " .. " +
                      model_.kernels[group.members.back()].kernel.name;
    std::set<ValueId> read;
    for (const std::size_t member : group.members) {
      Lowered& one = model_.kernels[member];
      all.kernel.vector_flops += one.kernel.vector_flops;
      all.kernel.exponentials += one.kernel.exponentials;
      for (const ValueUse& use : one.reads) {
        const bool inside = maker_[use.value] != kNone && group_of_[maker_[use.value]] == g;
        if (!inside && read.insert(use.value).second) all.reads.push_back(use);
      }
      for (const ValueUse& use : one.writes)
        if (leaves(use.value, g, readers)) all.writes.push_back(use);
    }
    return all;
  }

  bool leaves(ValueId value, std::size_t group,
              const std::vector<std::vector<std::size_t>>& readers) const {
    if (kept_.count(value) > 0) return true;
    return std::any_of(readers[value].begin(), readers[value].end(),
                       [&](std::size_t reader) { return group_of_[reader] != group; });
  }

  LoweredModel& model_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_, maker_;
  std::set<ValueId> kept_;  ///< results of the model
};

}  // namespace

void group_elements(LoweredModel& model) { ElementGroups(model).run(); }

}  // namespace orrery::onnx
