// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/search/search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/app/sweeps/plan/amount.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// Proposals of the algorithm in turn that are no new points, after which evenly spread ones are
/// tried; after as many of those the plan is gone through.
constexpr int kMostTries = 64;

std::unique_ptr<SearchAlgorithm> make_algorithm(const SearchSpace& space,
                                                const SearchConfig& config) {
  if (config.algorithm == SearchMethod::kRandom) return make_random_search(space.genes(), config);
  return make_nsga2(space.genes(), config);
}

}  // namespace

std::vector<ObjectiveConfig> search_objectives(const Sweep& sweep) {
  const auto& cases = sweep.config.cases;
  const std::vector<ObjectiveConfig>& objectives = sweep.config.objectives_of(cases.front());
  config::Diagnostics diagnostics = sweep.texts;
  const config::Node& written = *sweep.node.find("cases");
  if (objectives.empty())
    diagnostics.error(sweep.node.where(), 1, "a search needs objectives", {},
                      {"such as objectives: [{maximize: tokens_per_s_per_accelerator}]"});
  for (std::size_t i = 1; i < cases.size(); ++i)
    if (objectives != sweep.config.objectives_of(cases[i]))
      diagnostics.error(
          written.items()[i].where(), 1,
          "the cases of a search seek the same: this one has other objectives than the first");
  diagnostics.throw_if_errors();
  return objectives;
}

Score score_of(const RunRecord& record, const std::vector<ObjectiveConfig>& objectives,
               const ChooseConfig& limits) {
  Score score;
  score.violation = excess_over_limits(limits, record);
  for (const ObjectiveConfig& objective : objectives) {
    const auto value = value_of(record, objective.name());
    if (!value) score.violation = std::numeric_limits<double>::infinity();
    const double number = value ? value->value : 0;
    score.objectives.push_back(objective.maximize.empty() ? number : -number);
  }
  return score;
}

std::vector<Sweep> sweeps_by_fidelity(const Sweep& sweep) {
  if (sweep.config.search.fidelity.empty()) return {sweep};
  const config::Node& written = *sweep.node.at_path("search.fidelity");
  std::vector<Sweep> sweeps;
  for (std::size_t i = 0; i < sweep.config.search.fidelity.size(); ++i) {
    const config::Node& word = written.is_sequence() ? written.items()[i] : written;
    Sweep& level = sweeps.emplace_back(sweep);
    for (SweepRow& row : level.rows) row.settings.push_back({"fidelity", word, word.origin()});
    PlanCursor cursor(level);
    for (const PlanBlock& block : level.blocks) cursor.seek(block.first);
  }
  return sweeps;
}

Search::Search(const Sweep& sweep, const SearchConfig& config,
               const std::vector<std::uint64_t>& begin_with)
    : config_(config),
      levels_(std::max<std::size_t>(1, config.fidelity.size())),
      space_(sweep),
      algorithm_(make_algorithm(space_, config)),
      immigrants_(space_.genes(), config.seed + 1) {
  search_objectives(sweep);
  std::vector<std::uint64_t> points;  // what a rule or a table has changed since is left out
  for (const std::uint64_t place : begin_with)
    if (place < sweep.places() && space_.place_of(space_.genome_of(place)) == place)
      points.push_back(place);
  begin_generation(points);
}

/// Each further fidelity halves the candidates of a generation: so many are left for the last one.
void Search::begin_generation(const std::vector<std::uint64_t>& begin_with) {
  level_ = 0;
  candidates_.clear();
  const auto left = static_cast<std::size_t>(config_.evaluations) - evaluated_.size();
  const std::size_t count = std::min(static_cast<std::size_t>(config_.population), left)
                            << (levels_ - 1);
  for (const std::uint64_t place : begin_with)
    if (candidates_.size() < count && seen_.insert(place).second) candidates_.push_back(place);
  while (candidates_.size() < count && !exhausted_) exhausted_ = !add_candidate();
  want();
}

bool Search::add_candidate() {
  for (int i = 0; i < 2 * kMostTries; ++i) {
    const Genome genome = i < kMostTries ? algorithm_->propose() : immigrants_.next();
    const auto place = space_.place_of(genome);
    if (!place || !seen_.insert(*place).second) continue;
    candidates_.push_back(*place);
    return true;
  }
  const std::uint64_t from = candidates_.empty() ? 0 : candidates_.back();
  const auto is_new = [this](std::uint64_t place) { return seen_.find(place) == seen_.end(); };
  const auto place = space_.next_point(from, is_new);
  if (!place) return false;
  seen_.insert(*place);
  candidates_.push_back(*place);
  return true;
}

void Search::want() {
  wanted_ = candidates_;
  std::ranges::sort(wanted_);
}

void Search::tell(const std::vector<Score>& scores) {
  std::vector<Candidate> generation;
  for (const std::uint64_t place : candidates_) {
    const auto at = std::lower_bound(wanted_.begin(), wanted_.end(), place) - wanted_.begin();
    generation.push_back({space_.genome_of(place), scores[static_cast<std::size_t>(at)]});
  }
  if (at_last_level()) {
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      evaluated_.push_back({candidates_[i], generation[i].score});
    algorithm_->tell(generation);
    return begin_generation();
  }
  std::vector<std::uint64_t> promoted;
  for (const std::size_t i : best_of(generation, (candidates_.size() + 1) / 2))
    promoted.push_back(candidates_[i]);
  candidates_ = std::move(promoted);
  ++level_;
  want();
}

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
  const bool first = std::ranges::find(block.conditions, true) == block.conditions.end();
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
  const std::size_t index = sweep_.block_at(place);
  const PlanBlock& block = sweep_.blocks[index];
  Genome genome(genes_.size(), 0);
  std::uint64_t rest = place - block.first;
  for (std::size_t i = block.axes.size(); i-- > 0;) {
    genome[genes_of_[index][i]] = rest % block.axes[i]->size();
    rest /= block.axes[i]->size();
  }
  const auto has = [&](const Part& part) {
    return std::ranges::find(part.blocks, index) != part.blocks.end();
  };
  genome.front() = static_cast<std::uint64_t>(std::ranges::find_if(parts_, has) - parts_.begin());
  return genome;
}

}  // namespace orrery
