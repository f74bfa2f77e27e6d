// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "sim/config/declared.h"
#include "workloads/models/image_rules.h"

namespace orrery {

/// Pixels of an image.
struct ImageConfig {
  std::int64_t height = 1024, width = 1024;
  static const config::Schema<ImageConfig>& schema();
};

/// The size as it is written; nothing in it where none is.
inline ImageSize size_of(const std::optional<ImageConfig>& image) {
  return image ? ImageSize{image->height, image->width} : ImageSize{};
}

}  // namespace orrery
