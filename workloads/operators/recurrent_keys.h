// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "workloads/operators/operator.h"

namespace orrery {

/// New tokens of sequences that a recurrence goes over.
struct RecurrentTokens {
  std::int64_t batch = 1, query = 1;
};

/// Keys of a struct with RecurrentTokens among its bases.
template <class T>
config::Schema<T> recurrent_schema(const char* kind, const char* help, const char* query_help) {
  using config::between;
  return operator_schema<T>(kind, help)
      .optional("batch", static_cast<std::int64_t T::*>(&RecurrentTokens::batch),
                "number of sequences", between(1, operator_limits::kSequences))
      .optional("query", static_cast<std::int64_t T::*>(&RecurrentTokens::query), query_help,
                between(1, operator_limits::kTokens));
}

inline constexpr const char* kChunkTokens = "tokens of each sequence";
inline constexpr const char* kNewTokens =
    "new tokens of each sequence: more than one are draft tokens";

}  // namespace orrery
