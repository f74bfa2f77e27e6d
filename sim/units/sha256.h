// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace orrery {

/// SHA-256 (FIPS 180-4) of the bytes, as 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

/// SHA-256 of bytes that come in parts.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::string_view bytes);
  /// The digits of all that was added so far, with `rest` behind it: what many texts begin with is
  /// hashed once.
  std::string hex(std::span<const std::string_view> rest = {}) const;

 private:
  struct State;  ///< context of OpenSSL
  std::unique_ptr<State> state_;
};

}  // namespace orrery
