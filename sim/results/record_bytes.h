// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "sim/results/run_record.h"

namespace orrery {

/// Numbers and texts one after the other, for a process of the same program.
class ByteWriter {
 public:
  void add(std::uint64_t number);
  void add(double number);
  void add(std::string_view text);
  /// The elements' own bytes, as one text.
  template <class T>
  void add_array(const std::vector<T>& values) {
    add(std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads them back in the same order. Every function throws std::out_of_range behind the end.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  std::uint64_t number();
  double real();
  std::string text();
  template <class T>
  std::vector<T> array() {
    const std::string bytes = text();
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  const char* take(std::size_t count);
  std::string_view rest_;
};

/// All of a record but its configuration, which both processes have.
void add(ByteWriter& bytes, const RunRecord& record);
RunRecord read_record(ByteReader& bytes);

/// SHA-256 over what was computed: status, reason, metrics, labels, classes, links, provenance;
/// numbers by their bits, -0 as 0, metrics and labels in any order. Not over inputs (the identity
/// has them), names or wall time.
std::string result_digest(const RunRecord& record);

}  // namespace orrery
