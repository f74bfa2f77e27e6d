// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/layers/parts/attention_kernels.h"

namespace orrery {

/// How many tokens the caches of a batch have: `kv_length` each, or those of a list that is
/// repeated until every sequence has one.
struct CacheLengths {
  std::int64_t batch = 1;
  std::int64_t kv_length = 0;  ///< 0: the list says
  const std::vector<std::int64_t>& kv_lengths;

  /// What is wrong, or nothing.
  std::string fault() const {
    if ((kv_length > 0) == !kv_lengths.empty()) return "wants either kv_length or kv_lengths";
    const auto count = static_cast<std::int64_t>(kv_lengths.size());
    if (count > 0 && sequences() % count != 0)
      return "batch must be a multiple of the number of kv_lengths";
    return {};
  }

  /// At least one for each length.
  std::int64_t sequences() const {
    return std::max(batch, static_cast<std::int64_t>(kv_lengths.size()));
  }

  /// Lengths that do not differ are one.
  void set(AttentionCore& core) const {
    core.sequences = sequences();
    core.context = kv_lengths.empty() ? kv_length : mean_length(kv_lengths);
    const auto differs = [this](std::int64_t length) { return length != kv_lengths.front(); };
    if (!std::any_of(kv_lengths.begin(), kv_lengths.end(), differs)) return;
    for (std::int64_t i = 0; i < core.sequences; ++i)
      core.contexts.push_back(kv_lengths[static_cast<std::size_t>(i) % kv_lengths.size()]);
  }
};

}  // namespace orrery
