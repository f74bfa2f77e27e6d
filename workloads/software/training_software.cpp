// SPDX-License-Identifier: Apache-2.0
#include "workloads/software/training_software.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/config/schema.h"
#include "workloads/ops/kernels.h"

namespace orrery {

const config::Schema<CallDelay>& CallDelay::schema() {
  using D = CallDelay;
  static const auto schema =
      config::Schema<D>("call_delay", "what a call by the host adds to an all-reduce")
          .required("bytes", &D::bytes, "size of the buffer",
                    config::between(Bytes(1), Bytes(1e12)))
          .required("time", &D::time, "time added [us]", config::between(Seconds(0), Seconds(1)));
  return schema;
}

Seconds TrainingSoftware::call_delay(Bytes bytes) const {
  if (collective_calls.value == CollectiveCalls::kGraph) return {};
  const auto above = std::ranges::find_if(
      call_delays, [&](const CallDelay& delay) { return delay.bytes >= bytes; });
  if (above == call_delays.end()) return {};
  if (above->bytes == bytes) return above->time;
  if (above == call_delays.begin()) return {};
  const CallDelay& below = *std::prev(above);
  const double share = std::log(bytes / below.bytes) / std::log(above->bytes / below.bytes);
  return below.time + (above->time - below.time) * share;
}

namespace {

config::Schema<TrainingSoftware> kernel_switches() {
  using S = TrainingSoftware;
  return config::Schema<S>("software", "how the software of a training run does a step")
      .named("software", &S::id)
      .optional("name", &S::name, "what it is, with its version")
      .optional("main_gradients", &S::main_gradients,
                "format in which gradients of micro-batches are added up and reduced: that of the "
                "weights, fp32, or fp32 unless weights are fp16")
      .optional("gradient_accumulation", &S::gradient_accumulation,
                "products of weight gradients add to that buffer, or a kernel behind them does")
      .optional("gradient_widening", &S::gradient_widening,
                "gradients that a kernel adds to a wider buffer are widened by it, or before it by "
                "a kernel of their own")
      .optional("whole_reduction", &S::whole_reduction,
                "gradients are reduced to all ranks where each updates its shard alone (zero 1), "
                "not to those of the shards")
      .optional("bias_addition", &S::bias_addition,
                "products add the bias of queries, keys and values, or a kernel behind them")
      .optional("bias_gradients", &S::bias_gradients,
                "products of weight gradients sum up those of biases, or kernels of their own")
      .optional("norm_backward", &S::norm_backward,
                "gradients of a norm's input and weights from one reading, or from two")
      .optional("attention_layout", &S::attention_layout,
                "apart: what attention gives is transposed, its gradients are joined by copies")
      .optional("rotary", &S::rotary,
                "queries and keys are rotated by one kernel, or by elementwise ones: as complex "
                "numbers, or by halves of heads that are exchanged, in 16 bits or in fp32")
      .optional("gated_activation", &S::gated_activation,
                "the function of gated MLPs and the product with its gate: one kernel, or two")
      .optional(
          "latent_projections", &S::latent_projections,
          "latents of queries and of keys and values (MLA) come from one product and one norm, or "
          "from one each, with casts of their own, and gradients of the input are added up")
      .optional("latent_rotary", &S::latent_rotary,
                "queries, keys and values (MLA) are rotated and put together by two kernels, or by "
                "elementwise ones and copies")
      .optional("causal_softmax", &S::causal_softmax,
                "softmax of stored attention: a kernel that reads all scores, one that reads up to "
                "the diagonal, or operators in fp32 (casts, mask, softmax)")
      .optional(
          "cross_entropy", &S::cross_entropy,
          "the loss of a vocabulary in one kernel each way, or by elementwise kernels in fp32")
      .optional("experts", &S::experts, "mixtures of experts");
}

/// Those and switches of what lies in memory.
config::Schema<TrainingSoftware> kept_switches() {
  using S = TrainingSoftware;
  return kernel_switches()
      .optional("saved_tensors", &S::saved_tensors,
                "what forward passes leave for backward passes: what fused kernels read again, or "
                "what each operator of PyTorch saves for its own gradient")
      .optional("wide_norms", &S::wide_norms,
                "root mean square norms by operators of PyTorch widen their input to fp32, which "
                "they keep; default: true")
      .optional("keeps_packed_heads", &S::keeps_packed_heads,
                "values of attention are a view of the product that gives queries, keys and "
                "values, which stays whole beside the rotated ones; default: false")
      .optional("pads_adapters", &S::pads_adapters,
                "adapters of queries and values are padded to the packed matrix by an operator "
                "that keeps them; default: false")
      .optional("keeps_frozen_inputs", &S::keeps_frozen_inputs,
                "products with frozen matrices that are stored in 8 bits or fewer keep their "
                "inputs for the backward pass, which does not read them; default: false")
      .optional("loss_tensors", &S::loss_tensors,
                "what the loss makes of logits: fp32 values in place; by operators of PyTorch, "
                "which widen them and have a gradient for each; that in chunks of tokens; or with "
                "the head, chunk by chunk, so that logits of few tokens are there; by operators on "
                "a copy without the last token (shifted); or by compiled kernels in 16 bits")
      .optional("loss_format", &S::loss_format,
                "format of log-probabilities and their gradients in a loss by operators: fp32, or "
                "that of the logits, which the loss then does not widen; default: fp32")
      .optional("keeps_gathered_inputs", &S::keeps_gathered_inputs,
                "backward passes find inputs of products as sequence parallelism gathered them, or "
                "gather them again")
      .optional("keeps_messages", &S::keeps_messages,
                "pipeline stages have buffers to receive the activations and gradients of all "
                "micro-batches, and keep what they sent until its gradient is used; default: false")
      .optional("segments", &S::segments,
                "memory of the device that PyTorch's allocator takes: in segments of fixed sizes, "
                "or in one of each stream that grows (expandable_segments:True)")
      .optional("releases_gradients", &S::releases_gradients,
                "gradients are freed at the end of a step (zero_grad(set_to_none=True)), or have a "
                "buffer");
}

/// Those and switches of the host that issues kernels.
config::Schema<TrainingSoftware> issued_switches() {
  using S = TrainingSoftware;
  return kept_switches()
      .optional("kernel_issue", &S::kernel_issue,
                "time of the host to issue a kernel outside of graphs, for which devices wait "
                "[us]; 0: none",
                config::between(Seconds(0), Seconds(1)))
      .optional(
          "launch_issue", &S::launch_issue,
          "time of the host to issue each further launch of a kernel that stands for several [us]",
          config::between(Seconds(0), Seconds(1)))
      .optional("graphs", &S::graphs,
                "what CUDA graphs capture: nothing, the choice of experts, attention and that, or "
                "the whole iteration");
}

/// Switches of sharded gradients and weights (zero 2 and 3), beside those of kernels and the host.
config::Schema<TrainingSoftware> sharding_switches() {
  using S = TrainingSoftware;
  return issued_switches()
      .optional("bucket_buffers", &S::bucket_buffers,
                "buffers of bucket_parameters elements that backward passes copy gradients into "
                "(zero 2, 3), whatever the size of the model; default: 0",
                config::between(0, 16))
      .optional("step_gradients", &S::step_gradients,
                "gradients that the optimizer reads: as they were added up, or copies in fp64 for "
                "the norm and in fp32 for the update that each step makes; default: kept")
      .optional("gradient_sync", &S::gradient_sync,
                "micro-batches in which sharded gradients (zero 2, 3) are reduced: every one, or "
                "the last one, before which ranks add them up whole (no_sync)")
      .optional("reshard_after_forward", &S::reshard_after_forward,
                "sharded weights (zero 3) are dropped behind a layer's forward pass and gathered "
                "again before its backward pass, or stay: for the step with pipeline stages")
      .optional("end_units", &S::end_units,
                "units of sharded weights that embedding and head form (zero 3): one, which stays "
                "for the step, or one each, of which the embedding's is dropped; default: root")
      .optional("last_layer_stays", &S::last_layer_stays,
                "sharded weights (zero 3) of the last layer stay from the forward to the backward "
                "pass; default: false")
      .optional(
          "forward_prefetch", &S::forward_prefetch,
          "weights of a layer are gathered beside the forward pass of the one before (zero 3)")
      .optional(
          "backward_prefetch", &S::backward_prefetch,
          "weights of a layer are gathered beside the backward pass of the one behind (zero 3)")
      .optional("weight_shards", &S::weight_shards,
                "shards of weights (zero 3): 16-bit copies beside master weights, or the fp32 "
                "master weights, cast before each gather")
      .optional("gather_copies", &S::gather_copies,
                "kernels that copy gathered weights into tensors of their own (zero 3), or views")
      .optional("reduction_copies", &S::reduction_copies,
                "kernels that copy gradients into the buffer that is reduced (zero 2, 3), or views")
      .optional("tensor_collectives", &S::tensor_collectives,
                "sharded weights are gathered, and their gradients reduced (zero 3), by a "
                "collective for each tensor, or for all of a unit")
      .optional("regathers_recomputed", &S::regathers_recomputed,
                "sharded weights (zero 3) of layers that are computed again are dropped behind "
                "that and gathered once more for gradients, but for the last matrix")
      .optional("fp8_weight_gathers", &S::fp8_weight_gathers,
                "weights of products in 8 bits are gathered as they are cast (zero 3)");
}

/// How fast kernels around products are, and which are computed again.
config::Schema<TrainingSoftware> rate_switches() {
  using S = TrainingSoftware;
  return sharding_switches()
      .optional("norm_rate", &S::norm_rate, "rate of norms over that of measured kernels",
                config::between(0.05, 2))
      .optional(
          "elementwise_rate", &S::elementwise_rate,
          "rate of functions, additions and sums between products over that of measured kernels",
          config::between(0.05, 2))
      .optional("strided_rate", &S::strided_rate,
                "rate of additions of a bias and changes of layout by kernels of their own, whose "
                "operands lie otherwise than their results, which are not vectorised",
                config::between(0.05, 2))
      .optional("compiled_rate", &S::compiled_rate,
                "rate of kernels that a compiler makes (TorchScript): functions of MLPs with their "
                "biases, additions of residuals with bias and dropout",
                config::between(0.05, 2))
      .optional("nvfp4_cast_rate", &S::nvfp4_cast_rate,
                "rate of casts with Hadamard transforms, and of kernels that order scales, over "
                "that of measured kernels",
                config::between(0.05, 2))
      .optional("attention_forward", &S::attention_forward,
                "rate of FlashAttention's forward pass over that of measured kernels",
                config::between(0.05, 2))
      .optional("attention_backward", &S::attention_backward,
                "rate of FlashAttention's backward pass over that of measured forward kernels",
                config::between(0.05, 2))
      .optional("attention_dropout", &S::attention_dropout,
                "rate of FlashAttention's passes with dropout over those without",
                config::between(0.05, 1))
      .optional("selective_recompute", &S::selective_recompute,
                "what recompute: selective computes again: cores of attention, or all but those "
                "and every second product in 16 bits (PyTorch's policy by operator)")
      .optional("recompute_stops_early", &S::recompute_stops_early,
                "full recomputation ends with the last value that gradients need, before the MLP's "
                "last product");
}

/// What collectives run beside, and who launches them.
config::Schema<TrainingSoftware> overlap_switches() {
  using S = TrainingSoftware;
  return rate_switches()
      .optional("tp_overlap", &S::tp_overlap,
                "what collectives of tensor parallelism run beside: nothing, in backward passes "
                "products of weight gradients, or with user buffers chunks of all products")
      .optional("buffer_copies", &S::buffer_copies,
                "operands that user buffers gather are copied into them by kernels of their own, "
                "and scales of blocks gathered before, or casts write there")
      .optional("pp_overlap", &S::pp_overlap,
                "schedules in which a stage goes on while its messages are under way: none, those "
                "with several chunks, all")
      .optional("scattered_messages", &S::scattered_messages,
                "each rank sends its part of a tensor where sequence parallelism leaves it whole, "
                "and receivers gather them")
      .optional("cp_comm_type", &S::cp_comm_type,
                "how ranks that share the tokens of sequences (parallel.cp) exchange what "
                "attention needs: keys and values round a ring, or gathered, or tokens for heads "
                "(a2a), or both (parallel.cp_a2a); names of Transformer Engine")
      .optional("gradient_reduction_overlap", &S::gradient_reduction_overlap,
                "gradients are reduced over replicas beside the last backward passes, bucket by "
                "bucket, or all behind them (zero 0, 1; sharded ones always beside)")
      .optional("weight_gather_overlap", &S::weight_gather_overlap,
                "sharded weights are gathered beside the first forward passes, layer by layer, or "
                "all at the end of a step")
      .optional("bucket_parameters", &S::bucket_parameters,
                "parameters of a bucket, which ends with a layer", config::between(1, 1e12))
      .optional("collective_calls", &S::collective_calls,
                "who launches all-reduces inside a system: a graph, or the host one by one, which "
                "takes call_delays longer")
      .optional("call_delays", &S::call_delays,
                "what calls by the host add to all-reduces, by ascending size");
}

}  // namespace

TrainingSoftware::TrainingSoftware() = default;
TrainingSoftware::TrainingSoftware(const TrainingSoftware&) = default;
TrainingSoftware::TrainingSoftware(TrainingSoftware&&) noexcept = default;
TrainingSoftware& TrainingSoftware::operator=(const TrainingSoftware&) = default;
TrainingSoftware& TrainingSoftware::operator=(TrainingSoftware&&) noexcept = default;
TrainingSoftware::~TrainingSoftware() = default;

const config::Schema<TrainingSoftware>& TrainingSoftware::schema() {
  using S = TrainingSoftware;
  static const auto schema =
      overlap_switches()
          .optional(
              "fp8_scaling", &S::fp8_scaling,
              "kernels that make operands of 8 bits and fewer: those that write them anyway, or "
              "casts by delayed, current or block scales (MXFP8; fp8_block and nvfp4 always)")
          .optional("hadamard_cast", &S::hadamard_cast,
                    "random Hadamard transforms of columns that are cast to nvfp4: none, by the "
                    "kernel that casts rows, or by a second one")
          .optional("scale_order", &S::scale_order,
                    "scales of blocks (MXFP8, NVFP4) are written as products read them, or put in "
                    "order by kernels of their own")
          .optional("keeps_narrow_inputs", &S::keeps_narrow_inputs,
                    "products of 8 bits and less keep their inputs for the backward pass in 8 bits")
          .optional("step_overhead", &S::step_overhead,
                    "time of each step in which the devices have no work: data, logging [s]",
                    config::between(Seconds(0), Seconds(1e3)))
          .optional("unmodelled", &S::unmodelled,
                    "standard deviation of the logarithm of step time over that of the graph, "
                    "beside what calibrations know; intervals are wider by it",
                    config::between(0, 1));
  return schema;
}

HostTime TrainingSoftware::host_time(GraphPart part) const {
  const GraphScope scope = graphs.value;
  const bool both = scope == GraphScope::kAttentionAndRouting;
  const bool captured =
      scope == GraphScope::kIteration ||
      (part == GraphPart::kRouting && (both || scope == GraphScope::kRouting)) ||
      (part == GraphPart::kAttention && (both || scope == GraphScope::kAttention));
  if (captured) return {};
  return {kernel_issue.value, launch_issue.value};
}

double TrainingSoftware::gradient_bytes(Precision precision) const {
  const GradientFormat format = main_gradients.value;
  const bool wide = format == GradientFormat::kFp32 ||
                    (format == GradientFormat::kFp32ForBf16 && precision != Precision::kFp16);
  return wide ? element_bytes(Precision::kFp32) : training_bytes(precision);
}

double TrainingSoftware::gathered_bytes(Precision precision) const {
  const double wide = training_bytes(precision);
  return fp8_weight_gathers.value ? std::min(wide, element_bytes(precision)) : wide;
}

double TrainingSoftware::beside_elementwise(double rate) const {
  return std::min(rate, elementwise_rate.value) / elementwise_rate.value;
}

NarrowScaling TrainingSoftware::scaling(Precision precision) const {
  const NarrowScaling scaling = fp8_scaling.value;
  if (element_bytes(precision) >= 2 || scaling == NarrowScaling::kFused)
    return NarrowScaling::kFused;
  const bool current = precision == Precision::kInt8 && scaling == NarrowScaling::kCurrent;
  return precision == Precision::kFp8 || current ? scaling : NarrowScaling::kBlocks;
}

bool TrainingSoftware::waits_for_messages(int chunks) const {
  if (pp_overlap.value == MessageOverlap::kInterleaved) return chunks == 1;
  return pp_overlap.value == MessageOverlap::kNone;
}

std::shared_ptr<const TrainingSoftware> default_software() {
  static const auto software = std::make_shared<const TrainingSoftware>();
  return software;
}

}  // namespace orrery
