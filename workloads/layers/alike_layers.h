// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "workloads/models/llm_config.h"

namespace orrery {

/// A function of a layer, worked out once for all layers that are alike: models have few kinds of
/// layers, and steps, memory and sweeps ask for each of them.
template <class Of>
class OfAlikeLayers {
 public:
  explicit OfAlikeLayers(Of of) : of_(std::move(of)) {}

  const auto& operator()(const LayerConfig& layer) {
    const auto known =
        std::ranges::find_if(known_, [&](const auto& one) { return *one.first == layer; });
    if (known != known_.end()) return known->second;
    return known_.emplace_back(&layer, of_(layer)).second;
  }

 private:
  Of of_;
  std::vector<std::pair<const LayerConfig*, std::invoke_result_t<Of, const LayerConfig&>>> known_;
};

}  // namespace orrery
