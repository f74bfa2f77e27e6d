// SPDX-License-Identifier: Apache-2.0
#include "sim/config/type.h"

#include "sim/config/node.h"
#include "sim/config/schema.h"

namespace orrery::config {

std::vector<std::string> Choices::names() const {
  std::vector<std::string> names;
  names.reserve(records.size());
  for (const auto& [name, record] : records) names.push_back(name);
  return names;
}

std::string Choices::name_in(const Node& node) const {
  const Node* given = node.find(tag);
  if (given == nullptr) {
    for (const auto& [key, name] : telling)
      if (node.find(key) != nullptr) return name;
    return fallback;
  }
  return given->is_scalar() ? given->text() : std::string();
}

const Record* Choices::record_of(const Node& node) const {
  const auto found = records.find(name_in(node));
  return found == records.end() ? nullptr : &found->second();
}

}  // namespace orrery::config

namespace orrery::config::detail {

std::shared_ptr<void> make_object(const Record& record) { return record.make(); }

Type TypeOf<FilePath>::make() {
  Type type;
  type.kind = TypeKind::kPath;
  type.store = [](void* value, const Scalar& scalar) {
    static_cast<FilePath*>(value)->path = std::get<std::string>(scalar);
  };
  type.load = [](const void* value) -> Scalar { return static_cast<const FilePath*>(value)->path; };
  return type;
}

Type TypeOf<Node>::make() {
  Type type;
  type.kind = TypeKind::kNode;
  type.assign = [](void* value, const Node& node) { *static_cast<Node*>(value) = node; };
  return type;
}

}  // namespace orrery::config::detail
