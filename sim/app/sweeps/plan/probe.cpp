// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/probe.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/config/leaf.h"
#include "sim/config/schema.h"

namespace orrery {
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
  if (std::find(above.begin(), above.end(), self) == above.end()) above.push_back(self);
  return value_of(field->address(object), *field->type,
                  dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1), above);
}

}  // namespace

Probe::Probe(const PointGroup& group) : group_(group) {
  const LoadedExperiment& base = group.base();
  object_ = base.record->make();
  experiment_ = ExperimentKinds::view(base.experiment->kind, object_.get());
  config::Diagnostics diagnostics;
  config::fill_and_count_broken_relations(object_.get(), base.node, *base.record, diagnostics);
  experiment_->share_machines(base.experiment);
  for (const std::string& path : group.paths()) {
    const auto place = member_of(object_.get(), *base.record, path, above_);
    same_model_ = same_model_ && !path.starts_with("model.");
    members_.push_back(place ? Member{place->first, place->second} : Member{});
  }
}

bool Probe::take(const PointGroup::Values& values) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].address == nullptr) return false;
    members_[i].type->store(members_[i].address, values[i]->scalar);
  }
  return true;
}

const StepModel& Probe::model() {
  if (!same_model_) model_ = StepModel();
  return model_;
}

std::optional<double> Probe::figure(const CheapFigure& figure, const PointGroup::Values& values) {
  if (!take(values)) return std::nullopt;
  return figure.of(*experiment_, model());
}

bool Probe::can_be(const PointGroup::Values& values) {
  if (!take(values)) return true;
  for (const auto& [record, object] : above_)
    for (const config::Check& check : record->checks())
      if (!check(object).text.empty()) return false;
  return orrery::can_be(*experiment_, group_.base().node, model());
}

}  // namespace orrery
