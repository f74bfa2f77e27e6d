// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/config/declared.h"

namespace orrery {

/// How the layers of a model are dealt out where slices do not all have equally many.
struct LayerLayout {
  std::string slices = {};  ///< what each slice holds, see written_slices(); empty: dealt out
  int first = 0;            ///< layers of the stage with the first slice; 0: as many as others
  int last = 0;             ///< layers of the stage with the last slice; 0: as many as others
  bool embedding = false;   ///< the embedding counts as a layer
  bool head = false;        ///< head and loss count as a layer

  static const config::Schema<LayerLayout>& schema();
};

/// What a slice holds between embedding and head.
struct SliceContents {
  std::int64_t layers = 0;
  int modules = 0;  ///< modules of multi-token prediction
  bool operator==(const SliceContents&) const = default;
};

/// Slices in words of Megatron-Core's pipeline_model_parallel_layout: "Et*3|(tt|)*29,m|L". E is the
/// embedding, t a layer, m a module of multi-token prediction, L head and loss; | ends a slice, *n
/// repeats what is before it, commas and blanks say nothing (megatron/core/transformer/
/// pipeline_parallel_layer_layout.py, 00caa53).
/// @throws std::invalid_argument naming what is no such text
std::vector<SliceContents> written_slices(const std::string& text);

}  // namespace orrery
