// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sim/config/type.h"
#include "workloads/layers/recurrent/delta_net_kernels.h"
#include "workloads/operators/recurrent_keys.h"

namespace orrery {

/// What has a decay of its own: gated delta networks, or Kimi delta attention.
enum class DeltaDecays : std::uint8_t { kHead, kColumn };

/// Heads of a gated delta network on a rank. Defaults are the widths of Qwen3-Next.
struct DeltaHeads {
  std::int64_t heads = 0, key_heads = 0;  ///< 0 key heads: one for each head
  std::int64_t key_dim = 128, value_dim = 128;
  DeltaDecays decays = DeltaDecays::kHead;

  /// What is wrong, or nothing.
  std::string fault() const {
    if (key_heads > 0 && heads % key_heads != 0) return "key_heads must divide heads";
    return {};
  }

  DeltaShape shape(const RecurrentTokens& tokens, double bytes) const {
    DeltaNetConfig net;
    net.value_heads = heads;
    net.key_heads = key_heads > 0 ? key_heads : heads;
    net.key_dim = key_dim;
    net.value_dim = value_dim;
    return delta_shape(net, 1, tokens.batch, tokens.query, bytes);
  }
};

template <>
struct config::EnumNames<DeltaDecays> {
  static constexpr std::pair<DeltaDecays, const char*> values[] = {
      {DeltaDecays::kHead, "head"}, {DeltaDecays::kColumn, "column"}};
};

/// Keys of a struct with RecurrentTokens and DeltaHeads among its bases.
template <class T>
config::Schema<T> delta_schema(const char* kind, const char* help, const char* query_help) {
  using config::between;
  const auto size = [](std::int64_t DeltaHeads::*member) {
    return static_cast<std::int64_t T::*>(member);
  };
  return recurrent_schema<T>(kind, help, query_help)
      .required("heads", size(&DeltaHeads::heads), "heads of values, each with a state",
                between(1, llm_limits::kHeads))
      .optional("key_heads", size(&DeltaHeads::key_heads),
                "heads of queries and of keys; 0: one for each of values",
                between(0, llm_limits::kHeads))
      .optional("key_dim", size(&DeltaHeads::key_dim), "columns of a query or key",
                between(1, llm_limits::kHeadDim))
      .optional("value_dim", size(&DeltaHeads::value_dim), "columns of a value",
                between(1, llm_limits::kHeadDim))
      .optional("decays", static_cast<DeltaDecays T::*>(&DeltaHeads::decays),
                "one by head (gated delta networks) or by column of keys (Kimi delta attention)");
}

}  // namespace orrery
