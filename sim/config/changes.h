// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "sim/config/node.h"

namespace orrery::config {

/// Which values of a map a what-if wrote. Both maps must outlive this object.
class Changes {
 public:
  Changes(const Node& before, const Node& after) : before_(before), after_(after) {}

  /// Whether the what-if wrote the value at a dotted path, be it the same number.
  bool has(std::string_view path) const;

 private:
  const Node& before_;
  const Node& after_;
};

}  // namespace orrery::config
