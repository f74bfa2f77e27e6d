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
  kLaunch,               ///< us of the launch
  kMatrixEfficiency,     ///< share of the matrix peak
  kVectorEfficiency,     ///< share of the vector peak, and of that of special functions
  kMemoryEfficiency,     ///< share of the bandwidths of memory and L2
  kSelectionEfficiency,  ///< share of the L2's bandwidth that selections read their scores at
  kBlock,                ///< us of a block, or of a row of a selection, beyond its keys
};

/// Rows of a block of DeepGEMM's logits: queries of a prompt times heads (fp8_mqa_logits), or the
/// heads of one token (fp8_paged_mqa_logits).
constexpr double kScoreRows = 128, kTokenRows = 64;
/// us of a block beyond its keys, on H200: scores of 4 to 500 keys (tables dsv4_parts and
/// glm5_parts of NVIDIA AIConfigurator at 095f58a5).
constexpr double kBlockUs = 1;
/// Heads of a block of FlashMLA's sparse kernels (csrc/sm90/prefill/sparse: B_H), two blocks of
/// which load, or widen, keys for each other.
constexpr double kHeadRows = 64, kPair = 2;
/// Matrix rate over a cache of 8 bits, which is widened on vector lanes, to that over one of 16:
/// 410 to 640 TFLOP/s on an H800 (FlashMLA README: token-level sparse decoding and prefill).
constexpr double kWidened = 410.0 / 640;
/// Matrix rate of backward passes to that of forward ones: 100 to 640 TFLOP/s on an H800
/// (tile-ai/tilelang, examples/deepseek_v32/README.md; FlashMLA README).
constexpr double kBackward = 100.0 / 640;
constexpr double kSumBytes = 4;     ///< bytes of an element of the sums that are gradients of keys
constexpr double kNarrowBytes = 1;  ///< bytes of an element of a cache of 8 bits
constexpr double kScoreBytes = 4, kReads = 2;  ///< a selection reads its fp32 scores twice
/// Share of the L2's bandwidth that selections reach on H200 (SGLang 0.5.14's
/// fast_topk_transform_fused, table glm5_parts of NVIDIA AIConfigurator at 095f58a5).
constexpr double kSelects = 0.4;

/// Share of a unit's part of the L2's bandwidth at which it reads queries and writes results.
constexpr double kRowShare = 0.5;

double units_of(const AcceleratorConfig& accelerator) {
  return static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
}

/// Columns of DeepSeek-V4's key, whose kernel has blocks of 64 heads on Blackwell, too: 1.0 PFLOP/s
/// of 64 heads on B200, of DeepSeek-V3.2's key of 576 columns 0.58 (FLASHMLA_SPARSE_DSV4 and
/// flash_mla_sparse_fwd, tables dsv4_parts and glm5_parts of NVIDIA AIConfigurator at 095f58a5).
constexpr std::int64_t kNarrowKey = 512;

/// Heads of a block: those that one matrix instruction takes, where it reads the cache as it is
/// (vLLM pads those of a rank to 64 on Hopper and 128 on Blackwell for the prefill kernel,
/// v1/attention/backends/mla/flashmla_sparse.py).
double head_rows(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const bool narrow_key = kernel.k <= kNarrowKey;
  if (kernel.attention.wide_queries || narrow_key || !accelerator.core ||
      !accelerator.core->matrix_tile)
    return kHeadRows;
  return std::max<double>(kHeadRows, accelerator.core->matrix_tile->rows);
}

/// Waves of a selection, a block a row, and what a row takes at a unit's share of the L2.
double selection_waves(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  return std::ceil(static_cast<double>(kernel.batch) / units_of(accelerator));
}
double row_us(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  if (!accelerator.cache) return 0;
  return static_cast<double>(kernel.n) * kScoreBytes * kReads * units_of(accelerator) /
         cache_rate(accelerator);
}

/// The blocks of a product: rows of each, how many there are, and whether units share the keys of a
/// block, as kernels of new tokens do, so that no unit waits for a last wave.
struct Blocks {
  double rows = 0, count = 0;
  bool shared = false;

  /// Turns of all units.
  double waves(double units) const {
    const double turns = count / units;
    return shared ? turns : std::ceil(turns);
  }
};

Blocks blocks_of(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const auto rows = static_cast<double>(kernel.m), all = static_cast<double>(kernel.batch);
  if (kernel.attention.sequences > 0) {
    const double tile = head_rows(kernel, accelerator);
    // Pairs of units work on tiles of twice the heads.
    return {kHeadRows, all * std::ceil(rows / tile) * tile / kHeadRows,
            kernel.attention.wide_queries};
  }
  const bool token = rows <= kTokenRows;
  const double tile = token ? kTokenRows : kScoreRows;
  return {tile, all * std::ceil(rows / tile), token};
}

/// Work of a block of attention on all of its places, over that on those which are filled.
double over_filled(const Kernel& kernel) {
  const double filled = std::max<double>(1, static_cast<double>(kernel.n));
  return std::max(filled, static_cast<double>(kernel.attention.places)) / filled;
}

