// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/attention/rotary_kernels.h"

#include "workloads/ops/kernels.h"
#include "workloads/software/training_software.h"

namespace orrery {
namespace {

/// Elementwise operators: values that they read and write for each rotated one.
struct RotaryPasses {
  double reads = 0, writes = 0;
  std::int64_t kernels = 0;
};

/// apply_rotary_pos_emb of Hugging Face's models (huggingface/transformers modeling_llama.py) and
/// others: the product with cosines, the second halves negated and put in front of the first ones
/// (neg, cat), the product with sines, the sum.
constexpr RotaryPasses kHalves{1 + 0.5 + 1 + 1 + 2, 1 + 0.5 + 1 + 1 + 1, 5};
/// Its gradients: both products; the halves negated, each written into zeros of the whole width
/// (slice_backward), and their sum; the sum with the gradient by cosines.
constexpr RotaryPasses kHalvesBackward{1 + 1 + 0.5 + 2 * 0.5 + 2 + 2, 1 + 1 + 0.5 + 2 * 1.5 + 1 + 1,
                                       9};
/// The product with complex numbers (pytorch/torchtitan models/llama/model.py apply_rotary_emb),
/// and of gradients with their conjugates.
constexpr RotaryPasses kComplex{1, 1, 1};

Kernel by_passes(const char* name, const RankWork& w, std::int64_t width, const RotaryPasses& all) {
  const double bytes = activation_bytes(w.formats.precision);
  const bool wide = w.software->rotary.value != RotaryKernels::kHalves;
  const double value = wide ? element_bytes(Precision::kFp32) : bytes;
  StreamCost cost{all.reads * value, all.writes * value, vector_cost::kRotary};
  if (wide) {  // the casts to fp32 and back
    cost.read += bytes + value;
    cost.written += value + bytes;
  }
  Kernel kernel = elementwise(name, w.tokens(), width, cost);
  kernel.launches = 2 * (all.kernels + (wide ? 2 : 0));  // of queries and of keys
  return kernel;
}

Kernel rotary(const char* name, const LayerTask& task, std::int64_t width, bool gradient) {
  const RankWork& w = task.work;
  const RotaryKernels by = w.trains() ? w.software->rotary.value : RotaryKernels::kFused;
  if (by == RotaryKernels::kFused) return rotate(name, w.formats.precision, w.tokens(), width);
  if (by == RotaryKernels::kComplex) return by_passes(name, w, width, kComplex);
  return by_passes(name, w, width, gradient ? kHalvesBackward : kHalves);
}

}  // namespace

Kernel rotated(const LayerTask& task, std::int64_t width) {
  return rotary("rotary", task, width, false);
}

Kernel rotated_backward(const LayerTask& task, std::int64_t width) {
  return rotary("rotary backward", task, width, true);
}

}  // namespace orrery
