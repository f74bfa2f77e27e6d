// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/ops/step_list.h"
#include "workloads/software/default_software.h"
#include "workloads/software/expert_software.h"
#include "workloads/software/training_switches.h"

namespace orrery {

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
  // Defined once: they are long, and many files copy one.
  TrainingSoftware();
  TrainingSoftware(const TrainingSoftware&);
  TrainingSoftware(TrainingSoftware&&) noexcept;
  TrainingSoftware& operator=(const TrainingSoftware&);
  TrainingSoftware& operator=(TrainingSoftware&&) noexcept;
  ~TrainingSoftware();
  std::string id = "megatron_core";
  std::string name = "Megatron-Core with Transformer Engine, as they come";

  Fact<GradientFormat> main_gradients{
      GradientFormat::kWeights,
      "Megatron-Core 0011998 distributed_data_parallel_config.py: grad_reduce_in_fp32 False"};
  Fact<Fusion> gradient_accumulation{
      Fusion::kFused,
      "recalled: Megatron-LM training/arguments.py: gradient_accumulation_fusion True"};
  Fact<Fusion> gradient_widening{Fusion::kFused,
                                 "PyTorch: an addition reads the formats of both of its operands"};
  Fact<bool> whole_reduction{false,
                             "Megatron-Core 0011998 distributed_data_parallel_config.py: "
                             "use_distributed_optimizer, recalled: reduce_scatter"};
  Fact<Fusion> bias_addition{
      Fusion::kFused, "recalled: Transformer Engine module/linear.py: bias added by the product"};
  Fact<Fusion> bias_gradients{
      Fusion::kFused,
      "recalled: Transformer Engine module/linear.py: by the product of weight gradients"};
  Fact<NormBackward> norm_backward{
      NormBackward::kOnePass,
      "recalled: Transformer Engine normalization: one kernel, partial sums"};
  Fact<Fusion> attention_layout{
      Fusion::kFused, "recalled: Transformer Engine attention: parts of one tensor, any layout"};
  Fact<RotaryKernels> rotary{
      RotaryKernels::kFused,
      "recalled: Transformer Engine pytorch/attention.py: fused_rope_forward, fused_rope_backward"};
  Fact<Fusion> gated_activation{
      Fusion::kFused, "recalled: Megatron-LM training/arguments.py: bias_swiglu_fusion True"};
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
  Fact<SavedTensors> saved_tensors{SavedTensors::kKernels,
                                   "recalled: Transformer Engine module/layernorm_linear.py, "
                                   "layernorm_mlp.py: save_for_backward"};
  Fact<bool> wide_norms{
      true, "huggingface/transformers modeling_llama.py: hidden_states.to(torch.float32)"};
  Fact<bool> keeps_packed_heads{
      false, "huggingface/transformers modeling_llama.py: q_proj, k_proj, v_proj apart"};
  Fact<bool> pads_adapters{false, "huggingface/peft: an adapter for each linear layer"};
  Fact<bool> keeps_frozen_inputs{false,
                                 "bitsandbytes pull request 1270 (0.44.0): MatMul4Bit saves the "
                                 "quantised weights and no input"};
  Fact<LossTensors> loss_tensors{LossTensors::kInPlace,
                                 "recalled: Megatron-Core tensor_parallel/cross_entropy.py: "
                                 "in-place difference, exponential and quotient of float logits"};
  Fact<LossFormat> loss_format{LossFormat::kFp32,
                               "PyTorch aten/src/ATen/autocast_mode.h: log_softmax and nll_loss in "
                               "fp32; torchtitan train.py: pred.float()"};
  Fact<bool> keeps_gathered_inputs{false,
                                   "recalled: Megatron-Core tensor_parallel/layers.py: "
                                   "sequence_parallel saves its share and gathers again"};
  Fact<bool> keeps_messages{false,
                            "recalled: Megatron-Core pipeline_parallel/schedules.py: "
                            "deallocate_output_tensor, receive buffers of one micro-batch"};
  Fact<bool> releases_gradients{
      false,
      "recalled: Megatron-Core distributed/param_and_grad_buffer.py: one buffer all the time"};
  Fact<Segments> segments{
      Segments::kFixed,
      "pytorch/pytorch c10/cuda/CUDAAllocatorConfig.h: expandable_segments false"};
  Fact<TensorOverlap> tp_overlap{TensorOverlap::kWeightGradients,
                                 "recalled: Megatron-Core tensor_parallel/layers.py: "
                                 "LinearWithGradAccumulationAndAsyncCommunication"};
  Fact<MessageOverlap> pp_overlap{
      MessageOverlap::kInterleaved,
      "recalled: Megatron-LM training/arguments.py: overlap_p2p_comm with virtual stages; else "
      "Megatron-Core model_parallel_config.py: batch_p2p_comm, batch_p2p_sync True"};
  Fact<ContextExchange> cp_comm_type{ContextExchange::kP2p,
                                     "recalled: Megatron-Core transformer_config.py: cp_comm_type "
                                     "None, which is Transformer Engine's p2p"};
  Fact<bool> gradient_reduction_overlap{
      false,
      "Megatron-Core 0011998 distributed_data_parallel_config.py: overlap_grad_reduce False"};
  Fact<bool> weight_gather_overlap{
      false,
      "Megatron-Core 0011998 distributed_data_parallel_config.py: overlap_param_gather False"};
  Fact<double> bucket_parameters{40e6,
                                 "Megatron-Core 0011998 distributed_data_parallel_config.py: "
                                 "bucket_size, at least 40,000,000"};
  Fact<std::int64_t> bucket_buffers{
      0, "Megatron-Core distributed/param_and_grad_buffer.py: buckets are parts of the buffer"};
  Fact<StepGradients> step_gradients{
      StepGradients::kKept,
      "Megatron-Core optimizer/distrib_optimizer.py: main_param.grad is a view or one cast"};
  Fact<GradientSync> gradient_sync{
      GradientSync::kEvery,
      "recalled: Megatron-Core distributed/fsdp: shards of gradients are added up"};
  Fact<bool> reshard_after_forward{
      true, "recalled: Megatron-Core distributed/fsdp: units are released behind each pass"};
  Fact<EndUnits> end_units{
      EndUnits::kRoot,
      "arXiv 2304.11277, section 3.2.1: parameters of no other unit are the root's, which stays"};
  Fact<bool> last_layer_stays{
      false, "recalled: Megatron-Core distributed/fsdp: units are released behind each pass"};
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
  Fact<bool> tensor_collectives{
      false, "recalled: Megatron-Core distributed/fsdp: a unit is gathered from one buffer"};
  Fact<bool> regathers_recomputed{
      false, "recalled: Megatron-Core distributed/fsdp: a unit stays until its backward pass ends"};
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
                                   "reads its input once; before, two"};
  Fact<double> nvfp4_cast_rate{
      0.49,
      "pytorch/ao pull request 4487 (2026), Hadamard quantize row+col on a GB200: 2,048 x 28,672 "
      "in 67.9 us, 2,048 x 4,096 in 13.9: 2.9 TB/s of 3.13 B a value; casts alone 5.9 here. "
      "Transformer Engine pull request 3011: 69 to 139 us with the pass for the largest value, 25 "
      "for scales"};
  Fact<Fusion> scale_order{
      Fusion::kFused,
      "Transformer Engine pull requests 2486 (MXFP8, 2025) and 3011 (NVFP4, May 2026): casts write "
      "scales as products read them; before, two kernels behind each"};
  Fact<bool> keeps_narrow_inputs{true,
                                 "Transformer Engine 0004dbd pytorch/module/linear.py: saves the "
                                 "quantised input (inputmat) for the weight gradient; recalled"};
  Fact<Fusion> buffer_copies{Fusion::kFused,
                             "Transformer Engine 1 pytorch/module/layernorm_linear.py: "
                             "get_ubuf_output, into which norms and casts write; recalled"};
  Fact<double> attention_dropout{0.7,
                                 "estimate: 0.75 to 0.85 forward, 0.6 to 0.7 backward on a GB200 "
                                 "(Dao-AILab flash-attention, pull request 2597, 2026)"};
  Fact<double> attention_forward{1, "as the kernels that were measured, of TensorRT-LLM"};
  Fact<double> attention_backward{
      0.8,
      "estimate: FlashAttention-3 and cuDNN 9 on H100 reach 0.7 to 0.85 of the forward rate (arXiv "
      "2407.08608, figures 5 and 6), FlashAttention-2 on A100 0.77 to 0.9 (arXiv 2307.08691)"};
  Fact<double> norm_rate{1, "as the kernels that were measured, of TensorRT-LLM"};
  Fact<double> elementwise_rate{1, "as the kernels that were measured, of TensorRT-LLM"};
  Fact<double> strided_rate{0.46,
                            "tile-ai/TileOPs pull request 500 (2026), prelu and leaky_relu of "
                            "1,024 x 10,240 in fp16 on an H200: 1.18 of 2.57 TB/s"};
  Fact<double> compiled_rate{1, "as the kernels that were measured, of TensorRT-LLM"};
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
  /// What kernels that read strided operands, and compiled ones, take over others of elementwise
  /// class, which all run at elementwise_rate; those of slow software are no slower.
  double strided() const { return beside_elementwise(strided_rate.value); }
  double compiled() const { return beside_elementwise(compiled_rate.value); }
  /// What an all-reduce inside a system takes longer than in a graph.
  Seconds call_delay(Bytes bytes) const;
  /// Whether a stage of that many chunks waits for the messages that it sends.
  bool waits_for_messages(int chunks) const;

 private:
  double beside_elementwise(double rate) const;
};

}  // namespace orrery
