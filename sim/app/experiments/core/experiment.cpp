// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/experiment.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/app/experiments/files/known_names.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/config/leaf.h"
#include "sim/config/load.h"
#include "sim/config/override.h"
#include "sim/config/schema.h"
#include "sim/machine/doubts.h"
#include "sim/machine/what_if.h"
#include "sim/results/identity.h"
#include "sim/units/comma_separated.h"
#include "sim/units/sha256.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

constexpr const char* kTag = "experiment";

/// Complains of a file that does not say what it is, or says it under another key.
void refuse_without_kind(const config::Node& node, config::Diagnostics& diagnostics) {
  const std::vector<std::string> names = Experiment::choices().names();
  for (const config::Node::Entry& entry : node.entries()) {
    if (nearest_name(entry.key, {kTag}).empty()) continue;
    diagnostics.error(entry.key_origin.location(), static_cast<int>(entry.key.size()),
                      "unknown key '" + entry.key + "' in experiment", kTag);
    diagnostics.throw_if_errors();
  }
  diagnostics.error(node.where(), 1, "missing key 'experiment' in experiment", {},
                    {"experiment: what is simulated; one of " + comma_joined(names)});
  diagnostics.throw_if_errors();
}

/// @throws config::ConfigError for a calibration that is not there: no value goes with that, so it
/// is no contradiction of values
void require_calibration(const LoadedExperiment& loaded) {
  const auto* e = dynamic_cast<const MachineExperiment*>(loaded.experiment.get());
  if (e == nullptr) return;
  try {
    calibration_file(e->calibration, e->system.accelerator);
  } catch (const config::KeyError& error) {
    config::throw_located(error, loaded.node);
  }
}

/// Checks what keys say together, first without the machine, then with it.
void check_and_bind(LoadedExperiment& loaded, config::Diagnostics& diagnostics) {
  Experiment& e = *loaded.experiment;
  e.check(loaded.node, diagnostics);
  if (diagnostics.has_errors()) return;
  try {
    e.bind_machines();
    e.check_machine(loaded.node, diagnostics);
  } catch (const config::KeyError& error) {
    config::report(error, loaded.node, diagnostics);
  }
}

}  // namespace

void strip_system_names(nlohmann::ordered_json& system) {
  erase_keys(system, {"name", "remarks", "installation"});
  erase_keys(system["scale_up"], {"calibration"});
  erase_keys(system["accelerator"], names_of_accelerator());
}

void MachineExperiment::check_names(const config::Node& node,
                                    config::Diagnostics& diagnostics) const {
  check_topologies(system, nodes, "system", node, diagnostics);
}

void MachineExperiment::bind_machines() {
  machine_ = std::make_shared<const Machine>(system, nodes, calibration, part(), engine_kernels());
  system = machine_->system();
}

std::vector<std::string> MachineExperiment::followed() const { return orrery::followed(system); }

std::vector<config::KeyError> MachineExperiment::doubts() const {
  return orrery::doubts(system.accelerator, "system.accelerator.");
}

std::vector<std::string> MachineExperiment::known_errors() const {
  const AcceleratorConfig& device = system.accelerator;
  return lines_of(device.known_errors, device.name, kind, products());
}

double MachineExperiment::known_slowness() const {
  return slowest_of(system.accelerator.known_errors, kind, products());
}

void MachineExperiment::share_machines(const std::shared_ptr<const Experiment>& other) {
  const auto& same = dynamic_cast<const MachineExperiment&>(*other);
  system = same.system;
  machine_ = {other, same.machine_.get()};
}

bool MachineExperiment::of_machines(const std::string& path) const {
  return path == "nodes" || path.starts_with("system.");
}

void MachineExperiment::strip_names(nlohmann::ordered_json& configuration) const {
  strip_system_names(configuration["system"]);
}

const config::Choices& Experiment::choices() { return ExperimentKinds::choices(kTag, {}); }

const Experiment* Experiment::view(const std::string& kind, void* object) {
  return ExperimentKinds::view(kind, object);
}

const config::Record& record_of(const config::Node& node,
                                const std::vector<config::Assignment>& settings,
                                config::Diagnostics& diagnostics) {
  const config::Node* tag = node.is_map() ? node.find(kTag) : nullptr;
  for (const config::Assignment& setting : settings)
    if (setting.path == kTag) tag = &setting.value;
  if (tag == nullptr) refuse_without_kind(node, diagnostics);
  const std::string name = tag->is_scalar() ? tag->text() : std::string();
  const auto kind = ExperimentKinds::items().find(name);
  if (kind != ExperimentKinds::items().end()) return kind->second.record();
  const std::vector<std::string> names = Experiment::choices().names();
  diagnostics.error(tag->where(), tag->length(),
                    "expected one of " + comma_joined(names) + ", got " + config::description(*tag),
                    nearest_name(name, names));
  diagnostics.throw_if_errors();
  throw std::logic_error("unreachable: an error was reported");
}

