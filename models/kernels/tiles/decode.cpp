// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/family.h"
#include "models/kernels/device/unit_work.h"
#include "models/kernels/tiles/decode_kernels.h"
#include "sim/machine/kernel_model.h"

namespace orrery {

DecodeProblem device_of(const AcceleratorConfig& accelerator) {
  const double dies = accelerator.dies;
  DecodeProblem p;
  p.units = static_cast<double>(accelerator.compute.units.value) / dies;
  p.kclk = unit_kclk_us(accelerator);
  p.memory = memory_rate(accelerator);
  if (accelerator.cache) {
    p.cache = accelerator.cache->capacity.value.base() / dies;
    p.cache_rate =
        cache_hit_rate(accelerator, accelerator.cache->bandwidth.value.base() / dies / 1e6);
  }
  return p;
}

namespace {

/// Kernels in the order of their blocks of parameters.
enum Path : std::size_t { kMasked, kGrouped, kNarrow, kDense };
constexpr std::array kKernels = {masked_decode, grouped_decode, narrow_decode, dense_decode};
constexpr std::size_t kPaths = kKernels.size();

/// Where the block of a kernel begins among all parameters.
const std::array<std::size_t, kPaths + 1>& offsets() {
  static const std::array<std::size_t, kPaths + 1> table = [] {
    std::array<std::size_t, kPaths + 1> begin{};
    for (std::size_t i = 0; i < kPaths; ++i)
      begin[i + 1] = begin[i] + kKernels[i]().parameters.size();
    return begin;
  }();
  return table;
}

/// Bytes of an element of the cache, from the traffic: queries are 16 bits wide, and the newest
/// keys may be.
double cache_element(const Kernel& kernel, const DecodeProblem& p) {
  if (kernel.attention.wide_queries || element_bytes(kernel.precision) < 2) return 1;
  const double cached = kernel.read.base() - p.query_bytes() / 2;
  return p.seen > 1 && cached > 0 && cached < 1.5 * p.cache_bytes(p.seen) / p.element ? 1 : 2;
}

/// Gives the problem contexts of that many tokens.
void look_back(DecodeProblem& p, const Kernel& kernel, double tokens) {
  const auto window = static_cast<double>(kernel.attention.window);
  const auto queries = static_cast<double>(std::max<std::int64_t>(1, kernel.m));
  p.context = tokens;
  p.windowed = window > 0 && window < tokens;
  p.seen = p.windowed ? std::min(tokens, window + queries - 1) : tokens;
}

DecodeProblem problem_of(const Kernel& kernel, const AcceleratorConfig& a) {
  DecodeProblem p = device_of(a);
  p.sequences = static_cast<double>(std::max<std::int64_t>(1, kernel.attention.sequences));
  const double queries = static_cast<double>(std::max<std::int64_t>(1, kernel.m));
  p.heads = static_cast<double>(kernel.batch) / p.sequences * queries;
  p.kv_heads = static_cast<double>(std::max<std::int64_t>(1, kernel.attention.kv_heads));
  p.group = p.heads / p.kv_heads;
  p.context = static_cast<double>(std::max<std::int64_t>(1, kernel.n));
  p.dim = static_cast<double>(kernel.k);
  p.width = p.dim / 128;
  p.padded = p.dim > 128 && p.dim < 256 ? 2 : p.width;
  p.reuse = kernel.reuse.base();
  look_back(p, kernel, p.context);
  p.element = cache_element(kernel, p);
  p.narrow = p.element < 2;
  if (kernel.matrix_flops.base() > 0)
    p.matrix_us = (kernel.matrix_flops / matrix_peak(a, kernel.precision)).base() * 1e6;
  return p;
}

/// Index of the most queries of a group that kernels put together, which follows the blocks.
std::size_t most_together() { return offsets()[kPaths]; }
/// TensorRT-LLM's kernels take 32, those of FlashAttention 3 any number.
constexpr double kMostTogether = 32, kAnyNumber = 1024;

/// Kernels that put the queries of a group together take 2 of them and more; Blackwell's take
/// single ones too. With 16-bit caches they run once their blocks fill a quarter of the units, with
/// 8-bit caches always. Tensor cores before Ampere's have none.
Path path_of(const DecodeProblem& p, const AcceleratorConfig& a, const double* values) {
  if (p.group > values[most_together()]) return kMasked;
  if (multiplies_apart(a)) return kDense;
  if (p.group < 2 || matrix_issue(a) == MatrixIssue::kQuadPair) return kMasked;
  if (p.narrow) return kNarrow;
  const double blocks = p.kv_jobs() * std::max(1.0, std::floor(p.context / 128));
  return 4 * blocks >= p.units ? kGrouped : kMasked;
}

/// Attention of new tokens over a cache of keys and values. A library has several kernels with
/// rules of its own for which one runs and how it splits a long context, so that the family is
/// several functions, each with its block of parameters (decode_masked.cpp, decode_grouped.cpp,
/// decode_narrow.cpp, decode_dense.cpp). The rules are those of TensorRT-LLM, but for how many
/// queries are put together, which a fit tells; which of them a device follows is told by its
/// matrix instruction, as for prefill.
///
/// Time of each: launch + p-norm of a unit's work, the wait of the longest block and the traffic,
/// which the L2 keeps a part of from launch to launch.
class DecodeFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
    static const std::vector<ParameterInfo> table = [] {
      std::vector<ParameterInfo> all;
      for (std::size_t i = 0; i < kPaths; ++i) {
        const auto& block = kKernels[i]().parameters;
        all.insert(all.end(), block.begin(), block.end());
      }
      all.push_back({"most_together", "1", 1, 1e6, false, {kMostTogether, kAnyNumber}});
      return all;
    }();
    return table;
  }

