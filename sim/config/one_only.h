// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace orrery::config {

/// Declares that a key has one value, and why: `const RegisterOneOnly cards("accelerator", "all
/// cards of a system are of one kind");`. A list in its place is refused with that reason.
struct RegisterOneOnly {
  RegisterOneOnly(const std::string& key, const std::string& reason);
};

/// Why a key has one value; null: it was not declared.
const std::string* one_only(std::string_view key);

}  // namespace orrery::config
