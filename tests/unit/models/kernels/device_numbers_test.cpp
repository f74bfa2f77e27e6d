// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/same_machine.h"

#include <gtest/gtest.h>

#include "sim/config/load.h"
#include "sim/config/output.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::device_numbers_test {
namespace {

/// Costs of communication, energies that no cap is solved with, and what says where a device comes
/// from.
bool is_left_out(const std::string& path) {
  for (const char* prefix :
       {"energy.scale_", "energy.multiply_add.", "energy.shared", "scale_up.", "scale_out.",
        "partition.", "power.response", "power.spread", "power.uncertainty",
        "compute.full_accumulation", "launch.dependent", "year"})
    if (path.starts_with(prefix)) return true;
  return false;
}

config::Node* at(config::Node& node, const std::string& path) {
  config::Node* found = &node;
  for (std::size_t begin = 0; found != nullptr && begin <= path.size();) {
    const std::size_t dot = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, dot - begin);
    found = found->is_sequence() ? &found->item(std::stoul(key)) : found->find(key);
    begin = dot + 1;
  }
  return found;
}

/// The device with one number of its file changed; not checked, so that each can change alone.
AcceleratorConfig changed(const config::Node& completed, const config::Leaf& leaf) {
  config::Node node = completed;
  config::Node* value = at(node, leaf.path);
  if (value->is_map()) value = value->find("value");
  const std::string text = leaf.unit.empty()
                               ? std::to_string(static_cast<int>(*leaf.value) + 1)
                               : "1.37" + value->text().substr(value->text().find(' '));
  *value = config::Node::scalar(text, value->origin());
  config::Diagnostics diagnostics;
  AcceleratorConfig accelerator;
  config::fill(&accelerator, node, AcceleratorConfig::schema().record(), diagnostics);
  return accelerator;
}

TEST(DeviceNumbers, EveryNumberThatAKernelCanDependOnCounts) {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  const config::Record& record = AcceleratorConfig::schema().record();
  std::size_t numbers = 0;
  for (const char* name : {"h200_sxm", "b200_sxm", "ascend_910c"}) {
    config::Diagnostics diagnostics;
    const config::Node node =
        config::complete(config::load_file(library.locate("accelerators", name, ""), diagnostics,
                                           library, "accelerators"),
                         record, diagnostics, library);
    diagnostics.throw_if_errors();
    AcceleratorConfig accelerator;
    config::fill(&accelerator, node, record, diagnostics);
    const DeviceNumbers before = device_numbers(accelerator);
    for (const config::Leaf& leaf : config::flatten(node, record)) {
      if (!leaf.value || is_left_out(leaf.path)) continue;
      EXPECT_NE(device_numbers(changed(node, leaf)), before) << name << ": " << leaf.path;
      ++numbers;
    }
  }
  EXPECT_GT(numbers, 80U);
}

TEST(DeviceNumbers, FlagsCountToo) {
  const AcceleratorConfig device = shipped_accelerator("h200_sxm");
  AcceleratorConfig waiting = device, apart = device, issued = device;
  waiting.core->async_copy.value = false;
  apart.cache->duplicated.value = false;
  issued.core->matrix_tile->issue = MatrixIssue::kWarp;
  EXPECT_NE(device_numbers(issued), device_numbers(device));
  EXPECT_NE(device_numbers(waiting), device_numbers(device));
  EXPECT_NE(device_numbers(apart), device_numbers(device));
}

}  // namespace
}  // namespace orrery::device_numbers_test
