// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/operator.h"

#include <stdexcept>

namespace orrery {
namespace {

using Registry = std::map<std::string, OperatorInfo>;

/// Made at its first use, because operators of other files register while statics are initialised.
Registry& registry() {
  static Registry registered;
  return registered;
}

}  // namespace

const std::map<std::string, OperatorInfo>& operators() { return registry(); }

void register_operator(const std::string& kind, const OperatorInfo& info) {
  if (!registry().emplace(kind, info).second)
    throw std::logic_error("operator registered twice: " + kind);
}

const config::Choices& OperatorConfig::choices() {
  static const config::Choices all = [] {
    config::Choices choices{.tag = "kind", .fallback = "gemm", .records = {}};
    for (const auto& [name, info] : registry()) choices.records.emplace(name, info.record);
    return choices;
  }();
  return all;
}

const OperatorConfig* OperatorConfig::view(const std::string& kind, void* object) {
  return registry().at(kind).view(object);
}

}  // namespace orrery
