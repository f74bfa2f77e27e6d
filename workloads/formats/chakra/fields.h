// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/transfer.h"
#include "sim/units/time.h"
#include "workloads/formats/base/wire_writer.h"
#include "workloads/formats/chakra/nodes.h"

/// Parts of Chakra's nodes (et_def.proto) as they are written. Attributes have the types that
/// Chakra's own writers choose (int64_val 9, bool_val 27, ...).
namespace orrery::chakra {

inline constexpr unsigned kAttribute = 10, kDouble = 3, kInt32 = 7, kInt64 = 9, kUint64 = 13,
                          kBool = 27, kString = 29;

inline void put_attribute(std::string& out, std::string_view name, unsigned type,
                          std::int64_t value, unsigned field = kAttribute) {
  std::string attribute;
  put_text(attribute, 1, name);
  put_number(attribute, type, static_cast<std::uint64_t>(value));
  put_text(out, field, attribute);
}
inline void put_attribute(std::string& out, std::string_view name, std::string_view text) {
  std::string attribute;
  put_text(attribute, 1, name);
  put_text(attribute, kString, text);
  put_text(out, kAttribute, attribute);
}
/// As an integer of the type that readers expect, unless it is none.
inline void put_amount(std::string& out, std::string_view name, unsigned type, double value) {
  if (value == std::floor(value)) {
    put_attribute(out, name, type, static_cast<std::int64_t>(value));
    return;
  }
  std::string attribute;
  put_text(attribute, 1, name);
  put_real(attribute, kDouble, value);
  put_text(out, kAttribute, attribute);
}

/// What stands first in a node, behind its identifier.
inline std::string begun_node(std::string_view name, ChakraType type) {
  std::string node;
  put_text(node, 2, name);
  put_number(node, 3, static_cast<std::uint64_t>(type));
  return node;
}

inline void put_duration(std::string& node, Picoseconds time) {
  constexpr double kPicosecondsPerMicro = 1e6;
  const double micros = static_cast<double>(time) / kPicosecondsPerMicro;
  put_number(node, 7, static_cast<std::uint64_t>(std::llround(micros)));
  put_attribute(node, "orrery.duration_ps", kInt64, static_cast<std::int64_t>(time));
}

/// CollectiveCommType; -1: Chakra has none.
std::int64_t collective_type(TransferKind kind);

/// A list of ranks as JSON and Python print it.
void put_list(std::string& text, const std::vector<int>& ranks);

/// Communicators in PyTorch's words, as METADATA nodes have them.
std::string process_groups_text(
    const std::vector<std::pair<std::string, std::vector<int>>>& groups);

}  // namespace orrery::chakra
