// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/family.h"
#include "models/kernels/device/unit_work.h"
#include "models/kernels/tiles/matrix_product.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

enum Parameter : std::size_t {
  kLaunch,            ///< us of the launch
  kMatrixEfficiency,  ///< share of the matrix peak
  kVectorEfficiency,  ///< share of the vector peak, and of that of special functions
  kMemoryEfficiency,  ///< share of the bandwidths of memory and L2
};

/// Rows of a block: queries times heads of DeepGEMM's logits, as many as there are; and heads of
/// FlashMLA's sparse kernels (csrc/sm90/prefill/sparse: B_H), two blocks of which load, or widen,
/// keys for each other.
constexpr double kScoreRows = 128, kHeadRows = 64, kPair = 2;
/// Matrix rate over a cache of 8 bits, which is widened on vector lanes, to that over one of 16:
/// 410 to 640 TFLOP/s on an H800 (FlashMLA README: token-level sparse decoding and prefill).
constexpr double kWidened = 410.0 / 640;
/// Matrix rate of backward passes to that of forward ones: 100 to 640 TFLOP/s on an H800
/// (tile-ai/tilelang, examples/deepseek_v32/README.md; FlashMLA README).
constexpr double kBackward = 100.0 / 640;
constexpr double kSumBytes = 4;     ///< bytes of an element of the sums that are gradients of keys
constexpr double kNarrowBytes = 1;  ///< bytes of an element of a cache of 8 bits
constexpr double kScoreBytes = 4, kReads = 2;  ///< a selection reads its fp32 scores twice

/// Heads of a block: those that one matrix instruction takes, where it reads the cache as it is
/// (vLLM pads those of a rank to 64 on Hopper and 128 on Blackwell for the prefill kernel,
/// v1/attention/backends/mla/flashmla_sparse.py).
double head_rows(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  if (kernel.attention.wide_queries || !accelerator.core || !accelerator.core->matrix_tile)
    return kHeadRows;
  return std::max<double>(kHeadRows, accelerator.core->matrix_tile->rows);
}

/// Selections of rows in whole waves, each at a unit's share of what the L2 gives.
double rows_us(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const double units = static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
  const double waves = std::ceil(static_cast<double>(kernel.batch) / units);
  return waves * static_cast<double>(kernel.n) * kScoreBytes * kReads /
         (cache_rate(accelerator) / units);
}

/// Kernels of sparse attention (workloads/layers/sparse/indexer_kernels.h): a roofline over
/// thread blocks. Products (scores of an indexer, attention to what was chosen) take the longest of
/// matrix units, vector lanes, memory and L2, from which each block of rows loads all of its keys;
/// heads that do not fill the rows of a block leave them empty. Selections have a block for each
/// row of scores, which reads it twice at a unit's share of the L2's bandwidth, in whole waves.
/// Backwards blocks add gradients of their keys up in the L2, at a published share of the forward
/// rate. No table has been measured: parameters are estimates, but for what published rates say
/// (priors).
class SparseFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
    static const std::vector<ParameterInfo> table = {
        {"launch", "us", 0.1, 1000},
        {"matrix_efficiency", "1", 0.02, 1.5},
        {"vector_efficiency", "1", 0.02, 1.5},
        {"memory_efficiency", "1", 0.05, 1},
    };
    return table;
  }

  std::vector<double> priors(const AcceleratorConfig& accelerator, Precision) const override {
    const KernelConfig& model = accelerator.kernel;
    // 640 TFLOP/s of sparse prefill on an H800, whose peak is 989 (FlashMLA README).
    constexpr double kSparsePrefill = 640.0 / 989;
    return {model.launch.value.base() * kMicro, kSparsePrefill, model.vector_efficiency.value,
            model.memory_efficiency.value};
  }

  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* v) const override {
    const double bytes = (kernel.read + kernel.written).base();
    const double memory = bytes / (memory_rate(accelerator) * v[kMemoryEfficiency]);
    const double vector = vector_us(kernel, accelerator) / v[kVectorEfficiency];
    KernelTime time;
    time.launch_us = v[kLaunch];
    if (kernel.matrix_flops.base() == 0) {
      const double rows =
          accelerator.cache ? rows_us(kernel, accelerator) / v[kMemoryEfficiency] : 0;
      time.total_us = v[kLaunch] + std::max({memory, vector, rows});
      return time;
    }
    const bool attends = kernel.attention.sequences > 0;
    const double rows = attends ? head_rows(kernel, accelerator) : kScoreRows;
    const double blocks = std::ceil(static_cast<double>(kernel.m) / rows);
    const double filled = attends ? static_cast<double>(kernel.m) / (blocks * rows) : 1;
    const double matrix =
        (kernel.matrix_flops / matrix_peak(accelerator, kernel)).base() * kMicro /
        (v[kMatrixEfficiency] * filled * (kernel.attention.wide_queries ? kWidened : 1) *
         (kernel.attention.backward ? kBackward : 1));
    const double loads = attends ? std::ceil(blocks / kPair) : blocks;
    // Backwards each pair of blocks adds to the sums of its keys, which are read and written.
    const double element =
        (kernel.attention.wide_queries ? kNarrowBytes : element_bytes(kernel.precision)) +
        (kernel.attention.backward ? 2 * kSumBytes : 0);
    const double loaded = static_cast<double>(kernel.batch) * loads *
                          static_cast<double>(kernel.n) * static_cast<double>(kernel.k) * element;
    const double cache =
        accelerator.cache ? loaded / (cache_rate(accelerator) * v[kMemoryEfficiency]) : 0;
    time.loaded_bytes = loaded;
    time.cache_bytes = std::max(bytes, loaded);
    time.total_us = v[kLaunch] + std::max({matrix, vector, memory, cache});
    return time;
  }
};

const RegisterTileFamily<SparseFamily> registered_sparse_tiles(
    KernelClass::kSparse, "sparse attention by blocks of rows and what they load");

}  // namespace
}  // namespace orrery
