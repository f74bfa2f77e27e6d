// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/sparse/indexer_gradients.h"

#include <algorithm>
#include <cmath>

#include "workloads/base/real.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

constexpr double kFloatBytes = 4;  ///< bytes of places, scores, sums and sums of gradients
constexpr double kWeighFlops = 3;  ///< ReLU, product with the weight of the head, sum
/// Difference of distributions, mask of ReLU, two products, sum of the weight's gradient.
constexpr double kGradientFlops = 5;

/// Columns of keys, and of values that are not columns of these.
double key_columns(const ChosenHeads& heads) {
  return real(heads.qk_dim + (heads.latent ? 0 : heads.v_dim));
}

double all_rows(const SeenKeys& seen, const ChosenHeads& heads) {
  return real(seen.tokens * heads.groups * heads.heads);
}

/// Compare-exchanges for each score of bitonic sorts of twice as many as are chosen, one whenever
/// as many new scores are there.
double sort_flops(std::int64_t chosen) {
  const double levels = std::ceil(std::log2(2 * real(std::max<std::int64_t>(1, chosen))));
  return levels * (levels + 1) / 2;
}

/// Elements of keys of all entries that some token sees.
double key_elements(const SeenKeys& seen, const ChosenHeads& heads) {
  return seen.entries * real(heads.groups) * key_columns(heads);
}

}  // namespace

double distribution_bytes(const SeenKeys& seen, std::int64_t groups) {
  return seen.chosen * real(groups) * kFloatBytes;
}

double choice_bytes(const SeenKeys& seen, const IndexerConfig& indexer, std::int64_t groups) {
  const double places = seen.chosen / real(indexer.block) * real(groups) * kFloatBytes;
  return places + (indexer.block == 1 ? distribution_bytes(seen, groups) : 0);
}

Kernel index_choice(const SeenKeys& seen, const IndexerConfig& indexer, std::int64_t heads,
                    std::int64_t groups, Precision precision) {
  Kernel kernel = index_scores(seen, indexer, heads, groups, precision, element_bytes(precision));
  kernel.name = "index choice";
  const double scores = seen.pairs / real(indexer.block) * real(groups);
  kernel.vector_flops += Flops(scores * sort_flops(seen.chosen_by_each() / indexer.block));
  kernel.exponentials =
      Flops(distribution_bytes(seen, groups) / kFloatBytes);  // softmax of the best
  kernel.written = Bytes(choice_bytes(seen, indexer, groups));
  return kernel;
}

Kernel chosen_training_attention(const SeenKeys& seen, const ChosenHeads& heads,
                                 Precision precision) {
  Kernel kernel = chosen_attention(seen, heads, precision);
  kernel.written += Bytes(all_rows(seen, heads) * kFloatBytes);
  return kernel;
}

std::vector<Kernel> chosen_gradients(const SeenKeys& seen, const ChosenHeads& heads,
                                     Precision precision) {
  const double width = activation_bytes(precision);
  const double rows = all_rows(seen, heads);
  const double pairs = seen.chosen * real(heads.groups * heads.heads);
  const double keys = key_elements(seen, heads);
  std::vector<Kernel> all;
  Kernel products = elementwise("attention output products", static_cast<std::int64_t>(rows),
                                heads.v_dim, {2 * width, 0, 2});
  products.written = Bytes(rows * kFloatBytes);
  all.push_back(std::move(products));
  Kernel kernel = chosen_attention(seen, heads, precision);
  kernel.name = "attention backward";
  kernel.attention.backward = true;
  kernel.matrix_flops = Flops(2 * pairs * real(3 * heads.qk_dim + 2 * heads.v_dim));
  kernel.vector_flops = Flops(2 * pairs * vector_cost::kSoftmax);
  // Queries, gradients of outputs, sums and products of rows; sums of keys' gradients once each
  // way.
  kernel.read += Bytes(rows * (real(heads.v_dim) * width + 2 * kFloatBytes) + keys * kFloatBytes);
  kernel.written = Bytes(rows * real(heads.qk_dim) * width + keys * kFloatBytes);
  all.push_back(std::move(kernel));
  all.push_back(elementwise("attention key gradient", static_cast<std::int64_t>(std::llround(keys)),
                            1, {kFloatBytes, width, 0}));
  return all;
}

Kernel index_target(const SeenKeys& seen, const ChosenHeads& heads, Precision precision) {
  const double pairs = seen.chosen * real(heads.groups * heads.heads);
  Kernel kernel = chosen_attention(seen, heads, precision);
  kernel.name = "index target";
  kernel.matrix_flops = Flops(2 * pairs * real(heads.qk_dim));
  kernel.vector_flops = Flops(3 * pairs);  // difference, exponential, sum over heads
  kernel.read += Bytes(all_rows(seen, heads) * kFloatBytes);
  kernel.written = Bytes(distribution_bytes(seen, heads.groups));
  return kernel;
}

Kernel index_gradient(const SeenKeys& seen, const IndexerConfig& indexer, std::int64_t heads,
                      std::int64_t groups, Precision precision) {
  const double width = activation_bytes(precision), columns = real(indexer.head_dim);
  const double rows = real(seen.tokens * heads);
  const double pairs = seen.chosen * real(heads);
  const double weights = indexer.block == 1 ? rows * width : 0;
  Kernel kernel = matrix_kernel(
      "index gradient", KernelClass::kSparse, precision,
      {heads / groups, seen.chosen_by_each(), indexer.head_dim, seen.tokens * groups});
  kernel.attention.sequences = seen.sequences;
  kernel.attention.kv_heads = 1;
  kernel.attention.backward = true;
  kernel.matrix_flops = Flops(3 * 2 * pairs * columns);
  kernel.vector_flops = Flops((kWeighFlops + kGradientFlops) * pairs);
  kernel.read =
      Bytes(rows * columns * width + weights + seen.entries * columns * (width + kFloatBytes) +
            choice_bytes(seen, indexer, groups) + distribution_bytes(seen, groups));
  kernel.written = Bytes(rows * columns * width + weights + seen.entries * columns * kFloatBytes);
  return kernel;
}

}  // namespace orrery
