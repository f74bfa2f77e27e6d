// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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

enum class Phase : std::uint8_t {
  kTraining,
  kPrefill,
  kDecode,
  kMixed,  ///< prompts, or pieces of them, and decodes in one step
};
const char* to_string(Phase phase);

/// Sequences that attention works on by kernels of their own: of one phase, with equal numbers of
/// new tokens.
struct AttentionPart {
  Phase phase = Phase::kPrefill;
  std::int64_t sequences = 1;
  std::int64_t query = 1;              ///< new tokens of each sequence; in a decode, draft tokens
  std::int64_t context = 1;            ///< keys that the last new token of each sees; their mean
  std::vector<std::int64_t> contexts;  ///< keys seen by each sequence, where they differ
  bool samples = true;                 ///< a next token is chosen for each of the sequences
  /// Kinds of prompts that one kernel works on, of which query and context are PromptSum::alike();
  /// empty: all are alike.
  std::vector<Prompts> prompts{};

  bool operator==(const AttentionPart&) const = default;
};

/// Tokens that a rank works on in a step, or in one of its micro-batches.
struct TokenBatch {
  Phase phase = Phase::kTraining;
  std::int64_t sequences = 1;  ///< sequences in this micro-batch, on this data parallel rank
  /// Inference: lengths of sequences are means, which say nothing of where in its chunk one stands.
  bool mean_lengths = false;
  /// New tokens of each sequence; in training those of one rank.
  std::int64_t query = 0;
  /// Keys that the last new token sees: earlier tokens and the new ones.
  std::int64_t context = 0;
  /// Parts that attention works on one after the other; none: all sequences at once. With parts,
  /// `sequences` are the tokens of all of them and `query` is 1. With context parallelism they are
  /// those of all its ranks, and `sequences` the tokens of one.
  std::optional<std::vector<AttentionPart>> parts;
  /// Training: samples of equal length that are packed into each sequence and see nothing of each
  /// other.
  std::int64_t samples = 1;
  /// Training of an encoder and decoder: tokens of each sequence that the encoder reads.
  std::int64_t encoder = 0;

  std::int64_t tokens() const { return sequences * query; }
  /// `parts`, or the one part that all sequences are.
  std::vector<AttentionPart> attention_parts() const;
  /// The same as kernels work on it: one for all prompts, and one for all decodes.
  std::vector<AttentionPart> attention_kernels() const;
};

}  // namespace orrery
