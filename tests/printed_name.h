// SPDX-License-Identifier: Apache-2.0
// Names of parameterised tests: `INSTANTIATE_TEST_SUITE_P(Hub, Totals, rows, PrintedName())`.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>

namespace orrery {

/// Letters and digits of a text, with one '_' for each run of other characters between them:
/// GoogleTest takes no others in names.
inline std::string test_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool taken = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (taken) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  if (name.ends_with('_')) name.pop_back();
  return name;
}

/// The name of a parameter is its printed form: `PrintTo` of its type.
struct PrintedName {
  template <class T>
  std::string operator()(const testing::TestParamInfo<T>& tested) const {
    return test_name(testing::PrintToString(tested.param));
  }
};

}  // namespace orrery
