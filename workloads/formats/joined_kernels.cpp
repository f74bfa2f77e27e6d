// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/joined_kernels.h"

#include <algorithm>
#include <string>
#include <utility>

#include "workloads/ops/fusion.h"

namespace orrery {
namespace {

/// What fuse() makes of kernels, where that is one.
std::optional<Kernel> only_kernel(KernelGraph graph) {
  std::vector<Kernel> kernels = kernels_of(fuse(std::move(graph)));
  if (kernels.size() != 1) return std::nullopt;
  return std::move(kernels.front());
}

Bytes operand_bytes(const Kernel& product) {
  return Bytes(static_cast<double>(product.batch) * static_cast<double>(product.m) *
               static_cast<double>(product.k) * element_bytes(product.precision));
}

/// Heads that share no keys, since each product of the batch reads its own. How many are of one
/// sequence the softmax may tell.
MaskedScores scores_of(const Kernel& product, const Kernel& softmax) {
  MaskedScores scores;
  scores.kind = product.m > 1 ? KernelClass::kAttentionPrefill : KernelClass::kAttentionDecode;
  const AttentionShape& told = softmax.attention;
  const bool fits = told.sequences > 0 && product.batch % told.sequences == 0 &&
                    product.batch / told.sequences == told.kv_heads;
  scores.shape.sequences = fits ? told.sequences : 1;
  scores.shape.kv_heads = fits ? told.kv_heads : product.batch;
  scores.pairs = static_cast<double>(product.batch) * static_cast<double>(product.m) *
                 static_cast<double>(product.n);
  return scores;
}

/// Both are elementwise: the second computes an element of its result from the first's, in
/// registers.
Kernel joined_elements(const Kernel& first, const Kernel& second) {
  Kernel both = second;
  both.vector_flops += first.vector_flops;
  both.exponentials += first.exponentials;
  both.matrix_flops += first.matrix_flops;
  both.read = first.read + (second.read - first.written);
  return both;
}

}  // namespace

std::optional<Kernel> joined_pair(const Kernel& first, const Kernel& second) {
  const Bytes between = first.written;
  if (!(between > Bytes()) || second.read < between) return std::nullopt;
  constexpr auto kElementwise = KernelClass::kElementwise;
  if (first.kind == kElementwise && second.kind == kElementwise)
    return joined_elements(first, second);
  KernelGraph pair;
  pair.add(first, {{"operands", first.read}}, {{"between", between}});
  pair.add(second, {{"between", between}, {"others", second.read - between}},
           {{"results", second.written}});
  return only_kernel(std::move(pair));
}

bool are_scores_and_values(const Kernel& scores, const Kernel& values) {
  return scores.kind == KernelClass::kGemm && values.kind == KernelClass::kGemm && scores.m > 0 &&
         scores.n > 0 && scores.k > 0 && values.n > 0 && scores.batch == values.batch &&
         scores.m == values.m && scores.n == values.k;
}

std::optional<Kernel> joined_attention(const std::vector<const Kernel*>& chain) {
  if (chain.size() < 3 || !are_scores_and_values(*chain.front(), *chain.back()))
    return std::nullopt;
  const Kernel& product = *chain.front();
  const Bytes queries = std::min(product.read, operand_bytes(product));
  KernelGraph graph;
  std::string last = "0";
  graph.add(product, {{"queries", queries}, {"keys", product.read - queries}},
            {{last, product.written}});
  for (std::size_t i = 1; i < chain.size(); ++i) {
    const Bytes between = chain[i - 1]->written;
    if (!(between > Bytes()) || chain[i]->read < between) return std::nullopt;
    const std::string number = std::to_string(i);
    std::vector<TensorUse> reads = {{last, between}};
    const bool is_last = i + 1 == chain.size();
    if (is_last || chain[i]->read > between)
      reads.push_back({"others of " + number, chain[i]->read - between});
    std::optional<MaskedScores> scores;
    if (chain[i]->kind == KernelClass::kSoftmax) scores = scores_of(product, *chain[i]);
    graph.add(*chain[i], std::move(reads), {{number, chain[i]->written}}, std::move(scores));
    last = number;
  }
  return only_kernel(std::move(graph));
}

}  // namespace orrery
