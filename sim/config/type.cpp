// SPDX-License-Identifier: Apache-2.0
#include "sim/config/type.h"

#include "sim/config/node.h"

namespace orrery::config::detail {

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
