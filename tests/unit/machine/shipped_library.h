// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/config/load.h"
#include "sim/machine/system_config.h"

namespace orrery {

/// The library of the source tree, whatever ORRERY_CONFIGS says.
inline const config::Library& shipped_library() {
  static const config::Library shipped(std::string(ORRERY_SOURCE_DIR) + "/configs");
  return shipped;
}

inline AcceleratorConfig shipped_accelerator(const std::string& name) {
  const std::string kind = "accelerators";
  const config::Library& library = shipped_library();
  return config::load<AcceleratorConfig>(library.locate(kind, name, ""), library, kind);
}

/// An accelerator written in `yaml`, which may extend one of the library. All messages go to
/// `messages`; the accelerator means something only when there are none.
inline AcceleratorConfig accelerator_of(const std::string& yaml, std::string& messages) {
  config::Diagnostics diagnostics;
  const config::Node node =
      config::resolve_extends(config::parse_yaml(yaml, "test.yaml", diagnostics), "accelerators",
                              diagnostics, shipped_library());
  const auto accelerator = config::read<AcceleratorConfig>(node, diagnostics, shipped_library());
  messages = diagnostics.render();
  return accelerator;
}

}  // namespace orrery
