// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/calibrated_prices.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace orrery {
namespace {

/// Rows that libraries run other kernels for, if there are more than these and they are odd.
constexpr std::int64_t kUnaligned = 17;

void scale_work(Kernel& kernel, double share) {
  kernel.matrix_flops = kernel.matrix_flops * share;
  kernel.vector_flops = kernel.vector_flops * share;
  kernel.exponentials = kernel.exponentials * share;
}

Kernel of_sequences(Kernel kernel, std::int64_t sequences) {
  const double share =
      static_cast<double>(sequences) / static_cast<double>(kernel.attention.sequences);
  kernel.batch = kernel.batch / kernel.attention.sequences * sequences;
  kernel.attention.sequences = sequences;
  scale_work(kernel, share);
  kernel.read = kernel.read * share;
  kernel.written = kernel.written * share;
  return kernel;
}

/// Cached tokens that the new ones see.
double seen(const Kernel& kernel, std::int64_t context) {
  const std::int64_t window = kernel.attention.window;
  return static_cast<double>(window > 0 ? std::min(context, window + kernel.m - 1) : context);
}

Kernel of_context(Kernel kernel, std::int64_t context) {
  const double share = seen(kernel, context) / seen(kernel, kernel.n);
  const Bytes queries(2 * static_cast<double>(kernel.batch * kernel.m * kernel.k));
  const Bytes cached = std::max(Bytes(), kernel.read - queries);
  kernel.read = kernel.read - cached * (1 - share);
  kernel.n = context;
  scale_work(kernel, share);
  return kernel;
}

Kernel of_rows(Kernel kernel, std::int64_t rows) {
  const double share = static_cast<double>(rows) / static_cast<double>(kernel.m);
  const Bytes inputs(static_cast<double>(kernel.batch * kernel.m * kernel.k) *
                     element_bytes(kernel.precision));
  kernel.read = std::max(Bytes(), kernel.read - inputs * (1 - share));
  kernel.written = kernel.written * share;
  kernel.m = rows;
  scale_work(kernel, share);
  return kernel;
}

/// Evenly dealt out, as in all steps, to experts that all stay active.
Kernel of_expert_rows(Kernel kernel, double rows) {
  const double share = rows / kernel.load.rows;
  const Bytes inputs(kernel.load.rows * static_cast<double>(kernel.k) *
                     element_bytes(kernel.precision));
  kernel.read = std::max(Bytes(), kernel.read - inputs * (1 - share));
  kernel.written = kernel.written * share;
  kernel.m = std::max<std::int64_t>(1, std::llround(static_cast<double>(kernel.m) * share));
  const double copies = kernel.load.copies * share, choices = kernel.load.choices * share;
  kernel.load = even_load(kernel.load.active, rows, kernel.load.experts);
  kernel.load.copies = copies;
  kernel.load.choices = choices;
  scale_work(kernel, share);
  return kernel;
}

std::vector<Kernel> fewer_expert_rows(const Kernel& kernel) {
  std::vector<Kernel> smaller;
  for (double rows = kernel.load.rows / 2; rows >= kernel.load.active; rows /= 2)
    smaller.push_back(of_expert_rows(kernel, rows));
  return smaller;
}

std::vector<Kernel> fewer_rows(const Kernel& kernel) {
  std::vector<Kernel> smaller;
  for (std::int64_t rows = kernel.m / 2; rows >= 1; rows /= 2) {
    const bool odd = rows > kUnaligned && rows % 2 == 1;
    smaller.push_back(of_rows(kernel, odd ? rows - 1 : rows));
  }
  return smaller;
}

/// The kernel itself is among them.
std::vector<Kernel> fewer_tokens(const Kernel& kernel) {
  std::vector<Kernel> smaller;
  // A step has its new token in the cache, so that half of it is rounded up: 2,049 after 1,025.
  for (std::int64_t context = kernel.n;; context = (context + 1) / 2) {
    smaller.push_back(of_context(kernel, context));
    if (context <= 1) return smaller;
  }
}

bool over_cache(const Kernel& kernel) {
  return kernel.kind == KernelClass::kAttentionDecode || kernel.kind == KernelClass::kMlaDecode;
}

bool over_prompt(const Kernel& kernel) {
  return kernel.kind == KernelClass::kAttentionPrefill || kernel.kind == KernelClass::kMlaPrefill;
}

}  // namespace

std::vector<Kernel> smaller_kernels(const Kernel& kernel) {
  if (kernel.kind == KernelClass::kGemm) return fewer_rows(kernel);
  if (kernel.kind == KernelClass::kGroupedGemm && kernel.load.active > 0)
    return fewer_expert_rows(kernel);
  std::vector<Kernel> smaller;
  if (!kernel.attention.lengths.empty() || !(over_cache(kernel) || over_prompt(kernel)))
    return smaller;
  for (std::int64_t sequences = kernel.attention.sequences; sequences >= 1; sequences /= 2) {
    const Kernel fewer = of_sequences(kernel, sequences);
    const std::vector<Kernel> shorter =
        over_cache(kernel) ? fewer_tokens(fewer) : std::vector<Kernel>{fewer};
    smaller.insert(smaller.end(), shorter.begin(), shorter.end());
  }
  return smaller;
}

}  // namespace orrery
