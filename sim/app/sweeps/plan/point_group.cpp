// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/point_group.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sim/app/experiments/core/simulate.h"
#include "sim/config/leaf.h"
#include "sim/config/output.h"
#include "sim/config/proportional.h"
#include "sim/config/schema.h"
#include "sim/results/identity.h"
#include "sim/results/json_path.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

const config::Type* type_at(const std::vector<config::Leaf>& leaves, const std::string& path) {
  const auto found = std::ranges::find(leaves, path, &config::Leaf::path);
  return found == leaves.end() ? nullptr : found->type;
}

/// Texts may name files, and kinds of structs.
bool is_plain(const config::Type& type) {
  using config::TypeKind;
  return type.kind == TypeKind::kQuantity || type.kind == TypeKind::kReal ||
         type.kind == TypeKind::kInteger || type.kind == TypeKind::kFlag ||
         type.kind == TypeKind::kEnum;
}

/// Whether values beside a path are scaled with its own (`accelerators`): they are part of the
/// identity too.
bool changes_others(const std::string& path) {
  return config::has_proportional(path.substr(path.rfind('.') + 1));
}

/// Whether ranks at a path say how many share an expert, where nobody does.
bool changes_experts(const LoadedExperiment& base, const std::vector<config::Leaf>& leaves,
                     const std::string& path) {
  const std::size_t key = path.rfind('.') + 1;
  const std::string last = path.substr(key);
  if (last != "tp" && last != "cp" && last != "dp" && last != "ep") return false;
  const std::string etp = path.substr(0, key) + "etp";
  const bool open = std::ranges::any_of(leaves, [&](const config::Leaf& leaf) {
    return leaf.path == etp && leaf.origin == "default";
  });
  return open && base.experiment->has_experts();
}

/// What stands in the text of an identity where a value belongs.
std::string mark(std::size_t path) { return "<value " + std::to_string(path) + ">"; }

}  // namespace

std::vector<std::string> PointGroup::replaceable(const LoadedExperiment& base,
                                                 const std::vector<std::string>& wanted,
                                                 const SettingList& settings) {
  const std::vector<config::Leaf> leaves = base.leaves();
  std::vector<std::string> paths;
  for (const std::string& path : wanted) {
    const config::Type* type = type_at(leaves, path);
    if (type != nullptr && is_plain(*type) && !changes_others(path) &&
        !changes_experts(base, leaves, path))
      paths.push_back(path);
  }
  // What is set above a path may come before or after it.
  std::erase_if(paths, [&](const std::string& path) {
    return std::ranges::any_of(settings, [&](const config::Assignment& other) {
      return path.starts_with(other.path + ".");
    });
  });
  std::ranges::sort(paths);
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

PointGroup::PointGroup(LoadedExperiment base, std::vector<std::string> replaceable)
    : base_(std::move(base)),
      paths_(std::move(replaceable)),
      configuration_(configuration_of(base_)) {
  const std::vector<config::Leaf> leaves = base_.leaves();
  for (const std::string& path : paths_) {
    types_.push_back(type_at(leaves, path));
    const auto& parameters = configuration_->parameters;
    of_base_.push_back(&*std::ranges::find(parameters, path, &Parameter::path));
    if (base_.experiment->of_machines(path)) same_machine_ = false;
  }
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
  std::ranges::sort(found);
  std::size_t end = 0;
  for (const auto& [at, path] : found) {
    texts_.push_back(rest.substr(end, at - end));
    places_.push_back(path);
    end = at + mark(path).size() + 2;
  }
  texts_.push_back(rest.substr(end));
  auto begun = std::make_shared<Sha256>();
  begun->add(texts_.front());
  begun_ = std::move(begun);
}

std::optional<std::size_t> PointGroup::find(const std::string& path) const {
  const auto found = std::lower_bound(paths_.begin(), paths_.end(), path);
  if (found == paths_.end() || *found != path) return std::nullopt;
  return static_cast<std::size_t>(found - paths_.begin());
}

PointValue PointGroup::value(const config::Assignment& setting) const {
  const std::size_t path = find(setting.path).value();
  const config::Type& type = *types_[path];
  config::Leaf leaf = config::leaf_of(setting.value, type, setting.path);
  const nlohmann::ordered_json json = config::canonical_leaf(setting.value, type);
  return {path,
          {{leaf.path, leaf.text, leaf.value, leaf.unit, leaf.origin}, json.dump()},
          canonical_json(json),
          config::parse_leaf(setting.value, type)};
}

std::string PointGroup::identity(const Values& values) const {
  std::vector<std::string_view> rest;
  rest.reserve(2 * places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    rest.emplace_back(values[places_[i]]->text);
    rest.emplace_back(texts_[i + 1]);
  }
  return begun_->hex(rest);
}

std::vector<Variation> PointGroup::varied(const Values& values) const {
  std::vector<Variation> varied;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (*of_base_[i] != values[i]->variation.parameter) varied.push_back(values[i]->variation);
  return varied;
}

std::optional<LoadedExperiment> PointGroup::load(const SettingList& settings) const {
  if (!same_machine_) return std::nullopt;
  if (filled_.is_null()) {
    written_ = base_.node;
    filled_ = base_.node;
    filled_.erase("system");
  }
  config::Diagnostics diagnostics;
  const config::Library& library = config::default_library();
  for (const config::Assignment& setting : settings) {
    if (!find(setting.path)) continue;
    config::apply_override(filled_, *base_.record, setting, diagnostics, library);
    config::apply_override(written_, *base_.record, setting, diagnostics, library);
  }
  LoadedExperiment loaded;
  loaded.record = base_.record;
  const std::shared_ptr<void> object = loaded.record->make();
  loaded.experiment = std::shared_ptr<Experiment>(
      object, ExperimentKinds::view(base_.experiment->kind, object.get()));
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
