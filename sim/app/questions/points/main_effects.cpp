// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/main_effects.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace orrery {
namespace {

using Ids = std::vector<std::uint32_t>;

/// A number for each distinct pair, the same for the same pair.
Ids paired(const Ids& first, const Ids& second) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> keys(first.size());
  for (std::uint32_t i = 0; i < keys.size(); ++i)
    keys[i] = {std::uint64_t{first[i]} << 32U | second[i], i};
  std::ranges::sort(keys);
  Ids ids(first.size());
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0 && keys[i].first != keys[i - 1].first) ++next;
    ids[keys[i].second] = next;
  }
  return ids;
}

/// Sums of a metric over points of one value in one group.
struct Sum {
  double sum = 0;
  std::size_t count = 0;
  double mean() const { return sum / static_cast<double>(count); }
};

/// The effects of one input, from group to group.
class GroupedEffect {
 public:
  void add_group(const std::map<std::uint32_t, Sum>& values) {
    if (values.size() < 2) return;
    double mean = 0, low = std::numeric_limits<double>::infinity(), high = -low;
    for (const auto& [code, sum] : values) {
      mean += sum.mean() / static_cast<double>(values.size());
      low = std::min(low, sum.mean());
      high = std::max(high, sum.mean());
    }
    for (const auto& [code, sum] : values) {
      Sum& level = levels_[code];
      level.sum += sum.mean() - mean;
      ++level.count;
    }
    effect_.least = effect_.groups == 0 ? high - low : std::min(effect_.least, high - low);
    effect_.most = std::max(effect_.most, high - low);
    ++effect_.groups;
  }

  MainEffect take() {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const auto& [code, level] : levels_) {
      effect_.levels.push_back({code, level.mean(), level.count});
      low = std::min(low, level.mean());
      high = std::max(high, level.mean());
    }
    if (!levels_.empty()) effect_.swing = high - low;
    return std::move(effect_);
  }

 private:
  MainEffect effect_;
  std::map<std::uint32_t, Sum> levels_;
};

MainEffect effect_of(const Ids& group, const Ids& input, const std::vector<double>& metric) {
  Ids order(group.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return group[a] != group[b] ? group[a] < group[b] : a < b;
  });
  GroupedEffect effect;
  for (std::size_t begin = 0; begin < order.size();) {
    std::map<std::uint32_t, Sum> values;
    std::size_t end = begin;
    for (; end < order.size() && group[order[end]] == group[order[begin]]; ++end) {
      Sum& sum = values[input[order[end]]];
      sum.sum += metric[order[end]];
      ++sum.count;
    }
    effect.add_group(values);
    begin = end;
  }
  return effect.take();
}

}  // namespace

std::vector<MainEffect> main_effects(const std::vector<std::vector<std::uint32_t>>& inputs,
                                     const std::vector<double>& metric) {
  // What all inputs before one, and all behind it, are: together they are its group.
  std::vector<Ids> before(inputs.size()), behind(inputs.size());
  Ids ids(metric.size(), 0);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    before[i] = ids;
    ids = paired(ids, inputs[i]);
  }
  ids.assign(metric.size(), 0);
  for (std::size_t i = inputs.size(); i-- > 0;) {
    behind[i] = ids;
    ids = paired(ids, inputs[i]);
  }
  std::vector<MainEffect> effects;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    effects.push_back(effect_of(paired(before[i], behind[i]), inputs[i], metric));
  return effects;
}

}  // namespace orrery
