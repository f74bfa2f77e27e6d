// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/plan_cursor.h"

#include <algorithm>
#include <utility>

#include "sim/app/sweeps/plan/bound_rules.h"
#include "sim/app/sweeps/plan/probe.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// Values of an axis of at most so many steps are kept, each made once.
constexpr std::uint64_t kMostKept = 65536;
/// Groups that are known at a time: each takes some hundred kilobytes.
constexpr std::size_t kMostKnown = 32;
constexpr std::size_t kNone = ~std::size_t{0};

}  // namespace

/// Points that share a base, and their rules.
struct PlanCursor::Known {
  /// Where the values for a path of the group come from.
  struct Slot {
    std::size_t axis = 0;
    std::size_t key = 0;
    std::vector<std::unique_ptr<PointValue>>
        values;  ///< values by step; one: made anew for each step
  };

  std::shared_ptr<PointGroup> group;  ///< null: each point is loaded alone
  std::vector<Slot> slots;            ///< slots for the paths of the group
  std::unique_ptr<BoundRules> rules;
  std::unique_ptr<Probe> probe;  ///< made when it is asked
};

PlanCursor::PlanCursor(const Sweep& sweep, Places only)
    : sweep_(sweep), only_(std::move(only)), block_(kNone) {
  seek(next_of_only(0));
}

PlanCursor::~PlanCursor() = default;

void PlanCursor::seek(std::uint64_t place) {
  current_ = nullptr;  // as it may lie among what a rule excludes, every rule is asked
  move(place);
}

/// The first place from this one on that is to be gone to; behind the plan where there is none.
std::uint64_t PlanCursor::next_of_only(std::uint64_t place) const {
  if (only_.empty()) return place;
  const auto range =
      std::upper_bound(only_.begin(), only_.end(), place,
                       [](std::uint64_t at, const PointRange& each) { return at < each.last; });
  return range == only_.end() ? sweep_.places() : std::max<std::uint64_t>(place, range->first);
}

PlanCursor::Digits PlanCursor::digits_of(std::uint64_t place) const {
  Digits digits(strides_.size());
  std::uint64_t rest = place - block().first;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    digits[i] = rest / strides_[i];
    rest %= strides_[i];
  }
  return digits;
}

void PlanCursor::move(std::uint64_t place) {
  place_ = place;
  covers_ = 1;
  kind_ = PlaceKind::kPoint;
  whole_.reset();
  if (at_end()) return;
  if (block_ == kNone || place < block().first || place >= block().first + block().size) {
    const auto after =
        std::upper_bound(sweep_.blocks.begin(), sweep_.blocks.end(), place,
                         [](std::uint64_t at, const PlanBlock& block) { return at < block.first; });
    enter(static_cast<std::size_t>(after - sweep_.blocks.begin()) - 1);
  }
  const Digits digits = digits_of(place);
  std::size_t changed = 0;
  while (current_ != nullptr && changed < digits.size() && digits[changed] == digits_[changed])
    ++changed;
  digits_ = digits;
  if (find_group()) changed = kNone;
  take_values(changed == kNone ? 0 : changed);
  judge(changed);
}

void PlanCursor::enter(std::size_t block_index) {
  block_ = block_index;
  current_ = nullptr;
  known_.clear();
  const auto& axes = block().axes;
  strides_.assign(axes.size(), 1);
  for (std::size_t i = axes.size(); i-- > 1;) strides_[i - 1] = strides_[i] * axes[i]->size();
  const SweepPoint first = point_at(Digits(axes.size()));
  std::vector<std::string> paths;
  for (const auto& axis : axes)
    for (const AxisKey& key : axis->keys()) paths.push_back(key.path);
  replaced_ = PointGroup::replaceable(sweep_.load_whole(first), paths, first.settings);
  basing_.clear();
  for (const auto& axis : axes)
    basing_.push_back(std::any_of(axis->keys().begin(), axis->keys().end(), [&](const AxisKey& k) {
      return !std::binary_search(replaced_.begin(), replaced_.end(), k.path);
    }));
}

SweepPoint PlanCursor::point_at(const Digits& digits) const {
  SweepPoint point;
  point.place = place_;
  point.case_index = case_index();
  point.name = &row().name;
  point.settings = row().settings;
  point.of_variant = static_cast<std::uint32_t>(point.settings.size());
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const Axis& axis = *block().axes[i];
    for (std::size_t key = 0; key < axis.keys().size(); ++key)
      point.settings.push_back(
          {axis.keys()[key].path, axis.value(digits[i], key), axis.keys()[key].origin});
  }
  return point;
}

bool PlanCursor::find_group() {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < digits_.size(); ++i)
    if (basing_[i]) key = key * block().axes[i]->size() + digits_[i];
  auto found = known_.find(key);
  if (found != known_.end() && found->second.get() == current_ && group_ != nullptr) return false;
  if (found == known_.end()) {
    if (known_.size() >= kMostKnown) known_.clear();
    found = known_.emplace(key, know(false)).first;
  } else if (found->second->group == nullptr) {
    found->second = know(true);  // this point may be a base where those before were none
  }
  current_ = found->second.get();
  group_ = current_->group;
  return true;
}

