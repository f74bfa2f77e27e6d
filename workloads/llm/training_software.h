// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/fact.h"
#include "sim/config/schema.h"
#include "sim/config/type.h"
#include "sim/graph/kernel.h"
#include "workloads/llm/experts/expert_software.h"
#include "workloads/llm/step_list.h"

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
enum class MaskedSoftmax : std::uint8_t { kSquare, kTriangle };

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

/// Where products of fp8 operands add up partial sums: in the matrix units with fewer bits, or
/// every few steps in fp32 registers (cuBLASLt's FAST_ACCUM and its absence).
enum class Accumulation : std::uint8_t { kFast, kFull };

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

/// In which micro-batches gradients that are sharded (zero 2, 3) are reduced.
enum class GradientSync : std::uint8_t { kEvery, kLast };

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

/// What an all-reduce inside a system takes longer where the host calls it than in a graph.
struct CallDelay {
  Bytes bytes;  ///< size of the buffer
  Seconds time;
  static const config::Schema<CallDelay>& schema();
};

/// How the software of a training run does what the graph of a step leaves open: a file a version
/// in `configs/software`. Each switch says where it was read, and works alone. What a file does not
/// say is Megatron-Core with Transformer Engine as they come.
struct TrainingSoftware {
  std::string id = "megatron_core";
  std::string name = "Megatron-Core with Transformer Engine, as they come";

