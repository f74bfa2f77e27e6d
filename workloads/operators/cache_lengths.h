// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/operators/operator.h"

namespace orrery {

/// How many tokens the caches of a batch have: `kv_length` each, or those of a list that is
/// repeated until every sequence has one.
struct CacheLengths {
  std::int64_t batch = 1;
  std::int64_t kv_length = 0;  ///< 0: the list says
  std::vector<std::int64_t> kv_lengths;

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
    if (!std::ranges::any_of(kv_lengths, differs)) return;
    for (std::int64_t i = 0; i < core.sequences; ++i)
      core.contexts.push_back(kv_lengths[static_cast<std::size_t>(i) % kv_lengths.size()]);
  }
};

/// Keys of a struct with CacheLengths among its bases.
template <class T>
config::Schema<T> cached_schema(const char* kind, const char* help) {
  using config::between;
  return operator_schema<T>(kind, help)
      .optional("batch", static_cast<std::int64_t T::*>(&CacheLengths::batch),
                "number of sequences", between(1, operator_limits::kSequences))
      .optional("kv_length", static_cast<std::int64_t T::*>(&CacheLengths::kv_length),
                "tokens of a sequence, the new one included", between(0, operator_limits::kTokens))
      .optional("kv_lengths",
                static_cast<std::vector<std::int64_t> T::*>(&CacheLengths::kv_lengths),
                "tokens of each sequence, where they differ; repeated to fill the batch",
                between(1, operator_limits::kTokens))
      .check([](const T& c) { return c.fault(); }, "kv_lengths");
}

}  // namespace orrery
