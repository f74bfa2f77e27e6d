// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/point_group.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/experiments/experiment_identity.h"
#include "sim/app/experiments/simulate.h"
#include "sim/config/leaf_value.h"
#include "sim/config/relations.h"
#include "sim/results/identity.h"
#include "sim/results/json_path.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

const config::Type* type_at(const std::vector<config::Leaf>& leaves, const std::string& path) {
  for (const config::Leaf& leaf : leaves)
    if (leaf.path == path) return leaf.type;
  return nullptr;
}

/// Texts may name files, and kinds of structs.
bool is_plain(const config::Type& type) {
  using config::TypeKind;
  return type.kind == TypeKind::kQuantity || type.kind == TypeKind::kReal ||
         type.kind == TypeKind::kInteger || type.kind == TypeKind::kFlag ||
         type.kind == TypeKind::kEnum;
}

/// What stands in the text of an identity where a value belongs.
std::string mark(std::size_t path) { return "<value " + std::to_string(path) + ">"; }

}  // namespace

std::vector<std::string> PointGroup::replaceable(const LoadedExperiment& base,
                                                 const PointSettings& settings) {
  const std::vector<config::Leaf> leaves = base.leaves();
  std::vector<std::string> paths;
  for (const config::Assignment* setting : settings) {
    const config::Type* type = type_at(leaves, setting->path);
    if (type != nullptr && is_plain(*type)) paths.push_back(setting->path);
  }
  // What is set above a path may come before or after it.
  std::erase_if(paths, [&](const std::string& path) {
    return std::any_of(settings.begin(), settings.end(), [&](const config::Assignment* other) {
      return path.starts_with(other->path + ".");
    });
  });
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

PointGroup::PointGroup(LoadedExperiment base, std::vector<std::string> replaceable)
    : base_(std::move(base)),
      paths_(std::move(replaceable)),
      configuration_(configuration_of(base_)),
      filled_(base_.node),
      written_(base_.node) {
  filled_.erase("system");
  for (const std::string& path : paths_)
    if (base_.experiment->of_machines(path)) same_machine_ = false;
  make_template();
}

void PointGroup::make_template() {
  nlohmann::ordered_json configuration = base_.configuration;
  for (std::size_t i = 0; i < paths_.size(); ++i)
    if (auto* value = value_at(configuration, paths_[i])) *value = mark(i);
  std::string rest = identity_text_of(*base_.experiment, configuration, base_.files);
  std::vector<std::pair<std::size_t, std::size_t>> found;  // where, which
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const std::size_t at = rest.find("\"" + mark(i) + "\"");
    if (at != std::string::npos) found.emplace_back(at, i);
  }
  std::sort(found.begin(), found.end());
  std::size_t end = 0;
  for (const auto& [at, path] : found) {
    texts_.push_back(rest.substr(end, at - end));
    places_.push_back(path);
    end = at + mark(path).size() + 2;
  }
  texts_.push_back(rest.substr(end));
}

bool PointGroup::replaces(const std::string& path) const {
  return std::binary_search(paths_.begin(), paths_.end(), path);
}

void PointGroup::add(const config::Assignment& setting) {
  const auto path = std::lower_bound(paths_.begin(), paths_.end(), setting.path);
  if (path == paths_.end() || *path != setting.path) return;
  const config::Type& type = *type_at(base_.leaves(), setting.path);
  config::Leaf leaf = config::leaf_of(setting.value, type, setting.path);
  const nlohmann::ordered_json json = config::canonical_leaf(setting.value, type);
  values_[&setting] = {static_cast<std::size_t>(path - paths_.begin()),
                       {{leaf.path, leaf.text, leaf.value, leaf.unit, leaf.origin}, json.dump()},
                       canonical_json(json)};
}

std::vector<const PointGroup::Value*> PointGroup::values_of(const PointSettings& settings) const {
  std::vector<const Value*> values(paths_.size());
  for (const config::Assignment* setting : settings) {
    const auto value = values_.find(setting);
    if (value != values_.end()) values[value->second.path] = &value->second;
  }
  return values;
}

std::string PointGroup::identity(const PointSettings& settings) const {
  const std::vector<const Value*> values = values_of(settings);
  std::string text;
  for (std::size_t i = 0; i < places_.size(); ++i)
    text.append(texts_[i]).append(values[places_[i]]->text);
  return sha256_hex(text.append(texts_.back()));
}

std::vector<Variation> PointGroup::varied(const PointSettings& settings) const {
  std::vector<Variation> varied;
  for (const Value* value : values_of(settings)) {
    const auto is_it = [&](const Parameter& p) {
      return p.path == value->variation.parameter.path;
    };
    const auto of_base =
        std::find_if(configuration_->parameters.begin(), configuration_->parameters.end(), is_it);
    if (*of_base != value->variation.parameter) varied.push_back(value->variation);
  }
  return varied;
}

std::optional<LoadedExperiment> PointGroup::load(const PointSettings& settings) const {
  if (!same_machine_) return std::nullopt;
  config::Diagnostics diagnostics;
  const config::Library& library = config::default_library();
  for (const config::Assignment* setting : settings) {
    if (!knows(*setting)) continue;
    config::apply_override(filled_, *base_.record, *setting, diagnostics, library);
    config::apply_override(written_, *base_.record, *setting, diagnostics, library);
  }
  LoadedExperiment loaded;
  loaded.record = base_.record;
  const std::shared_ptr<void> object = loaded.record->make();
  loaded.experiment = std::shared_ptr<Experiment>(
      object, experiment_kinds().at(base_.experiment->kind).view(object.get()));
  config::fill_and_count_broken_relations(object.get(), filled_, *loaded.record, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  try {
    loaded.experiment->share_machines(base_.experiment);
    loaded.experiment->check(written_, diagnostics);
    loaded.experiment->check_machine(written_, diagnostics);
  } catch (const config::ConfigError&) {
    return std::nullopt;
  }
  if (diagnostics.has_errors()) return std::nullopt;
  loaded.files = base_.files;
  return loaded;
}

}  // namespace orrery
