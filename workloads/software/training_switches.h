// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "sim/config/declared.h"

// Choices of the switches of training_software.h.
namespace orrery {

/// Format of the buffer in which gradients of micro-batches are added up and reduced.
enum class GradientFormat : std::uint8_t {
  kWeights,      ///< format of the weights
  kFp32ForBf16,  ///< fp32, but for weights in fp16, whose loss is scaled
  kFp32,
};

/// Whether work is part of a kernel that is there anyway, or a kernel of its own.
enum class Fusion : std::uint8_t { kFused, kApart };

/// How often the backward pass of a norm reads its input and the gradient of its output: once for
/// all gradients, or a second time for those of its weights.
enum class NormBackward : std::uint8_t { kOnePass, kTwoPasses };

/// Which scores a softmax under a causal mask reads, where scores are stored.
enum class MaskedSoftmax : std::uint8_t {
  kSquare,
  kTriangle,
  kOperators,  ///< operators in fp32: casts, the mask and the softmax of all scores
};

/// Which kernels turn queries and keys by their positions.
enum class RotaryKernels : std::uint8_t {
  kFused,       ///< a single kernel
  kComplex,     ///< pairs of columns as complex numbers in fp32, cast there and back
  kHalves,      ///< halves of heads that are exchanged, products with cosines and sines, their sum
  kWideHalves,  ///< those halves in fp32, cast there and back
};

/// What the collectives of tensor parallelism run beside.
enum class TensorOverlap : std::uint8_t {
  kNone,             ///< nothing: kernels wait for each of them
  kWeightGradients,  ///< products of the same matrices, in backward passes
  /// Those too, and products chunk by chunk beside transfers of the next or last chunk
  /// (Transformer Engine's userbuffers), under sequence parallelism.
  kUserBuffers,
};

/// Which kernels make the operands of products in 8 bits and fewer.
enum class NarrowScaling : std::uint8_t {
  kFused,    ///< those that write the values anyway
  kDelayed,  ///< norms; else casts with a transposed copy, by scales of earlier steps
  kCurrent,  ///< a pass for the largest value, then the cast
  kBlocks,   ///< casts that find the scales of their blocks
};

/// How casts to NVFP4 for training transform what weight gradients read by random Hadamard matrices
/// of 16 x 16 (arXiv 2509.25149, section 4.3).
enum class HadamardCast : std::uint8_t {
  kNone,   ///< not at all: one cast writes both copies
  kFused,  ///< the kernel that casts rows transforms and casts columns too
  kApart,  ///< a second kernel reads the values again for it
};

/// Which schedules go on while messages between stages are under way.
enum class MessageOverlap : std::uint8_t {
  kNone,         ///< a stage sends and waits until all has arrived (batch_isend_irecv, wait)
  kInterleaved,  ///< those with several chunks a stage; 1F1B waits
  kAll,
};

/// How ranks that share the tokens of each sequence exchange what attention needs
/// (context_training.h); names of Transformer Engine's cp_comm_type.
enum class ContextExchange : std::uint8_t {
  kP2p,        ///< keys and values go round a ring beside attention
  kAllGather,  ///< keys and values are gathered before attention
  kA2a,        ///< tokens are exchanged for heads (DeepSpeed Ulysses, arXiv 2309.14509)
  kA2aP2p,     ///< tokens for heads in groups of parallel.cp_a2a, a ring over these
};

/// What is computed again under selective recomputation.
enum class SelectiveRecompute : std::uint8_t {
  kAttentionCore,  ///< parts of a layer: by default scores and what follows them (Korthikanti 2022)
  /// All but attention cores and every other product in 16 bits, in the order of the layer.
  kEverySecondProduct,
};

/// What a forward pass leaves for the backward pass: what fused kernels read again, or what each
/// operator of PyTorch saves for its own gradient: inputs of norms in fp32 and, where weights are
/// trained, normed values, what functions of gated MLPs give, keys and values copied to all heads.
enum class SavedTensors : std::uint8_t { kKernels, kOperators };

/// What the loss makes of the logits.
enum class LossTensors : std::uint8_t {
  kInPlace,    ///< fp32 values that become probabilities and their own gradient where they are
  kOperators,  ///< logits widened, log-probabilities, and in the backward pass a gradient of each
  kChunks,     ///< operators on an eighth of the tokens at a time; all log-probabilities stay
  kWithHead,   ///< head and loss of some tokens at a time, with the gradient of their input
  /// Operators on a copy of the logits without the last token, whose gradient is copied back into
  /// one for all tokens (Hugging Face transformers: shift_logits).
  kShifted,
  kCompiled,  ///< kernels that read the logits twice and write their gradient, both in 16 bits
};

/// Format of log-probabilities and of the gradients that a loss by operators makes of them.
enum class LossFormat : std::uint8_t {
  kFp32,
  kWeights,  ///< format of the logits
};

/// How PyTorch gets memory of the device: segments of a fixed size that never join, or one of each
/// stream that grows (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).
enum class Segments : std::uint8_t { kFixed, kExpandable };

/// In which micro-batches gradients that are sharded (zero 2, 3) are reduced.
enum class GradientSync : std::uint8_t { kEvery, kLast };

/// Gradients that the optimizer reads.
enum class StepGradients : std::uint8_t {
  kKept,  ///< the sums of all micro-batches themselves
  /// Copies that the step makes: each tensor in fp64 for the norm; then all in one tensor, and
  /// that in fp32, up to 10^9 parameters at a time under zero 3.
  kCopied,
};

/// Units of sharded weights (zero 3) that embedding and head form.
enum class EndUnits : std::uint8_t {
  /// One, gathered when a step begins and reduced when it ends (PyTorch FSDP: the root unit).
  kRoot,
  kApart,  ///< one each: the embedding is dropped like a layer, the head stays for its gradients
};

/// What the shards of sharded weights (zero 3) are.
enum class WeightShards : std::uint8_t {
  kCopies,  ///< 16 bits, beside the master weights of the optimizer
  kMaster,  ///< the master weights in fp32, which are cast before each gather
};

/// From where collectives inside a system are launched: as nodes of a graph, which network
/// calibrations measured, or one by one by the host.
enum class CollectiveCalls : std::uint8_t { kGraph, kHost };

/// What of a step CUDA graphs capture: nothing, the choice of experts (moe_router and
/// moe_preprocess), attention and other mixers (attn, mamba), both, or all.
enum class GraphScope : std::uint8_t {
  kNone,
  kRouting,
  kAttention,
  kAttentionAndRouting,
  kIteration
};

/// Parts of a step that graphs capture apart.
enum class GraphPart : std::uint8_t { kAttention, kRouting, kOther };

template <>
struct config::EnumNames<GradientFormat> {
  static constexpr std::pair<GradientFormat, const char*> values[] = {
      {GradientFormat::kWeights, "weights"},
      {GradientFormat::kFp32ForBf16, "fp32_for_bf16"},
      {GradientFormat::kFp32, "fp32"}};
};

template <>
struct config::EnumNames<Fusion> {
  static constexpr std::pair<Fusion, const char*> values[] = {{Fusion::kFused, "fused"},
                                                              {Fusion::kApart, "apart"}};
};

template <>
struct config::EnumNames<NormBackward> {
  static constexpr std::pair<NormBackward, const char*> values[] = {
      {NormBackward::kOnePass, "one_pass"}, {NormBackward::kTwoPasses, "two_passes"}};
};

template <>
struct config::EnumNames<MaskedSoftmax> {
  static constexpr std::pair<MaskedSoftmax, const char*> values[] = {
      {MaskedSoftmax::kSquare, "square"},
      {MaskedSoftmax::kTriangle, "triangle"},
      {MaskedSoftmax::kOperators, "operators"}};
};

template <>
struct config::EnumNames<RotaryKernels> {
  static constexpr std::pair<RotaryKernels, const char*> values[] = {
      {RotaryKernels::kFused, "fused"},
      {RotaryKernels::kComplex, "complex"},
      {RotaryKernels::kHalves, "halves"},
      {RotaryKernels::kWideHalves, "wide_halves"}};
};

template <>
struct config::EnumNames<TensorOverlap> {
  static constexpr std::pair<TensorOverlap, const char*> values[] = {
      {TensorOverlap::kNone, "none"},
      {TensorOverlap::kWeightGradients, "weight_gradients"},
      {TensorOverlap::kUserBuffers, "user_buffers"}};
};

template <>
struct config::EnumNames<ContextExchange> {
  static constexpr std::pair<ContextExchange, const char*> values[] = {
      {ContextExchange::kP2p, "p2p"},
      {ContextExchange::kAllGather, "all_gather"},
      {ContextExchange::kA2a, "a2a"},
      {ContextExchange::kA2aP2p, "a2a+p2p"}};
};

template <>
struct config::EnumNames<SelectiveRecompute> {
  static constexpr std::pair<SelectiveRecompute, const char*> values[] = {
      {SelectiveRecompute::kAttentionCore, "attention_core"},
      {SelectiveRecompute::kEverySecondProduct, "every_second_product"}};
};

template <>
struct config::EnumNames<SavedTensors> {
  static constexpr std::pair<SavedTensors, const char*> values[] = {
      {SavedTensors::kKernels, "kernels"}, {SavedTensors::kOperators, "operators"}};
};

template <>
struct config::EnumNames<LossTensors> {
  static constexpr std::pair<LossTensors, const char*> values[] = {
      {LossTensors::kInPlace, "in_place"}, {LossTensors::kOperators, "operators"},
      {LossTensors::kChunks, "chunks"},    {LossTensors::kWithHead, "with_head"},
      {LossTensors::kShifted, "shifted"},  {LossTensors::kCompiled, "compiled"}};
};

template <>
struct config::EnumNames<LossFormat> {
  static constexpr std::pair<LossFormat, const char*> values[] = {
      {LossFormat::kFp32, "fp32"}, {LossFormat::kWeights, "weights"}};
};

template <>
struct config::EnumNames<Segments> {
  static constexpr std::pair<Segments, const char*> values[] = {
      {Segments::kFixed, "fixed"}, {Segments::kExpandable, "expandable"}};
};

template <>
struct config::EnumNames<GradientSync> {
  static constexpr std::pair<GradientSync, const char*> values[] = {{GradientSync::kEvery, "every"},
                                                                    {GradientSync::kLast, "last"}};
};

template <>
struct config::EnumNames<StepGradients> {
  static constexpr std::pair<StepGradients, const char*> values[] = {
      {StepGradients::kKept, "kept"}, {StepGradients::kCopied, "copied"}};
};

template <>
struct config::EnumNames<EndUnits> {
  static constexpr std::pair<EndUnits, const char*> values[] = {{EndUnits::kRoot, "root"},
                                                                {EndUnits::kApart, "apart"}};
};

template <>
struct config::EnumNames<WeightShards> {
  static constexpr std::pair<WeightShards, const char*> values[] = {
      {WeightShards::kCopies, "copies"}, {WeightShards::kMaster, "master"}};
};

template <>
struct config::EnumNames<GraphScope> {
  static constexpr std::pair<GraphScope, const char*> values[] = {
      {GraphScope::kNone, "none"},
      {GraphScope::kRouting, "routing"},
      {GraphScope::kAttention, "attention"},
      {GraphScope::kAttentionAndRouting, "attention_and_routing"},
      {GraphScope::kIteration, "iteration"}};
};

template <>
struct config::EnumNames<CollectiveCalls> {
  static constexpr std::pair<CollectiveCalls, const char*> values[] = {
      {CollectiveCalls::kGraph, "graph"}, {CollectiveCalls::kHost, "host"}};
};

template <>
struct config::EnumNames<NarrowScaling> {
  static constexpr std::pair<NarrowScaling, const char*> values[] = {
      {NarrowScaling::kFused, "fused"},
      {NarrowScaling::kDelayed, "delayed"},
      {NarrowScaling::kCurrent, "current"},
      {NarrowScaling::kBlocks, "blocks"}};
};

template <>
struct config::EnumNames<HadamardCast> {
  static constexpr std::pair<HadamardCast, const char*> values[] = {
      {HadamardCast::kNone, "none"},
      {HadamardCast::kFused, "fused"},
      {HadamardCast::kApart, "apart"}};
};

template <>
struct config::EnumNames<MessageOverlap> {
  static constexpr std::pair<MessageOverlap, const char*> values[] = {
      {MessageOverlap::kNone, "none"},
      {MessageOverlap::kInterleaved, "interleaved"},
      {MessageOverlap::kAll, "all"}};
};

}  // namespace orrery