/// us in which a unit reads the queries of a block of attention and writes what it gives: a unit
/// has one block at a time, so that no products run meanwhile.
double rows_us(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  if (kernel.attention.sequences == 0 || !accelerator.cache) return 0;
  const double rows = static_cast<double>(kernel.batch) * static_cast<double>(kernel.m);
  const double columns = kernel.matrix_flops.base() / 2 / (rows * static_cast<double>(kernel.n));
  return std::min(kHeadRows, static_cast<double>(kernel.m)) * columns *
         std::max(2.0, element_bytes(kernel.precision)) * units_of(accelerator) /
         (kRowShare * cache_rate(accelerator));
}

/// Kernels of sparse attention (workloads/layers/sparse/indexer_kernels.h): blocks of rows go over
/// their keys, in whole waves. Products (scores of an indexer, attention to what was chosen) take
/// the longest of matrix units, vector lanes, memory and L2, from which each block of rows loads
/// all of its keys; heads that do not fill the rows of a block leave them empty. Selections have a
/// block for each row of scores, which reads it twice at a unit's share of the L2's bandwidth.
/// Backwards blocks add gradients of their keys up in the L2, at a published share of the forward
/// rate.
class SparseFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
    static const std::vector<ParameterInfo> table = {
        {"launch", "us", 0.1, 1000},
        {"matrix_efficiency", "1", 0.02, 1.5},
        {"vector_efficiency", "1", 0.02, 1.5},
        {"memory_efficiency", "1", 0.05, 1},
        {"selection_efficiency", "1", 0.01, 1},
        {"block", "us", 0.01, 20},
    };
    return table;
  }

  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override {
    const KernelConfig& model = accelerator.kernel;
    // 640 TFLOP/s of sparse prefill on an H800, whose peak is 989 (FlashMLA README), with what
    // blocks take beyond products; 0.9 PFLOP/s of scores in fp8 on H200 (the tables below).
    constexpr double kSparsePrefill = 0.73, kScores = 0.45;
    const double efficiency = element_bytes(precision) < 2 ? kScores : kSparsePrefill;
    return {model.launch.value.base() * kMicro,
            efficiency,
            model.vector_efficiency.value,
            model.memory_efficiency.value,
            kSelects * model.memory_efficiency.value,
            kBlockUs};
  }

  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* v) const override {
    const double bytes = (kernel.read + kernel.written).base();
    const double memory = bytes / (memory_rate(accelerator) * v[kMemoryEfficiency]);
    const double filled = over_filled(kernel);
    const double vector = filled * vector_us(kernel, accelerator) / v[kVectorEfficiency];
    KernelTime time;
    time.launch_us = v[kLaunch];
    if (kernel.matrix_flops.base() == 0) {
      const double row = row_us(kernel, accelerator) / v[kSelectionEfficiency] + v[kBlock];
      time.total_us =
          v[kLaunch] + std::max({memory, vector, selection_waves(kernel, accelerator) * row});
      return time;
    }
    const bool attends = kernel.attention.sequences > 0;
    const Blocks blocks = blocks_of(kernel, accelerator);
    const double units = units_of(accelerator);
    const double all_rows = static_cast<double>(kernel.batch) * static_cast<double>(kernel.m);
    const double of_row =
        (kernel.matrix_flops / matrix_peak(accelerator, kernel)).base() * kMicro * units / all_rows;
    const double waves = blocks.waves(units);
    const double matrix = waves * blocks.rows * of_row * filled /
                          (v[kMatrixEfficiency] * (kernel.attention.wide_queries ? kWidened : 1) *
                           (kernel.attention.backward ? kBackward : 1));
    const double loads = attends ? std::ceil(blocks.count / kPair) : blocks.count;
    // Backwards each pair of blocks adds to the sums of its keys, which are read and written.
    const double element =
        (kernel.attention.wide_queries ? kNarrowBytes : element_bytes(kernel.precision)) +
        (kernel.attention.backward ? 2 * kSumBytes : 0);
    const double loaded =
        loads * filled * static_cast<double>(kernel.n) * static_cast<double>(kernel.k) * element;
    const double cache =
        accelerator.cache ? loaded / (cache_rate(accelerator) * v[kMemoryEfficiency]) : 0;
    time.loaded_bytes = loaded;
    time.cache_bytes = std::max(bytes, loaded);
    time.computed = filled;
    const double turn = v[kBlock] + rows_us(kernel, accelerator);
    time.total_us = v[kLaunch] + waves * turn + std::max({matrix, vector, memory, cache});
    return time;
  }

  std::optional<ResidualPoint> residual_point(const Kernel& kernel, const AcceleratorConfig& on,
                                              const double* /*values*/) const override {
    if (kernel.attention.backward) return std::nullopt;  // tables have forward passes only
    const Blocks blocks = blocks_of(kernel, on);
    const int attends = kernel.attention.sequences > 0 ? 2 : 0;
    // Keys of other columns have kernels of their own.
    return ResidualPoint{4 * static_cast<int>(kernel.k) + attends + (blocks.shared ? 1 : 0),
                         {0.5 * std::log2(std::max(1.0, blocks.count)),
                          0.5 * std::log2(std::max<double>(1, static_cast<double>(kernel.n))),
                          0.3 * std::log2(std::max<double>(1, static_cast<double>(kernel.m)))}};
  }
};

const RegisterTileFamily<SparseFamily> registered_sparse_tiles(
    KernelClass::kSparse, "sparse attention by blocks of rows and what they load");

}  // namespace
}  // namespace orrery
