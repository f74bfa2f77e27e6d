// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/part_weights.h"

namespace orrery {

PartWeights& PartWeights::operator+=(const PartWeights& other) {
  matrices.insert(matrices.end(), other.matrices.begin(), other.matrices.end());
  split_vectors += other.split_vectors;
  whole_vectors += other.whole_vectors;
  return *this;
}

PartParameters PartWeights::parameters() const {
  PartParameters p;
  p.split_vectors = split_vectors;
  p.whole_vectors = whole_vectors;
  for (const Linear& matrix : matrices) {
    const bool whole = matrix.split == MatrixSplit::kNone;
    (whole ? p.whole : p.split) += matrix.in * matrix.out;
    p.sixteen_bit += matrix.in * matrix.sixteen_bit;
    if (matrix.bias == Bias::kNone) continue;
    // Ranks that split rows add up outputs, of which one has the bias.
    const bool columns = matrix.split == MatrixSplit::kColumns;
    (columns ? p.split_vectors : p.whole_vectors) += matrix.out;
  }
  p.sixteen_bit += p.split_vectors + p.whole_vectors;
  return p;
}

}  // namespace orrery
