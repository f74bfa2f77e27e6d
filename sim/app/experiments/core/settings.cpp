// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/settings.h"

#include "sim/config/load.h"

namespace orrery {

SettingList settings_of(const config::Node& map) {
  SettingList settings;
  for (const auto& entry : map.entries())
    settings.push_back({entry.key, entry.value, entry.key_origin});
  return settings;
}

LoadedExperiment load_point_with_settings(const config::Node& experiment,
                                          const SettingList& settings,
                                          config::Diagnostics& diagnostics,
                                          const config::Library& library) {
  config::Node node;
  if (experiment.is_scalar()) {
    node = config::load_referenced(experiment, diagnostics, library);
  } else {
    node = config::resolve_extends(experiment, "experiments", diagnostics, library);
  }
  diagnostics.throw_if_errors();
  const config::Record& record = record_of(node, settings, diagnostics);
  for (const config::Assignment& setting : settings) {
    config::apply_override(node, record, setting, diagnostics, library);
  }
  diagnostics.throw_if_errors();
  return load_point(node, diagnostics, library);
}

}  // namespace orrery
