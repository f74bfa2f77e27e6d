// SPDX-License-Identifier: Apache-2.0
#include "sim/config/changes.h"

namespace orrery::config {
namespace {

bool same_place(const Node& a, const Node& b) {
  const Origin &one = a.origin(), &other = b.origin();
  const bool same_file =
      one.file == other.file || (one.file && other.file && *one.file == *other.file);
  return one.kind == other.kind && same_file && one.line == other.line &&
         one.column == other.column;
}

/// The value of a Fact, whichever way it is written.
const Node& value_in(const Node& fact) {
  const Node* value = fact.find("value");
  return value != nullptr ? *value : fact;
}

}  // namespace

bool Changes::has(std::string_view path) const {
  const Node* after = after_.at_path(path);
  if (after == nullptr || after->is_null()) return false;
  const Node* before = before_.at_path(path);
  return before == nullptr || !same_place(value_in(*before), value_in(*after));
}

}  // namespace orrery::config
