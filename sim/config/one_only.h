// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/config/registry.h"

namespace orrery::config {

/// Why a key has one value.
struct OneOnly {
  std::string reason;
};

/// `const RegisterOneOnly cards("accelerator", "all cards of a system are of one kind");`. A list
/// in place of the value is refused with that reason.
struct RegisterOneOnly : Registry<OneOnly>::Register {
  RegisterOneOnly(const std::string& key, const std::string& reason)
      : Register(key, "", {reason}) {}
};

}  // namespace orrery::config
