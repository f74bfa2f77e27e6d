// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/graph/kernel.h"
#include "sim/serving/kernel_rules.h"
#include "workloads/layers/parts/expert_placement.h"
#include "workloads/layers/parts/lora.h"
#include "workloads/layers/parts/prompts.h"
#include "workloads/models/llm_config.h"
#include "workloads/plan/parallel_config.h"
#include "workloads/software/training_software.h"

namespace orrery {

enum class Phase : std::uint8_t {
  kTraining,
  kPrefill,
  kDecode,
  kMixed,  ///< prompts, or pieces of them, and decodes in one step
};
const char* to_string(Phase phase);

/// What the backward pass computes again instead of keeping it (Korthikanti et al. 2022, section
/// 5).
enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  ///< parts of a layer (RecomputeModule)
  kFull,       ///< every layer, from its input
};
const char* to_string(Recompute recompute);

/// Parts of a layer that selective recomputation may compute again: Megatron-Core's
/// recompute_modules (transformer_config.py).
enum class RecomputeModule : std::uint8_t {
  kCoreAttn,       ///< scores, softmax, dropout and values of attention
  kMlp,            ///< MLP without experts, from its input
  kMoe,            ///< router, experts, shared experts and exchanges, from their input
  kMoeAct,         ///< function between the matrices of experts
  kLayernorm,      ///< norms before attention and MLP, or experts
  kMlaUpProj,      ///< up-projections of latents, and rotary positions
  kSharedExperts,  ///< shared experts, from their input
};
inline constexpr std::size_t kRecomputeModules = 7;

/// Sequences that attention works on by kernels of their own: of one phase, with equal numbers of
/// new tokens.
struct AttentionPart {
  Phase phase = Phase::kPrefill;
  std::int64_t sequences = 1;
  std::int64_t query = 1;              ///< new tokens of each sequence; in a decode, guesses
  std::int64_t context = 1;            ///< keys that the last new token of each sees; their mean
  std::vector<std::int64_t> contexts;  ///< keys seen by each sequence, where they differ
  bool samples = true;                 ///< a next token is chosen for each of the sequences
  /// Kinds of prompts that one kernel works on, of which query and context are PromptSum::alike();
  /// empty: all are alike.
  std::vector<Prompts> prompts{};

  bool operator==(const AttentionPart&) const = default;
};

/// Training: ranks that share the tokens of each sequence (context_training.h).
struct ContextSplit {
  int ranks = 1;         ///< all of them
  int heads = 1;         ///< ranks among them that exchange tokens for heads
  bool gathers = false;  ///< the others gather keys and values, or send them round a ring

  int rest() const { return ranks / heads; }
};

