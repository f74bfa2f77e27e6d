// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace orrery {

/// A number about hardware with where it comes from. In YAML either plain (`3.35 TB/s`) or
/// `{value: 392 GB/s, source: ..., nameplate: 2800 Gb/s, nameplate_source: ..., reason: ...}`.
template <class T>
struct Fact {
  T value{};                ///< what simulations use
  std::string source = {};  ///< document it was read in
  /// The published figure, where it differs; shown by `describe`.
  std::optional<T> nameplate = std::nullopt;
  std::string nameplate_source = {};
  std::string reason = {};  ///< why simulations do not use the nameplate figure

  const T& published() const { return nameplate ? *nameplate : value; }
};

}  // namespace orrery