  Fact<GradientFormat> main_gradients{
      GradientFormat::kWeights,
      "Megatron-Core 0011998 distributed_data_parallel_config.py: grad_reduce_in_fp32 False"};
  Fact<Fusion> gradient_accumulation{
      Fusion::kFused,
      "recalled: Megatron-LM training/arguments.py: gradient_accumulation_fusion True"};
  Fact<Fusion> bias_addition{
      Fusion::kFused, "recalled: Transformer Engine module/linear.py: bias added by the product"};
  Fact<Fusion> bias_gradients{
      Fusion::kFused,
      "recalled: Transformer Engine module/linear.py: by the product of weight gradients"};
  Fact<Fusion> residual_gradients{
      Fusion::kApart, "PyTorch autograd: gradients of a tensor that is used twice are added up"};
  Fact<NormBackward> norm_backward{
      NormBackward::kOnePass,
      "recalled: Transformer Engine normalization: one kernel, partial sums"};
  Fact<Fusion> attention_layout{
      Fusion::kFused, "recalled: Transformer Engine attention: parts of one tensor, any layout"};
  Fact<Fusion> latent_projections{
      Fusion::kApart,
      "Megatron-LM 003b4ce core/transformer/multi_latent_attention.py: linear_q_down_proj and "
      "linear_kv_down_proj, one with mla_down_proj_fusion, which is False"};
  Fact<Fusion> latent_rotary{
      Fusion::kApart,
      "Megatron-LM 003b4ce core/transformer/multi_latent_attention.py: split, "
      "apply_rotary_pos_emb, cat, contiguous, two kernels with apply_rope_fusion, which is False"};
  Fact<MaskedSoftmax> causal_softmax{
      MaskedSoftmax::kTriangle,
      "Megatron-LM 2387ce0 fused_kernels/scaled_upper_triang_masked_softmax.h: reads up to the "
      "diagonal"};
  Fact<Fusion> cross_entropy{Fusion::kFused,
                             "recalled: Megatron-Core model_parallel_config.py: "
                             "cross_entropy_loss_fusion, as its recipes set it"};
  Fact<TensorOverlap> tp_overlap{TensorOverlap::kWeightGradients,
                                 "recalled: Megatron-Core tensor_parallel/layers.py: "
                                 "LinearWithGradAccumulationAndAsyncCommunication"};
  Fact<MessageOverlap> pp_overlap{
      MessageOverlap::kInterleaved,
      "recalled: Megatron-LM training/arguments.py: overlap_p2p_comm with virtual stages; else "
      "Megatron-Core model_parallel_config.py: batch_p2p_comm, batch_p2p_sync True"};
  Fact<ContextExchange> cp_comm_type{
      ContextExchange::kP2p,
      "recalled: Megatron-Core transformer_config.py: cp_comm_type None, which is Transformer "
      "Engine's p2p"};
  Fact<bool> gradient_reduction_overlap{
      false,
      "Megatron-Core 0011998 distributed_data_parallel_config.py: overlap_grad_reduce False"};
  Fact<bool> weight_gather_overlap{
      false,
      "Megatron-Core 0011998 distributed_data_parallel_config.py: overlap_param_gather False"};
  Fact<double> bucket_parameters{40e6,
                                 "Megatron-Core 0011998 distributed_data_parallel_config.py: "
                                 "bucket_size, at least 40,000,000"};
  Fact<GradientSync> gradient_sync{
      GradientSync::kEvery,
      "recalled: Megatron-Core distributed/fsdp: shards of gradients are added up"};
  Fact<bool> reshard_after_forward{
      true, "recalled: Megatron-Core distributed/fsdp: units are released behind each pass"};
  Fact<bool> forward_prefetch{
      true, "recalled: Megatron-Core distributed/fsdp: the next unit is gathered"};
  Fact<bool> backward_prefetch{true,
                               "recalled: Megatron-Core distributed/fsdp: in both directions"};
  Fact<WeightShards> weight_shards{WeightShards::kCopies,
                                   "recalled: Megatron-Core distributed/fsdp: a buffer of model "
                                   "weights and one of main weights"};
  Fact<Fusion> gather_copies{
      Fusion::kFused, "recalled: Megatron-Core distributed/fsdp: parameters are views of buffers"};
  Fact<Fusion> reduction_copies{
      Fusion::kFused, "recalled: Megatron-Core distributed/fsdp: gradients are views of buffers"};
  Fact<bool> fp8_weight_gathers{
      false, "recalled: Megatron-Core distributed_data_parallel_config.py: fp8_param_gather False"};
  Fact<CollectiveCalls> collective_calls{CollectiveCalls::kGraph,
                                         "no measurement beside that in graphs"};
  /// Delays by calls of the host, ascending sizes; between them by the logarithm of the size, none
  /// outside.
  std::vector<CallDelay> call_delays;
  Fact<NarrowScaling> fp8_scaling{
      NarrowScaling::kDelayed, "recalled: Megatron-Core transformer_config.py: fp8_recipe delayed"};
  Fact<HadamardCast> hadamard_cast{HadamardCast::kFused,
                                   "Transformer Engine pull request 2555 (2026): one kernel, which "
                                   "reads its input once; before, "
                                   "two"};
  Fact<double> nvfp4_cast_rate{
      0.49,
      "pytorch/ao pull request 4487 (2026), Hadamard quantize row+col on a GB200: 2,048 x 28,672 "
      "in "
      "67.9 us, 2,048 x 4,096 in 13.9: 2.9 TB/s of 3.13 B a value; casts alone 5.9 here. "
      "Transformer "
      "Engine pull request 3011: 69 to 139 us with the pass for the largest value, 25 for scales"};
  Fact<Fusion> scale_order{
      Fusion::kFused,
      "Transformer Engine pull requests 2486 (MXFP8, 2025) and 3011 (NVFP4, May 2026): casts write "
      "scales as products read them; before, two kernels behind each"};
  Fact<Accumulation> fp8_gradient_sums{
      Accumulation::kFull,
      "Transformer Engine 0004dbd pytorch/module/base.py: _2X_ACC_DGRAD, _2X_ACC_WGRAD True, of "
      "forward products False"};
  Fact<bool> keeps_narrow_inputs{
      true,
      "Transformer Engine 0004dbd pytorch/module/linear.py: saves the quantised input "
      "(inputmat) for the weight gradient; recalled"};
  Fact<bool> fp8_gathers{
      true,
      "recalled: Transformer Engine module/base.py, distributed.py: gathers what it has cast"};
  Fact<double> attention_dropout{
      0.7,
      "estimate: 0.75 to 0.85 forward, 0.6 to 0.7 backward on a GB200 (Dao-AILab flash-attention, "
      "pull request 2597, 2026)"};
  Fact<double> attention_forward{1, "as the kernels that were measured, of TensorRT-LLM"};
  Fact<double> attention_backward{
      0.8,
      "estimate: FlashAttention-3 and cuDNN 9 on H100 reach 0.7 to 0.85 of the forward rate (arXiv "
      "2407.08608, figures 5 and 6), FlashAttention-2 on A100 0.77 to 0.9 (arXiv 2307.08691)"};
  Fact<double> norm_rate{1, "as the kernels that were measured, of TensorRT-LLM"};
  Fact<double> elementwise_rate{1, "as the kernels that were measured, of TensorRT-LLM"};
  Fact<SelectiveRecompute> selective_recompute{
      SelectiveRecompute::kAttentionCore,
      "recalled: Megatron-Core transformer_config.py: recompute_modules core_attn"};
  Fact<bool> recompute_stops_early{
      false, "recalled: Megatron-Core tensor_parallel/random.py: runs the whole layer again"};
  Fact<Seconds> kernel_issue{Seconds(0), "kernels of large layers hide it"};
  Fact<Seconds> launch_issue{Seconds(0), "kernels of large layers hide it"};
  Fact<GraphScope> graphs{GraphScope::kNone, "Megatron-LM training/arguments.py: no graphs"};
  Fact<bool> scattered_messages{
      false,
      "recalled: Megatron-Core p2p_communication.py: each rank sends the tensor that it has"};
  Fact<Seconds> step_overhead{Seconds(0), "nothing measured"};
  /// Standard deviation of log(step time over that of its graph) beside what calibrations know.
  Fact<double> unmodelled{
      0.08,
      "published dense steps of validation/: the median over sources of the root mean square of "
      "log(measured / predicted) is 0.065 to 0.083 without the sources of one software or another"};

  ExpertSoftware experts;

  static const config::Schema<TrainingSoftware>& schema();

