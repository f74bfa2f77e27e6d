// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/layers/parts/linear.h"

namespace orrery {

/// Parameters of a part of a layer that one tensor parallel rank holds, by who else holds them.
struct PartParameters {
  std::int64_t split = 0;          ///< elements of matrices that the group splits
  std::int64_t split_vectors = 0;  ///< biases, weights of norms and of convolutions, likewise
  std::int64_t whole = 0;          ///< elements of matrices that every rank holds
  std::int64_t whole_vectors = 0;
  std::int64_t sixteen_bit = 0;  ///< those of all these that are never quantised

  std::int64_t matrices() const { return split + whole; }
  std::int64_t total() const { return matrices() + split_vectors + whole_vectors; }
};

/// The weights of a part of a layer on one tensor parallel rank, each once.
struct PartWeights {
  std::vector<Linear> matrices;  ///< each with its bias
  /// Elements of all else: norms, convolutions, further biases. They are never quantised.
  std::int64_t split_vectors = 0, whole_vectors = 0;

  PartWeights& operator+=(const PartWeights& other);
  PartParameters parameters() const;
};

}  // namespace orrery
