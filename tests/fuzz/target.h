// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace orrery {

/// What a fuzzer gives bytes to: reads them, as if they were a file, and lets nothing out but bugs:
/// inputs that are wrong end in a ConfigError, which is caught.
struct FuzzTarget {
  const char* name;  ///< also of its corpus, corpora/NAME
  void (*run)(std::string_view bytes);
};

std::span<const FuzzTarget> fuzz_targets();

}  // namespace orrery
