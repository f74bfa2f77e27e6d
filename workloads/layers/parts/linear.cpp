// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/linear.h"

#include <algorithm>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/parts/chunked_products.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/software/engine_switches.h"
#include "workloads/software/narrow_casts.h"

namespace orrery {
namespace {

const KernelSwitch kQuantisesWidened{
    "quantises_widened", false,
    "quantise the input of each product whose weights are narrow by a kernel of its own, with "
    "operators_apart (llama.cpp on CUDA)"};

GemmShape shape_of(const Linear& linear, std::int64_t rows) {
  return {.m = rows, .n = linear.out, .k = linear.in};
}

/// Rate of products of MXFP8 over that of products with a scale a tensor, which were measured: 12
/// of a layer of 4,096 columns take 7.161 ms of Transformer Engine on a B300, those 6.812 (8f2e635
/// docs/examples/gemm_profiling, 2026, operands cast before). Of experts nothing is known.
constexpr double kBlockProducts = 6.812 / 7.161;

Kernel at_rate_of_scales(const RankWork& work, Kernel product) {
  const bool blocks = work.trains() && product.kind == KernelClass::kGemm &&
                      product.precision == Precision::kFp8 &&
                      work.software->scaling(product.precision) == NarrowScaling::kBlocks;
  if (blocks) product.rate *= kBlockProducts;
  return product;
}

/// Whether operands of a product are gathered in its own format, not in that of activations:
/// Transformer Engine gathers what it has cast (module/base.py, distributed.py; recalled).
bool gathers_narrow(const RankWork& work, const Linear& linear) {
  return work.trains() && work.software->scaling(linear.precision) != NarrowScaling::kFused;
}

LayerCollective operand_gather(const std::string& name, const RankWork& work, const Linear& linear,
                               std::int64_t width) {
  LayerCollective gather = tensor_collective(name, TransferKind::kAllGather, work, width);
  gather.bytes = Bytes(real(work.tokens()) * real(width) * gathered_bytes(work, linear));
  return gather;
}

/// Copies of a gradient that are gathered. Blocks along rows are not those along columns, so that
/// neither can be made of the other (Transformer Engine, pytorch/module/base.py:
/// grad_output_preprocess sets the usage of both before gather_along_first_dim).
double copies_of_gradients(const RankWork& work, const Linear& linear) {
  return gathers_narrow(work, linear) &&
                 work.software->scaling(linear.precision) == NarrowScaling::kBlocks
             ? 2
             : 1;
}

/// The copy for weight gradients of an operand that has been gathered, put in order.
std::vector<Kernel> ordered(const RankWork& work, const Linear& linear, const std::string& name,
                            std::int64_t width) {
  if (!gathers_narrow(work, linear)) return {};
  NarrowOperand operand;
  operand.name = name;
  operand.rows = work.tokens();
  operand.width = width;
  operand.precision = linear.precision;
  return gathered_order(operand);
}

/// The kernel that adds a bias, where the product does not.
void add_bias(StepList& steps, const RankWork& work, const Linear& linear) {
  if (linear.bias != Bias::kAdded || !work.trains() ||
      work.software->bias_addition.value == Fusion::kFused)
    return;
  const double bytes = activation_bytes(work.formats.precision);
  Kernel addition =
      elementwise(linear.name + " bias", work.tokens(), linear.out, {bytes, bytes, 1});
  addition.rate = work.software->strided();
  steps.then(std::move(addition));
}

/// Sums of columns of the output's gradient, where the product of weight gradients has none.
void sum_bias_gradient(StepList& steps, const RankWork& work, const Linear& linear,
                       std::int64_t rows, std::size_t gradient) {
  if (work.lora.trains || linear.bias == Bias::kNone ||
      work.software->bias_gradients.value == Fusion::kFused)
    return;
  steps.for_weights(elementwise(linear.name + " bias gradient", rows, linear.out,
                                {activation_bytes(work.formats.precision), 0, 1}),
                    {gradient});
}

/// The gradient of a matrix's input.
Kernel input_gradient(const RankWork& work, const Linear& linear, std::int64_t rows) {
  return gradient_product(work, data_gradient(linear.name, linear.precision, shape_of(linear, rows),
                                              work.trains() ? linear.weights : WeightFormat{}));
}

void add_input_gradients(StepList& steps, const RankWork& work, const Linear& linear) {
  const double bytes = activation_bytes(work.formats.precision);
  steps.then(elementwise(linear.name + " input gradient add", work.tokens(), linear.in,
                         {2 * bytes, bytes, 1}));
}

/// The gradient of a matrix, added to that of earlier micro-batches.
/// @return the last step; kStart where the matrix is frozen
std::size_t add_weight_gradient(StepList& steps, const RankWork& work, const Linear& linear,
                                std::int64_t rows, const std::vector<std::size_t>& after) {
  if (work.lora.trains) return StepList::kStart;  // frozen
  const GradientBuffer buffer = gradient_buffer(work);
  const std::size_t product = steps.for_weights(
      gradient_product(
          work, weight_gradient(linear.name, linear.precision, shape_of(linear, rows), buffer)),
      after);
  if (!buffer.apart) return product;
  return steps.for_weights(gradient_addition(linear.name, linear.in, linear.out, buffer),
                           {product});
}

/// Both gradients, of an output's gradient that is there as products read it.
void products_backward(StepList& steps, const RankWork& work, const Linear& linear,
                       std::int64_t rows) {
  const std::size_t gradient = steps.cursor();
  widen_frozen(steps, work, linear);
  steps.then(input_gradient(work, linear, rows));
  adapter_backward(steps, work, linear, rows, gradient);
  add_weight_gradient(steps, work, linear, rows, {gradient});
}

}  // namespace

void quantise_input(StepList& steps, const RankWork& work, const Linear& linear,
                    std::int64_t rows) {
  if (work.trains() || !work.quantises_apart(linear.precision)) return;
  const auto kernel = linear.precision == Precision::kFp8 ? quantize_by_known_scale : quantize;
  steps.then(kernel(linear.name + " input quantisation", linear.precision, rows, linear.in));
}

Kernel launched_product(const RankWork& work, const Linear& linear, std::int64_t rows) {
  Kernel kernel = gemm(linear.name, linear.precision, shape_of(linear, rows), linear.weights);
  const std::int64_t joined = linear.adapted ? linear.adapted->packed : 1;
  const bool quantised = work.kernels.on(kQuantisesWidened) && linear.weights.bits > 0;
  kernel.launches = work.launches(joined * (quantised ? 2 : 1));
  return at_rate_of_scales(work, std::move(kernel));
}

void cast(StepList& steps, const RankWork& work, const Linear& linear, Cast what,
          std::int64_t rows) {
  if (!work.trains()) return;
  const NarrowScaling scaling = work.software->scaling(linear.precision);
  if (scaling == NarrowScaling::kFused) return;
  const bool gradient = what == Cast::kGradient || what == Cast::kGatheredGradient;
  NarrowOperand operand;
  operand.name = linear.name + (gradient ? " gradient" : " input");
  operand.rows = rows;
  operand.width = gradient ? linear.out : linear.in;
  operand.precision = linear.precision;
  operand.wide = activation_bytes(work.formats.precision);
  operand.weights = real(linear.in) * real(linear.out);
  operand.made = scaling == NarrowScaling::kDelayed && what == Cast::kNormed;
  if (const auto largest = largest_value(*work.software, operand)) {
    steps.then(*largest);
    // Ranks scale the shares of a tensor that they gather alike (Transformer Engine,
    // pytorch/module/linear.py: with_amax_reduction of column-parallel inputs and row-parallel
    // gradients under sequence parallelism).
    if (work.split.sp && work.split.tp > 1 &&
        (what == Cast::kNormed || what == Cast::kGatheredGradient))
      steps.then(LayerCollective{operand.name + " largest all-reduce", TransferKind::kAllReduce,
                                 Scope::kTensor, Bytes(sizeof(float))});
  }
  for (Kernel& kernel : narrow_casts(*work.software, operand)) steps.then(std::move(kernel));
}

double gathered_bytes(const RankWork& work, const Linear& linear) {
  return gathers_narrow(work, linear) ? element_bytes(linear.precision)
                                      : activation_bytes(work.formats.precision);
}

void widen_frozen(StepList& steps, const RankWork& work, const Linear& linear) {
  if (!work.lora.trains || !linear.adapted || work.lora.frozen == FrozenFormat::kAsTrained) return;
  const double wide = activation_bytes(work.formats.precision);
  steps.then(elementwise(linear.name + " weight widening", linear.in, linear.out,
                         {frozen_bytes(work.lora.frozen, wide), wide, 2}));
}

Kernel gradient_product(const RankWork& work, Kernel product) {
  if (product.precision == Precision::kFp8) product.rate *= work.formats.fp8_gradient_rate;
  return at_rate_of_scales(work, std::move(product));
}

GradientBuffer gradient_buffer(const RankWork& work) {
  const bool apart = work.software->accumulates_apart() && !work.passes.fresh_gradients;
  const double sum = work.software->gradient_bytes(work.formats.precision);
  const double element = training_bytes(work.formats.precision);
  const bool widens = work.software->gradient_widening.value == Fusion::kApart;
  return {sum, element, apart, work.passes.fresh_gradients, apart && widens && sum > element};
}

LayerCollective tensor_collective(std::string name, TransferKind kind, const RankWork& work,
                                  std::int64_t width) {
  return {std::move(name), kind, Scope::kTensor,
          Bytes(real(work.tokens()) * real(width) * activation_bytes(work.formats.precision))};
}

void column_forward(StepList& steps, const RankWork& work, const std::vector<Linear>& linears,
                    std::int64_t width) {
  const Linear& first = linears.front();
  if (!work.place.whole_input) cast(steps, work, first, Cast::kNormed, work.row_tokens());
  if (in_chunks(work) && !work.place.whole_input) {
    std::vector<Kernel> products;
    products.reserve(linears.size());
    for (const Linear& linear : linears)
      products.push_back(launched_product(work, linear, work.tokens()));
    fill_buffer(steps, work, first, first.name + " input", width);
    product_of_parts(steps, work,
                     operand_gather(first.name + " input all-gather", work, first, width),
                     products);
    for (const Linear& linear : linears) {
      adapter_forward(steps, work, linear, work.tokens());
      add_bias(steps, work, linear);
    }
    return;
  }
  if (work.split.sp && !work.place.whole_input)
    steps.then(operand_gather(first.name + " input all-gather", work, first, width));
  quantise_input(steps, work, first, work.tokens());
  for (const Linear& linear : linears) {
    widen_frozen(steps, work, linear);
    steps.then(launched_product(work, linear, work.tokens()));
    adapter_forward(steps, work, linear, work.tokens());
    add_bias(steps, work, linear);
  }
}

void column_backward(StepList& steps, const RankWork& work, const std::vector<Linear>& linears,
                     std::int64_t width) {
  const std::string& name = linears.front().name;
  const bool overlaps = work.software->overlaps_tensor_parallelism();
  for (const Linear& linear : linears) cast(steps, work, linear, Cast::kGradient, work.tokens());
  const std::size_t gradient = steps.cursor();
  std::size_t input = StepList::kStart;
  const bool needs_input = std::ranges::any_of(
      linears, [&](const Linear& linear) { return !work.lora.trains || is_adapted(work, linear); });
  if (work.split.sp && !work.place.whole_input && needs_input) {
    const LayerCollective gather =
        operand_gather(name + " input all-gather again", work, linears.front(), width);
    if (in_chunks(work)) fill_buffer(steps, work, linears.front(), name + " input again", width);
    input = overlaps ? steps.for_weights(gather, {steps.cursor()}) : steps.then(gather);
    for (Kernel& kernel : ordered(work, linears.front(), name + " input again", width))
      input = overlaps ? steps.for_weights(kernel, {input}) : steps.then(kernel);
  }
  for (const Linear& linear : linears) {
    widen_frozen(steps, work, linear);
    steps.then(input_gradient(work, linear, work.tokens()));
    adapter_backward(steps, work, linear, work.tokens(), gradient);
    if (linear.shares_input) add_input_gradients(steps, work, linear);
  }
  const auto weight_gradients = [&] {
    std::vector<std::size_t> last;
    for (const Linear& linear : linears) {
      sum_bias_gradient(steps, work, linear, work.tokens(), gradient);
      last.push_back(add_weight_gradient(steps, work, linear, work.tokens(), {input, gradient}));
    }
    return last;
  };
  if (work.split.tp == 1 || work.place.whole_input) {
    weight_gradients();
    return;
  }
  const auto kind = work.split.sp ? TransferKind::kReduceScatter : TransferKind::kAllReduce;
  const std::string verb = work.split.sp ? "reduce-scatter" : "all-reduce";
  const LayerCollective reduction = tensor_collective(name + " dgrad " + verb, kind, work, width);
  if (overlaps) {
    steps.then(reduction);
    weight_gradients();
  } else {
    steps.join(reduction, weight_gradients());
  }
}

void row_forward(StepList& steps, const RankWork& work, const Linear& linear, RowOutput output) {
  cast(steps, work, linear, Cast::kInput, work.tokens());
  quantise_input(steps, work, linear, work.tokens());
  const Kernel whole = launched_product(work, linear, work.tokens());
  const bool scattered = output == RowOutput::kScattered;
  const LayerCollective reduction = tensor_collective(
      linear.name + (scattered ? " output reduce-scatter" : " output all-reduce"),
      scattered ? TransferKind::kReduceScatter : TransferKind::kAllReduce, work, linear.out);
  if (in_chunks(work) && scattered && !work.place.partial_output) {
    scatter_parts(steps, work, reduction, whole);
    return;
  }
  widen_frozen(steps, work, linear);
  steps.then(whole);
  adapter_forward(steps, work, linear, work.tokens());
  if (work.split.tp > 1 && !work.place.partial_output) steps.then(reduction);
}

void row_backward(StepList& steps, const RankWork& work, const Linear& linear) {
  const std::int64_t rows = work.place.partial_output ? work.tokens() : work.row_tokens();
  sum_bias_gradient(steps, work, linear, rows, steps.cursor());
  const bool gathered = work.split.sp && work.split.tp > 1;
  if (!work.place.partial_output)
    cast(steps, work, linear, gathered ? Cast::kGatheredGradient : Cast::kGradient, rows);
  if (!work.split.sp || work.place.partial_output) {
    products_backward(steps, work, linear, work.tokens());
    return;
  }
  LayerCollective gather =
      operand_gather(linear.name + " gradient all-gather", work, linear, linear.out);
  gather.bytes = gather.bytes * copies_of_gradients(work, linear);
  if (!in_chunks(work)) {
    steps.then(gather);
    for (Kernel& kernel : ordered(work, linear, linear.name + " gradient", linear.out))
      steps.then(kernel);
    products_backward(steps, work, linear, work.tokens());
    return;
  }
  fill_buffer(steps, work, linear, linear.name + " gradient", linear.out);
  const std::size_t gradient = steps.cursor();
  product_of_parts(steps, work, gather, {input_gradient(work, linear, work.tokens())});
  adapter_backward(steps, work, linear, work.tokens(), gradient);
  add_weight_gradient(steps, work, linear, work.tokens(), {steps.cursor()});
}

void detached_backward(StepList& steps, const RankWork& work, const Linear& linear,
                       std::int64_t rows, std::size_t gradient) {
  cast(steps, work, linear, Cast::kGradient, rows);
  add_weight_gradient(steps, work, linear, rows, {gradient});
}

void batched_backward(StepList& steps, const RankWork& work, const std::string& name,
                      GemmShape forward) {
  const Precision precision = unquantised(work.formats.precision);
  const std::size_t gradient = steps.cursor();
  steps.then(data_gradient(name, precision, forward));
  if (work.lora.trains) return;  // frozen
  const GradientBuffer buffer = gradient_buffer(work);
  const std::size_t product =
      steps.for_weights(weight_gradient(name, precision, forward, buffer), {gradient});
  if (buffer.apart)
    steps.for_weights(gradient_addition(name, forward.batch * forward.k, forward.n, buffer),
                      {product});
}

void local_forward(StepList& steps, const RankWork& work, const Linear& linear, std::int64_t rows) {
  cast(steps, work, linear, Cast::kInput, rows);
  quantise_input(steps, work, linear, rows);
  widen_frozen(steps, work, linear);
  steps.then(launched_product(work, linear, rows));
  adapter_forward(steps, work, linear, rows);
}

void local_backward(StepList& steps, const RankWork& work, const Linear& linear,
                    std::int64_t rows) {
  cast(steps, work, linear, Cast::kGradient, rows);
  products_backward(steps, work, linear, rows);
}

}  // namespace orrery
