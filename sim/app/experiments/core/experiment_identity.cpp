// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/experiment_identity.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "sim/results/identity.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

/// Without what only names things: labels, and the names of calibration and measurement files,
/// whose content is hashed instead.
nlohmann::ordered_json identity_configuration(const Experiment& experiment,
                                              nlohmann::ordered_json configuration) {
  erase_keys(configuration, {"name", "calibration", "measured"});
  experiment.strip_names(configuration);
  return configuration;
}

}  // namespace

std::string identity_text_of(const Experiment& experiment,
                             const nlohmann::ordered_json& configuration,
                             const std::vector<InputFile>& files) {
  std::vector<FileHash> hashes;
  hashes.reserve(files.size());
  for (const InputFile& file : files) hashes.push_back({file.role, file.sha256});
  return identity_text(identity_configuration(experiment, configuration), std::move(hashes));
}

std::string identity_of(const Experiment& experiment, const nlohmann::ordered_json& configuration,
                        const std::vector<InputFile>& files) {
  return sha256_hex(identity_text_of(experiment, configuration, files));
}

}  // namespace orrery