std::string identity_text_of(const Experiment& experiment, nlohmann::ordered_json configuration,
                             const std::vector<InputFile>& files) {
  // Of calibration and measurement files the content is hashed, not the name.
  erase_keys(configuration, {"name", "calibration", "measured"});
  experiment.strip_names(configuration);
  std::vector<FileHash> hashes;
  hashes.reserve(files.size());
  for (const InputFile& file : files) hashes.push_back({file.role, file.sha256});
  return identity_text(configuration, std::move(hashes));
}

LoadedExperiment load_point(const config::Node& node, config::Diagnostics& diagnostics,
                            const config::Library& library) {
  LoadedExperiment loaded;
  loaded.record = &record_of(node, {}, diagnostics);
  loaded.node = config::complete(node, *loaded.record, diagnostics, library);
  const std::shared_ptr<void> object = loaded.record->make();
  loaded.experiment = std::shared_ptr<Experiment>(
      object, ExperimentKinds::view(node.find(kTag)->text(), object.get()));
  const int broken = config::fill_and_count_broken_relations(object.get(), loaded.node,
                                                             *loaded.record, diagnostics);
  loaded.experiment->check_names(loaded.node, diagnostics);
  if (diagnostics.error_count() > broken) diagnostics.throw_if_errors();
  if (broken == 0) {
    require_calibration(loaded);
    loaded.experiment->complete(loaded.node, diagnostics);
    check_and_bind(loaded, diagnostics);
  }
  loaded.configuration = config::canonical(loaded.node, *loaded.record);
  if (diagnostics.has_errors()) {
    loaded.contradiction = diagnostics.render();
    return loaded;
  }
  const std::vector<std::string> followed = loaded.experiment->followed();
  if (!followed.empty()) {
    diagnostics.warning(loaded.node.where(), 1,
                        "figures of the machine follow those that were changed", followed);
  }
  for (const config::KeyError& doubt : loaded.experiment->doubts())
    config::report(doubt, loaded.node, diagnostics, config::Diagnostic::Severity::kWarning);
  loaded.files = loaded.experiment->input_files();
  loaded.identity =
      sha256_hex(identity_text_of(*loaded.experiment, loaded.configuration, loaded.files));
  loaded.warnings = diagnostics.render_warnings();
  return loaded;
}

SettingList settings_of(const config::Node& map) {
  SettingList settings;
  for (const auto& entry : map.entries())
    settings.push_back({entry.key, entry.value, entry.key_origin});
  return settings;
}

namespace {

LoadedExperiment load_with(config::Node node, const SettingList& settings,
                           config::Diagnostics& diagnostics, const config::Library& library) {
  diagnostics.throw_if_errors();
  const config::Record& record = record_of(node, settings, diagnostics);
  for (const config::Assignment& setting : settings)
    config::apply_override(node, record, setting, diagnostics, library);
  diagnostics.throw_if_errors();
  return load_point(node, diagnostics, library);
}

}  // namespace

LoadedExperiment load_point_with_settings(const config::Node& experiment,
                                          const SettingList& settings,
                                          config::Diagnostics& diagnostics,
                                          const config::Library& library) {
  config::Node node =
      experiment.is_scalar()
          ? config::load_referenced(experiment, diagnostics, library)
          : config::resolve_extends(experiment, "experiments", diagnostics, library);
  return load_with(std::move(node), settings, diagnostics, library);
}

LoadedExperiment load_experiment(config::Node node, const std::vector<std::string>& overrides,
                                 config::Diagnostics& diagnostics, const config::Library& library) {
  node = config::resolve_extends(std::move(node), {}, diagnostics, library);
  diagnostics.throw_if_errors();
  SettingList settings;
  for (const std::string& text : overrides)
    if (auto setting = config::parse_assignment(text, diagnostics))
      settings.push_back(std::move(*setting));
  LoadedExperiment loaded = load_with(std::move(node), settings, diagnostics, library);
  diagnostics.throw_if_errors();
  return loaded;
}

LoadedExperiment load_experiment(const std::string& path, const std::vector<std::string>& overrides,
                                 const config::Library& library) {
  config::Diagnostics diagnostics;
  config::Node node = config::load_file(path, diagnostics, library);
  diagnostics.throw_if_errors();
  return load_experiment(std::move(node), overrides, diagnostics, library);
}

}  // namespace orrery
