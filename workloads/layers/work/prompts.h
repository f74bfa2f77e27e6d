// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace orrery {

/// Prompts, or pieces of them, of one kind.
struct Prompts {
  std::int64_t sequences = 1;
  std::int64_t query = 1;    ///< new tokens of each
  std::int64_t context = 1;  ///< keys that the last new token of each sees

  bool operator==(const Prompts&) const = default;
};

/// Prompts of several kinds, as far as one attention kernel over all of them tells: engines run one
/// for all prompts of an iteration (FlashAttention's and FlashInfer's variable lengths, packed
/// inputs of TensorRT-LLM), whose blocks fill the units together.
struct PromptSum {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;  ///< new ones
  std::int64_t keys = 0;    ///< keys that the last new token of each sequence sees, all together
  double pairs = 0;         ///< query-key pairs that causal masks leave, of a head

  void add(const Prompts& prompts);
  /// As many sequences that are alike, with the same tokens, and pairs, to half a token each.
  /// Needs a sequence. What a single long one among short ones makes the others wait for is not in
  /// it: kernels split long contexts (FlashInfer's plan, num_splits of FlashAttention).
  Prompts alike() const;
};

}  // namespace orrery
