// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/plan_cursor.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/app/experiments/cheap_figures.h"
#include "sim/app/sweeps/plan/bound_rules.h"
#include "sim/app/sweeps/plan/point_group.h"
#include "sim/config/leaf.h"
#include "sim/config/schema.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// Values of an axis of at most so many steps are kept, each made once.
constexpr std::uint64_t kMostKept = 65536;
/// Groups that are known at a time: each takes some hundred kilobytes.
constexpr std::size_t kMostKnown = 32;
constexpr std::size_t kNone = ~std::size_t{0};

}  // namespace

namespace {

using config::Type;
using config::TypeKind;

/// A member of an object, and its type.
using Place = std::pair<void*, const Type*>;

using Above = std::vector<std::pair<const config::Record*, void*>>;

std::optional<Place> member_of(void* object, const config::Record& record, std::string_view path,
                               Above& above);

/// The item of a list, or the value of a key of a map.
std::optional<Place> child_of(void* value, const Type& type, std::string_view part) {
  for (const auto& [key, child] : type.children(value)) {
    const auto* number = std::get_if<std::int64_t>(&key);
    bool same = number == nullptr && std::get<std::string>(key) == part;
    if (number != nullptr && type.kind == TypeKind::kList) same = std::to_string(*number) == part;
    if (number != nullptr && type.kind == TypeKind::kMap)
      same = config::find_enumerator(*type.names, part) == *number;
    // Children are shown to readers; this object is ours.
    if (same) return Place{const_cast<void*>(child), type.element};  // NOLINT(*-const-cast)
  }
  return std::nullopt;
}

std::optional<Place> value_of(void* value, const Type& type, std::string_view path, Above& above) {
  if (type.kind == TypeKind::kFact)
    return value_of(type.fact_value(value), *type.element, path, above);
  if (type.kind == TypeKind::kOptional) {
    const auto children = type.children(value);
    if (children.empty()) return std::nullopt;
    void* inner = const_cast<void*>(children.front().second);  // NOLINT(*-const-cast)
    return value_of(inner, *type.element, path, above);
  }
  if (path.empty())
    return config::is_leaf(type) ? std::optional(Place{value, &type}) : std::nullopt;
  if (type.kind == TypeKind::kRecord) return member_of(value, type.record(), path, above);
  if (type.kind != TypeKind::kList && type.kind != TypeKind::kMap) return std::nullopt;
  const std::size_t dot = path.find('.');
  const auto child = child_of(value, type, path.substr(0, dot));
  if (!child) return std::nullopt;
  return value_of(child->first, *child->second,
                  dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1), above);
}

std::optional<Place> member_of(void* object, const config::Record& record, std::string_view path,
                               Above& above) {
  if (record.derivation()) return std::nullopt;  // other members follow from this one
  const std::size_t dot = path.find('.');
  const config::Field* field = record.find(path.substr(0, dot));
  if (field == nullptr) return std::nullopt;
  const std::pair<const config::Record*, void*> self{&record, object};
  if (std::ranges::find(above, self) == above.end()) above.push_back(self);
  return value_of(field->address(object), *field->type,
                  dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1), above);
}

}  // namespace

/// An experiment of a group into which the values of one point after the other are written, to be
/// asked for figures: nothing is read, completed or checked again. Serves one thread.
class Probe {
 public:
  /// @param group outlives it
  explicit Probe(const PointGroup& group) : group_(group) {
    const LoadedExperiment& base = group.base();
    object_ = base.record->make();
    experiment_ = ExperimentKinds::view(base.experiment->kind, object_.get());
    config::Diagnostics diagnostics;
    config::fill_and_count_broken_relations(object_.get(), base.node, *base.record, diagnostics);
    experiment_->share_machines(base.experiment);
    for (const std::string& path : group.paths()) {
      members_.push_back(member_of(object_.get(), *base.record, path, above_));
      same_model_ = same_model_ && !path.starts_with("model.");
    }
  }

  /// A figure of the experiment with these values; none where a value cannot be written so, because
  /// others follow from it. @throws config::KeyError where the plan cannot be
  std::optional<double> figure(const CheapFigure& figure, const PointGroup::Values& values) {
    if (!take(values)) return std::nullopt;
    return figure.of(*experiment_, model());
  }

  /// Whether these values can stand together, as far as that is told without loading the point:
  /// relations of the structs that have them, and orrery::can_be(). Yes, where nothing tells.
  bool can_be(const PointGroup::Values& values) {
    if (!take(values)) return true;
    for (const auto& [record, object] : above_)
      for (const config::Check& check : record->checks())
        if (!check(object).text.empty()) return false;
    return orrery::can_be(*experiment_, group_.base().node, model());
  }

 private:
  bool take(const PointGroup::Values& values) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!members_[i]) return false;
      members_[i]->second->store(members_[i]->first, values[i]->scalar);
    }
    return true;
  }

  const StepModel& model() {
    if (!same_model_) model_ = StepModel();
    return model_;
  }

  const PointGroup& group_;
  std::shared_ptr<void> object_;
  Experiment* experiment_ = nullptr;
  std::vector<std::optional<Place>>
      members_;             ///< members at the paths of the group; none: not to be written
  Above above_;             ///< structs above these members, each once
  bool same_model_ = true;  ///< no value is one of the model
  StepModel model_;
};

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
  const auto range = std::ranges::upper_bound(only_, place, {}, &PointRange::last);
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
    enter(sweep_.block_at(place));
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
