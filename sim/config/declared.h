// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::config {

// Headers of configured structs name these; the files that define their schemas include schema.h.
class Diagnostics;
class Library;
class Node;
template <class T>
class Schema;

/// The names of an enumeration in YAML. Specialise it where the enumeration is configured:
/// @code
/// template <> struct EnumNames<Precision> {
///   static constexpr std::pair<Precision, const char*> values[] = {{Precision::kBf16, "bf16"},
///   ...};
/// };
/// @endcode
template <class E>
struct EnumNames;

}  // namespace orrery::config
