// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "workloads/layers/sparse/indexer_kernels.h"
#include "workloads/operators/recurrent_keys.h"

namespace orrery {

/// New tokens of sequences, and what each of them sees.
struct ChosenKeys : RecurrentTokens {
  std::int64_t kv_length = 0;  ///< tokens of each sequence, the new ones included; 0: they are all
  std::int64_t top_k = 0;

  std::string fault() const {
    if (kv_length > 0 && kv_length < query) return "kv_length counts the new tokens too";
    return {};
  }

  SeenKeys seen() const {
    AttentionPart part;
    part.phase = Phase::kPrefill;
    part.sequences = batch;
    part.query = query;
    part.context = kv_length > 0 ? kv_length : query;
    return seen_keys(part, 1, top_k);
  }
};

/// Keys of a struct with ChosenKeys among its bases, but top_k.
template <class T>
config::Schema<T> chosen_schema(const char* kind, const char* help) {
  using config::between;
  return recurrent_schema<T>(kind, help, "new tokens of each sequence")
      .optional("kv_length", static_cast<std::int64_t T::*>(&ChosenKeys::kv_length),
                "tokens of each sequence, the new ones included; 0: there are no others",
                between(0, operator_limits::kTokens))
      .check([](const T& c) { return c.fault(); }, "kv_length");
}

}  // namespace orrery
