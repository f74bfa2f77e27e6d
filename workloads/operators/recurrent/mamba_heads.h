// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "workloads/layers/recurrent/mamba_kernels.h"
#include "workloads/operators/recurrent_keys.h"

namespace orrery {

/// Heads of a Mamba-2 on a rank. Defaults are the widths of its paper (arXiv 2405.21060).
struct MambaHeads {
  std::int64_t heads = 0, groups = 1, head_dim = 64, state = 128, chunk = 256;

  /// What is wrong, or nothing.
  std::string fault() const {
    if (heads % groups != 0) return "groups must divide heads";
    return {};
  }

  ScanShape shape(const RecurrentTokens& tokens, double bytes) const {
    MambaConfig mamba;
    mamba.heads = heads;
    mamba.groups = groups;
    mamba.head_dim = head_dim;
    mamba.state = state;
    mamba.chunk = chunk;
    return scan_shape(mamba, 1, tokens.batch, tokens.query, bytes);
  }
};

/// Keys of a struct with RecurrentTokens and MambaHeads among its bases.
template <class T>
config::Schema<T> mamba_schema(const char* kind, const char* help, const char* query_help) {
  using config::between;
  const auto size = [](std::int64_t MambaHeads::*member) {
    return static_cast<std::int64_t T::*>(member);
  };
  return recurrent_schema<T>(kind, help, query_help)
      .required("heads", size(&MambaHeads::heads), "heads, each with a state",
                between(1, llm_limits::kHeads))
      .optional("groups", size(&MambaHeads::groups), "groups of heads that share their B and C",
                between(1, llm_limits::kHeads))
      .optional("head_dim", size(&MambaHeads::head_dim), "columns of a head",
                between(1, llm_limits::kHeadDim))
      .optional("state", size(&MambaHeads::state), "elements of the state of each column",
                between(1, llm_limits::kHeadDim))
      .check([](const T& m) { return m.fault(); }, "groups");
}

}  // namespace orrery