  /// What the host takes to issue kernels of a part.
  HostTime host_time(GraphPart part) const;
  /// Bytes of an element of the buffer of gradients, where products run in `precision`.
  double gradient_bytes(Precision precision) const;
  /// Bytes of an element of gathered weights that products read in `precision`.
  double gathered_bytes(Precision precision) const;
  bool accumulates_apart() const { return gradient_accumulation.value == Fusion::kApart; }
  bool overlaps_tensor_parallelism() const { return tp_overlap.value != TensorOverlap::kNone; }
  bool has_user_buffers() const { return tp_overlap.value == TensorOverlap::kUserBuffers; }
  /// Who makes operands of that precision; kFused for those of 16 bits and more.
  NarrowScaling scaling(Precision precision) const;
  /// What an all-reduce inside a system takes longer than in a graph.
  Seconds call_delay(Bytes bytes) const;
  /// Whether a stage of that many chunks waits for the messages that it sends.
  bool waits_for_messages(int chunks) const;
};

/// The software of steps that name none.
std::shared_ptr<const TrainingSoftware> default_software();

}  // namespace orrery

namespace orrery::config {

template <>
struct EnumNames<GradientFormat> {
  static constexpr std::pair<GradientFormat, const char*> values[] = {
      {GradientFormat::kWeights, "weights"},
      {GradientFormat::kFp32ForBf16, "fp32_for_bf16"},
      {GradientFormat::kFp32, "fp32"}};
};

template <>
struct EnumNames<Fusion> {
  static constexpr std::pair<Fusion, const char*> values[] = {{Fusion::kFused, "fused"},
                                                              {Fusion::kApart, "apart"}};
};

template <>
struct EnumNames<NormBackward> {
  static constexpr std::pair<NormBackward, const char*> values[] = {
      {NormBackward::kOnePass, "one_pass"}, {NormBackward::kTwoPasses, "two_passes"}};
};

template <>
struct EnumNames<MaskedSoftmax> {
  static constexpr std::pair<MaskedSoftmax, const char*> values[] = {
      {MaskedSoftmax::kSquare, "square"}, {MaskedSoftmax::kTriangle, "triangle"}};
};

template <>
struct EnumNames<TensorOverlap> {
  static constexpr std::pair<TensorOverlap, const char*> values[] = {
      {TensorOverlap::kNone, "none"},
      {TensorOverlap::kWeightGradients, "weight_gradients"},
      {TensorOverlap::kUserBuffers, "user_buffers"}};
};

template <>
struct EnumNames<ContextExchange> {
  static constexpr std::pair<ContextExchange, const char*> values[] = {
      {ContextExchange::kP2p, "p2p"},
      {ContextExchange::kAllGather, "all_gather"},
      {ContextExchange::kA2a, "a2a"},
      {ContextExchange::kA2aP2p, "a2a+p2p"}};
};

template <>
struct EnumNames<SelectiveRecompute> {
  static constexpr std::pair<SelectiveRecompute, const char*> values[] = {
      {SelectiveRecompute::kAttentionCore, "attention_core"},
      {SelectiveRecompute::kEverySecondProduct, "every_second_product"}};
};

template <>
struct EnumNames<GradientSync> {
  static constexpr std::pair<GradientSync, const char*> values[] = {{GradientSync::kEvery, "every"},
                                                                    {GradientSync::kLast, "last"}};
};

template <>
struct EnumNames<WeightShards> {
  static constexpr std::pair<WeightShards, const char*> values[] = {
      {WeightShards::kCopies, "copies"}, {WeightShards::kMaster, "master"}};
};

template <>
struct EnumNames<GraphScope> {
  static constexpr std::pair<GraphScope, const char*> values[] = {
      {GraphScope::kNone, "none"},
      {GraphScope::kRouting, "routing"},
      {GraphScope::kAttention, "attention"},
      {GraphScope::kAttentionAndRouting, "attention_and_routing"},
      {GraphScope::kIteration, "iteration"}};
};

template <>
struct EnumNames<CollectiveCalls> {
  static constexpr std::pair<CollectiveCalls, const char*> values[] = {
      {CollectiveCalls::kGraph, "graph"}, {CollectiveCalls::kHost, "host"}};
};

template <>
struct EnumNames<NarrowScaling> {
  static constexpr std::pair<NarrowScaling, const char*> values[] = {
      {NarrowScaling::kFused, "fused"},
      {NarrowScaling::kDelayed, "delayed"},
      {NarrowScaling::kCurrent, "current"},
      {NarrowScaling::kBlocks, "blocks"}};
};

template <>
struct EnumNames<HadamardCast> {
  static constexpr std::pair<HadamardCast, const char*> values[] = {
      {HadamardCast::kNone, "none"},
      {HadamardCast::kFused, "fused"},
      {HadamardCast::kApart, "apart"}};
};

template <>
struct EnumNames<Accumulation> {
  static constexpr std::pair<Accumulation, const char*> values[] = {{Accumulation::kFast, "fast"},
                                                                    {Accumulation::kFull, "full"}};
};

template <>
struct EnumNames<MessageOverlap> {
  static constexpr std::pair<MessageOverlap, const char*> values[] = {
      {MessageOverlap::kNone, "none"},
      {MessageOverlap::kInterleaved, "interleaved"},
      {MessageOverlap::kAll, "all"}};
};

}  // namespace orrery::config
