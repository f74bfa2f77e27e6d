// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/search/search_space.h"

#include <algorithm>
#include <iterator>

#include "sim/app/sweeps/plan/amount.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// Values that are looked at to tell whether an axis is ordered.
constexpr std::uint64_t kMostLookedAt = 4096;
/// Blocks whose bases are known at a time.
constexpr std::size_t kMostCursors = 32;

std::optional<double> number_of(const config::Node& node) {
  if (!node.is_scalar()) return std::nullopt;
  try {
    return parse_amount(node.text()).value;
  } catch (const UnitError&) {
    return std::nullopt;
  }
}

/// Whether the first key takes numbers that grow or fall from step to step: neighbours are alike.
bool is_ordered(const Axis& axis) {
  if (axis.is_drawn()) return false;
  bool grows = true, falls = true;
  std::optional<double> before;
  for (std::uint64_t step = 0; step < std::min(axis.size(), kMostLookedAt); ++step) {
    const auto number = number_of(axis.value(step, 0));
    if (!number) return false;
    grows = grows && (!before || *number > *before);
    falls = falls && (!before || *number < *before);
    before = number;
  }
  return grows || falls;
}

}  // namespace

SearchSpace::SearchSpace(const Sweep& sweep) : sweep_(sweep), genes_(1) {
  for (std::size_t i = 0; i < sweep.blocks.size(); ++i) add_block(i);
  genes_.front().size = parts_.size();
}

void SearchSpace::add_block(std::size_t index) {
  const PlanBlock& block = sweep_.blocks[index];
  // The blocks of a part begin with the one in which no condition holds.
  const bool first =
      std::find(block.conditions.begin(), block.conditions.end(), true) == block.conditions.end();
  if (first || parts_.empty()) parts_.emplace_back();
  parts_.back().blocks.push_back(index);
  std::vector<std::size_t>& genes = genes_of_.emplace_back();
  for (const auto& axis : block.axes) {
    const auto [known, added] = gene_of_.emplace(axis.get(), genes_.size());
    if (added) genes_.push_back({axis->size(), is_ordered(*axis)});
    genes.push_back(known->second);
  }
}

PlanCursor& SearchSpace::cursor_of(std::size_t block) {
  if (cursors_.size() >= kMostCursors && cursors_.find(block) == cursors_.end()) cursors_.clear();
  auto& cursor = cursors_[block];
  if (!cursor) cursor = std::make_unique<PlanCursor>(sweep_);
  return *cursor;
}

SearchSpace::At SearchSpace::look_at(std::size_t block, std::uint64_t place) {
  const auto known = looked_at_.find(place);
  if (known != looked_at_.end()) return known->second;
  PlanCursor& cursor = cursor_of(block);
  cursor.seek(place);
  const At at = is_point(cursor)                    ? At::kPoint
                : cursor.kind() == PlaceKind::kNone ? At::kOtherBlock
                                                    : At::kNothing;
  return looked_at_.emplace(place, at).first->second;
}

std::optional<std::uint64_t> SearchSpace::place_of(const Genome& genome) {
  for (const std::size_t index : parts_[static_cast<std::size_t>(genome.front())].blocks) {
    const PlanBlock& block = sweep_.blocks[index];
    std::uint64_t place = 0;
    for (std::size_t i = 0; i < block.axes.size(); ++i)
      place = place * block.axes[i]->size() + genome[genes_of_[index][i]];
    const At at = look_at(index, block.first + place);
    if (at == At::kPoint) return block.first + place;
    if (at == At::kNothing) return std::nullopt;
  }
  return std::nullopt;
}

Genome SearchSpace::genome_of(std::uint64_t place) const {
  const auto after =
      std::upper_bound(sweep_.blocks.begin(), sweep_.blocks.end(), place,
                       [](std::uint64_t at, const PlanBlock& block) { return at < block.first; });
  const auto index = static_cast<std::size_t>(after - sweep_.blocks.begin()) - 1;
  const PlanBlock& block = sweep_.blocks[index];
  Genome genome(genes_.size(), 0);
  std::uint64_t rest = place - block.first;
  for (std::size_t i = block.axes.size(); i-- > 0;) {
    genome[genes_of_[index][i]] = rest % block.axes[i]->size();
    rest /= block.axes[i]->size();
  }
  const auto has = [&](const Part& part) {
    return std::find(part.blocks.begin(), part.blocks.end(), index) != part.blocks.end();
  };
  genome.front() =
      static_cast<std::uint64_t>(std::find_if(parts_.begin(), parts_.end(), has) - parts_.begin());
  return genome;
}

}  // namespace orrery
