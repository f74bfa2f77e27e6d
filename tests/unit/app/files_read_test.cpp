// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/app/sweeps/workers/isolate.h"
#include "sim/config/input_files.h"

namespace orrery::files_read_test {
namespace {

void add_origins(const config::Node& node, std::set<std::string>& files) {
  if (node.origin().kind == config::Origin::Kind::kFile) files.insert(*node.origin().file);
  if (node.is_map())
    for (const auto& entry : node.entries()) add_origins(entry.value, files);
  if (node.is_sequence())
    for (const config::Node& item : node.items()) add_origins(item, files);
}

/// Runs an experiment in a process of its own.
/// @return "N files" that it opened, then those that are not in its identity
std::string files_of(const std::string& experiment, const std::vector<std::string>& overrides) {
  const auto outcome = run_isolated([&] {
    const LoadedExperiment loaded = load_experiment(experiment, overrides);
    simulate(loaded);
    std::set<std::string> known;
    add_origins(loaded.node, known);
    for (const InputFile& file : loaded.files) {
      known.insert(file.path);
      if (file.role == "calibrated_device")
        add_origins(
            loaded_calibration(calibration_file(loaded.experiment->calibration,
                                                loaded.as<MachineExperiment>().system.accelerator))
                ->device_configuration,
            known);
    }
    const auto opened = config::input_files().hashes();
    std::string text = std::to_string(opened.size()) + " files";
    for (const auto& [path, hash] : opened)
      if (known.count(path) == 0) text += "\n" + path;
    return text;
  });
  const auto* text = std::get_if<std::string>(&outcome);
  return text != nullptr ? *text : std::get<Failure>(outcome).message;
}

const std::string kExperiments = ORRERY_SOURCE_DIR "/configs/experiments/";

// The experiment, its system, protocols and accelerator with what they extend, and the calibration.
TEST(FilesRead, AreAllInTheIdentity) {
  EXPECT_EQ(files_of(kExperiments + "gemm_int4_h200.yaml", {"calibration=a100_sxm"}),
            "7 files");  // the device a100_sxm, which was calibrated, is one
  EXPECT_EQ(files_of(kExperiments + "dispatch_h800.yaml", {}), "7 files");
  EXPECT_EQ(files_of(kExperiments + "selene_22b_layer.yaml", {}), "9 files");
}

TEST(FilesRead, AFileThatChangesBetweenItsHashAndItsUseIsAnError) {
  LoadedExperiment loaded = load_experiment(kExperiments + "gemm_int4_h200.yaml", {});
  ASSERT_FALSE(loaded.files.empty());
  loaded.files.front().sha256[0] ^= 1;
  EXPECT_THROW(simulate(loaded), config::ConfigError);
}

}  // namespace
}  // namespace orrery::files_read_test
