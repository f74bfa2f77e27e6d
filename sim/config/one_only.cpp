// SPDX-License-Identifier: Apache-2.0
#include "sim/config/one_only.h"

#include <map>

namespace orrery::config {
namespace {

/// Reasons by key. Function-local: other translation units register while statics are initialised.
std::map<std::string, std::string, std::less<>>& reasons() {
  static std::map<std::string, std::string, std::less<>> all;
  return all;
}

}  // namespace

RegisterOneOnly::RegisterOneOnly(const std::string& key, const std::string& reason) {
  reasons().emplace(key, reason);
}

const std::string* one_only(std::string_view key) {
  const auto found = reasons().find(key);
  return found == reasons().end() ? nullptr : &found->second;
}

}  // namespace orrery::config
