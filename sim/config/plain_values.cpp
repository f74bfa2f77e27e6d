// SPDX-License-Identifier: Apache-2.0
#include "sim/config/plain_values.h"

#include <algorithm>

#include "sim/config/changes.h"

namespace orrery::config {
namespace {

bool writes_plain_facts(const Node& before, const Node& after, const Record& record);

/// Whether a value, or one below it, is a Fact that was written anew without a source.
bool writes_plain_fact(const Node* before, const Node& after, const Type& type) {
  static const Node kNothing;
  const Node& base = before != nullptr ? *before : kNothing;
  switch (type.kind) {
    case TypeKind::kOptional:
      return writes_plain_fact(before, after, *type.element);
    case TypeKind::kFact: {
      if (after.is_map()) return false;
      Node was = Node::map({}), is = Node::map({});
      if (before != nullptr) was.set("fact", *before, {});
      is.set("fact", after, {});
      return Changes(was, is).has("fact");
    }
    case TypeKind::kMap:
      return std::any_of(
          after.entries().begin(), after.entries().end(), [&](const Node::Entry& entry) {
            return writes_plain_fact(base.find(entry.key), entry.value, *type.element);
          });
    case TypeKind::kRecord:
      return writes_plain_facts(base, after, type.record());
    default:
      return false;
  }
}

bool writes_plain_facts(const Node& before, const Node& after, const Record& record) {
  return std::any_of(record.fields().begin(), record.fields().end(), [&](const Field& field) {
    const Node* value = after.find(field.key);
    return value != nullptr && writes_plain_fact(before.find(field.key), *value, *field.type);
  });
}

}  // namespace

const Node* changed_by_what_if(const Node& node, const Record& record) {
  const Node* before = node.before().get();
  while (before != nullptr && !writes_plain_facts(*before, node, record))
    before = before->before().get();
  return before;
}

}  // namespace orrery::config