std::unique_ptr<PlanCursor::Known> PlanCursor::know(bool this_point_only) const {
  auto known = std::make_unique<Known>();
  const std::size_t axes = digits_.size();
  // The base is the same wherever the plan is entered: the first, the last, and some points
  // between.
  constexpr std::uint64_t kCandidates = 6;
  for (std::uint64_t candidate = this_point_only ? kCandidates : 0;
       candidate <= kCandidates && !known->group; ++candidate) {
    Digits digits = digits_;
    for (std::size_t i = 0; i < axes && candidate < kCandidates; ++i) {
      const std::uint64_t size = block().axes[i]->size();
      const std::uint64_t far = candidate < 2 ? candidate * (size - 1) : size * candidate / 7 + i;
      if (!basing_[i]) digits[i] = far % size;
    }
    const SweepPoint point = point_at(digits);
    LoadedExperiment base = sweep_.load_whole(point);
    const bool can_be = base.contradiction.empty();
    const bool last = candidate == kCandidates;
    if (!can_be && !last) continue;
    const auto replaceable = PointGroup::replaceable(base, replaced_, point.settings);
    if (can_be && replaceable == replaced_)
      known->group = std::make_shared<PointGroup>(base, replaceable);
    const PointGroup* group = known->group.get();
    if (group != nullptr || last)
      known->rules = std::make_unique<BoundRules>(
          sweep_, block(), group != nullptr ? group->base() : base, group, basing_);
    if (group == nullptr && last) whole_ = std::make_shared<LoadedExperiment>(std::move(base));
  }
  if (!known->group) return known;
  for (const std::string& path : known->group->paths()) {
    Known::Slot slot;
    for (std::size_t axis = 0; axis < axes; ++axis)
      for (std::size_t key = 0; key < block().axes[axis]->keys().size(); ++key)
        if (block().axes[axis]->keys()[key].path == path) slot = {axis, key, {}};
    const Axis& axis = *block().axes[slot.axis];
    const bool keep = axis.size() <= kMostKept && !axis.is_drawn();
    slot.values.resize(keep ? static_cast<std::size_t>(axis.size()) : 1);
    known->slots.push_back(std::move(slot));
  }
  return known;
}

void PlanCursor::take_values(std::size_t first_changed) {
  if (group_ == nullptr) return values_.clear();
  values_.resize(current_->slots.size());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    Known::Slot& slot = current_->slots[i];
    if (slot.axis < first_changed) continue;
    const std::uint64_t step = digits_[slot.axis];
    auto& value = slot.values[slot.values.size() == 1 ? 0 : static_cast<std::size_t>(step)];
    if (value == nullptr || slot.values.size() == 1) {
      const Axis& axis = *block().axes[slot.axis];
      const AxisKey& key = axis.keys()[slot.key];
      try {
        value = std::make_unique<PointValue>(
            group_->value({key.path, axis.value(step, slot.key), key.origin}));
      } catch (const UnitError&) {
        whole();  // says what is wrong, and where
        throw;
      }
    }
    values_[i] = value.get();
  }
}

void PlanCursor::judge(std::size_t first_changed) {
  const BoundRules& rules = *current_->rules;
  if (rules.empty()) return;
  const auto figure = [this](const CheapFigure& of) { return figure_of(of); };
  const int from = first_changed == kNone ? -1 : static_cast<int>(first_changed);
  const auto broken = rules.broken({values_, figure}, from);
  if (!broken) return;
  kind_ = broken->is_where ? PlaceKind::kExcluded : PlaceKind::kNone;
  rule_ = broken->index;
  const std::uint64_t stride =
      broken->depth < 0 ? block().size : strides_[static_cast<std::size_t>(broken->depth)];
  covers_ = stride - (place_ - block().first) % stride;
}

std::optional<double> PlanCursor::figure_of(const CheapFigure& figure) const {
  try {
    if (group_ != nullptr)
      if (const auto quick = probe().figure(figure, values_)) return quick;
    const LoadedExperiment& loaded = whole();
    if (figure.needs_machine && !loaded.contradiction.empty()) return std::nullopt;
    return figure.of(*loaded.experiment, StepModel());
  } catch (const config::KeyError&) {
    return std::nullopt;  // its plan cannot be
  }
}

Probe& PlanCursor::probe() const {
  if (!current_->probe) current_->probe = std::make_unique<Probe>(*group_);
  return *current_->probe;
}

bool PlanCursor::can_be() const {
  return group_ != nullptr ? probe().can_be(values_) : whole().contradiction.empty();
}

std::string PlanCursor::identity() const {
  return group_ != nullptr ? group_->identity(values_) : whole().identity;
}

SweepPoint PlanCursor::point() const {
  SweepPoint point = point_at(digits_);
  point.group = group_;
  return point;
}

const LoadedExperiment& PlanCursor::whole() const {
  if (!whole_) whole_ = std::make_shared<LoadedExperiment>(sweep_.load_whole(point_at(digits_)));
  return *whole_;
}

}  // namespace orrery