  std::vector<double> priors(const AcceleratorConfig& accelerator, Precision) const override {
    std::vector<double> all;
    for (std::size_t i = 0; i < kPaths; ++i) {
      const auto block = kKernels[i]().priors(accelerator);
      all.insert(all.end(), block.begin(), block.end());
    }
    all.push_back(kMostTogether);
    return all;
  }

  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override {
    const DecodeProblem p = problem_of(kernel, accelerator);
    const Path path = path_of(p, accelerator, values);
    const DecodeTime part = kKernels[path]().time(p, values + offsets()[path]);
    KernelTime time;
    time.launch_us = part.launch;
    time.total_us = part.launch + part.body;
    time.loaded_bytes = part.bytes;
    time.memory_bytes = part.bytes * part.miss;
    return time;
  }

  std::optional<ResidualPoint> residual_point(const Kernel& kernel, const AcceleratorConfig& on,
                                              const double* values) const override {
    const DecodeProblem p = problem_of(kernel, on);
    const Path path = path_of(p, on, values);
    ResidualPoint point;
    point.part = static_cast<int>(path);
    const double narrow = p.narrow ? 1 : 0;
    // Weights by predicting some of the fitted shape groups of the H200's table from the others.
    if (path == kMasked) {
      point.at = {1.2 * std::log2(p.sequences * p.heads), 0.72 * std::log2(p.seen * p.dim),
                  0.12 * std::log2(p.group), 0.2 * std::log2(p.dim), 0.3 * narrow};
    } else {
      point.at = {0.6 * std::log2(p.kv_jobs()), 0.55 * std::log2(p.context),
                  0.3 * std::log2(p.group),     1.2 * std::log2(p.dim),
                  p.windowed ? 1.8 : 0,         0.3 * narrow};
    }
    return point;
  }

  /// Blocks by decode_blocks.cpp: a context is split as the kernel's rule says for the longest of
  /// them.
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* values) const override {
    const DecodeProblem p = problem_of(kernel, accelerator);
    const Path path = path_of(p, accelerator, values);
    const DecodeKernel& of = kKernels[path]();
    const double* v = values + offsets()[path];
    return decode_plan(kernel, p, of.time(p, v), [&](double tokens, double splits) {
      DecodeProblem q = p;
      look_back(q, kernel, tokens);
      q.parts = splits;
      return of.time(q, v);
    });
  }
};

const RegisterTileFamily<DecodeFamily> registered_decode_tiles(
    KernelClass::kAttentionDecode, "attention of new tokens by splits of the cache");

}  // namespace
}  // namespace orrery
