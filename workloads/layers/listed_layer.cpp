// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/listed_layer.h"

#include <stdexcept>

namespace orrery {
namespace {

using Kinds = std::map<std::string, ListedLayerInfo>;

/// Made at its first use, because kinds of other files register while statics are initialised.
Kinds& kinds() {
  static Kinds registered;
  return registered;
}

}  // namespace

const std::map<std::string, ListedLayerInfo>& listed_layers() { return kinds(); }

void register_listed_layer(const std::string& kind, const ListedLayerInfo& info) {
  if (!kinds().emplace(kind, info).second)
    throw std::logic_error("kind of layer registered twice: " + kind);
}

const config::Choices& ListedLayer::choices() {
  static const config::Choices all = [] {
    config::Choices choices{.tag = "kind", .fallback = "", .records = {}};
    for (const auto& entry : kinds()) choices.records.emplace(entry.first, entry.second.record);
    return choices;
  }();
  return all;
}

const ListedLayer* ListedLayer::view(const std::string& kind, void* object) {
  return kinds().at(kind).view(object);
}

}  // namespace orrery