/// What one rank does in a layer: its tokens, and how the layer is split.
struct LayerWork {
  Phase phase = Phase::kTraining;
  std::int64_t sequences = 1;  ///< sequences in this micro-batch, on this data parallel rank
  /// Inference: lengths of sequences are means, which say nothing of where in its chunk one stands.
  bool mean_lengths = false;
  std::int64_t query = 0;    ///< new tokens of each sequence
  std::int64_t context = 0;  ///< keys that the last new token sees: earlier tokens and the new ones
  /// What attention works on, one after the other; none: all sequences at once. With parts,
  /// `sequences` are the tokens of all of them and `query` is 1.
  std::optional<std::vector<AttentionPart>> parts;
  int tp = 1;
  bool sp = false;
  /// Inference: see context_parallel.h. With cp, `parts` are those of all cp ranks, and `sequences`
  /// the tokens of one.
  int cp = 1, dcp = 1;
  /// Training: `query` and `context` are the tokens of one rank.
  ContextSplit split;
  int ep = 1;
  int etp = 1;
  /// Inference: the tensor cores scale blocks of operands, so that mxfp4 weights meet inputs in
  /// mxfp8, as engines run them there (TensorRT-LLM's W4A8_MXFP4_MXFP8), and are not widened.
  bool mx_products = false;
  /// Inference: bits of the stored weights of a checkpoint in whose format the accelerator has no
  /// products, where products widen them (nvfp4 on Hopper, fp8 on Ampere); 0: there are none.
  std::int64_t widened_bits = 0;
  KernelRules kernels;  ///< Inference: kernels of the engine
  /// Inference: largest buffer whose all-reduce adds the residual and norms the sum; 0: none does.
  Bytes normed_all_reduce;
  Precision precision = Precision::kBf16;     ///< precision of matrix operands
  Precision kv_precision = Precision::kBf16;  ///< precision of the KV cache
  /// Precision of what indexers score and keep: fp8 where tensor cores have it.
  Precision index_precision = Precision::kFp8;
  /// Inference: each tensor parallel rank routes all tokens of the group, to those experts or parts
  /// of experts that it has, and an all-reduce adds up what they give. Else ranks share the tokens
  /// out and send them to the ranks of their experts.
  bool all_reduces_experts = false;
  /// Inference: the rank whose experts get the most tokens, for which the others wait. None: all
  /// ranks get the mean.
  std::optional<HeaviestRank> heaviest;
  LoraWork lora;  ///< adapters: those of tokens in inference, those that are trained in training
  /// Training: samples of equal length that are packed into each sequence and see nothing of each
  /// other.
  std::int64_t samples = 1;
  /// Inference: one of two batches that take turns, whose exchanges run beside the other's kernels.
  bool takes_turns = false;
  /// Such batches of decodes take turns by stages of a layer (next_turn()), not by exchanges.
  bool turns_by_stages = false;
  /// Precision in which products of training keep their inputs for the backward pass: that of
  /// activations, or fp8.
  bool narrow_inputs = false;
  /// Training: weights of dense products are 2:4 sparse.
  bool sparse_weights = false;
  /// Training: rate of fp8 products in backward passes over that of those that were measured.
  double fp8_gradient_rate = 1;
  /// Training: the gradients of every micro-batch leave the rank; products have nothing to add to.
  bool fresh_gradients = false;
  bool flash_attention = true;
  bool dropout = false;
  /// Training: rows of each expert over the mean. What is more is dropped, what is fewer filled up;
  /// 0: every token goes to its experts.
  double expert_capacity = 0;
  /// A tensor parallel group has the input of column-parallel matrices whole, and adds up its
  /// gradient elsewhere; the output of the row-parallel one stays a sum in parts, and its gradient
  /// is whole (parallel blocks).
  bool whole_input = false;
  bool partial_output = false;
  Recompute recompute = Recompute::kNone;
  /// Whether each RecomputeModule is computed again, under kSelective.
  std::array<bool, kRecomputeModules> modules = {true};
  /// Under kFull: the layer's input is computed again, with the layers before it.
  bool input_again = false;
  /// Training: never null.
  std::shared_ptr<const TrainingSoftware> software = default_software();
  /// Training of an encoder and decoder: tokens of each sequence that the encoder reads.
  std::int64_t encoder = 0;
  /// Attention goes to the encoder's output: nothing is masked, and positions have no biases.
  bool to_encoder = false;
  /// The first layer of a chunk that sees the encoder's output, which keeps it for all.
  bool keeps_encoder_output = false;
  /// The first layer of a chunk, which keeps what blocks of layers before it gave (attention
  /// residuals), as it came with its input.
  bool keeps_sources = false;
  bool tensors = false;  ///< training: steps say which tensors they make, use and free

  /// What backward passes compute again under selective recomputation: parts, or by the software
  /// every second product.
  bool recomputes(RecomputeModule module) const {
    return recompute == Recompute::kSelective && !recomputes_products() &&
           modules[static_cast<std::size_t>(module)];
  }
  bool recomputes_products() const {
    return recompute == Recompute::kSelective &&
           software->selective_recompute.value == SelectiveRecompute::kEverySecondProduct;
  }
  /// Launches of a kernel that stands for so many operations.
  std::int64_t launches(std::int64_t operations) const {
    return is_on(kernels.operators_apart) ? operations : 1;
  }
  /// Tokens of the tensor parallel group.
  std::int64_t tokens() const { return sequences * query; }
  /// Tokens of this rank where the group splits them (the largest share).
  std::int64_t split_tokens() const { return (tokens() + tp - 1) / tp; }
  /// Tokens of norms, residuals and dropout: split under sequence parallelism.
  std::int64_t row_tokens() const { return sp ? split_tokens() : tokens(); }
  /// Rows of logits on one rank: in training all tokens, else one for each sequence that samples.
  std::int64_t logit_rows() const;
  /// Format in which norms, and functions between matrices, write what products of `precision`
  /// read: wide where casts of their own follow.
  Precision normed_precision() const;
  Precision function_precision(Precision precision) const;
  /// `parts`, or the one part that all sequences are.
  std::vector<AttentionPart> attention_parts() const;
  /// The same as kernels work on it: one for all prompts, and one for all decodes.
  std::vector<AttentionPart> attention_kernels() const;
};

/// What a rank does with the tokens of the encoder.
LayerWork encoder_work(LayerWork work);

/// Query-key pairs that causal attention does not mask, per head and sequence: the sum over new
/// tokens of min(keys seen, window). `window` 0: no window. For query == context == s: s (s + 1)
/// / 2.
double causal_pairs(std::int64_t query, std::int64_t context, std::int64_t window);

/// KV heads on one rank: a head is copied when there are more ranks than heads.
std::int64_t local_kv_heads(const AttentionConfig& attention, int tp);

/// @throws config::KeyError when heads, KV heads, MLP width or experts cannot be split as asked.
void require_divisible(const LlmConfig& model, const ParallelConfig& parallel);

}  // namespace orrery
