// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "device/number_formats.h"
#include "host/measurement.h"

namespace orrery::measure {

enum class RecurrentKernel { kDeltaUpdate, kMambaUpdate, kConvolution, kConvolutionUpdate };
/// "delta_update", ...: as the column `kernel` has it.
const char* name_of(RecurrentKernel kernel);

/// A kernel of a recurrent layer on one GPU; what it does not have is 0.
struct RecurrentShape {
  RecurrentKernel kernel = RecurrentKernel::kDeltaUpdate;
  Format state = Format::kF32;  ///< format of states; windows of convolutions are bf16
  int batch = 1, tokens = 1;    ///< sequences, and new tokens of each
  int heads = 0, groups = 0;    ///< heads with a state, and those that share a key, or B and C
  int key_dim = 0;              ///< rows of a state of the delta rule; columns of one of Mamba-2
  int value_dim = 0;            ///< columns of a state of the delta rule; rows of one of Mamba-2
  int channels = 0, taps = 0;

  /// Elements of the states, or windows, of all sequences.
  std::int64_t states() const;
  /// Elements of bf16 that new tokens come with: of each of a kernel's inputs, in order.
  std::vector<std::int64_t> inputs() const;
  std::int64_t outputs() const;
  /// Bytes read and written: states and windows once each way.
  std::int64_t bytes() const;
};

/// Gated delta networks of Qwen3-Next and Qwen3.5, Mamba-2 of Nemotron-H, Nemotron 3 and Granite 4,
/// on 1 to 8 GPUs, from 1 to 1024 sequences, and their convolutions; none above `most_bytes`.
std::vector<RecurrentShape> recurrent_shapes(Depth depth, std::int64_t most_bytes);

/// Rows of scores, of which as many are chosen as DeepSeek-V3.2's indexer does (index_topk).
struct SelectionShape {
  int rows = 0, scores = 0, chosen = 2048;
};
std::vector<SelectionShape> selection_shapes(Depth depth, std::int64_t most_bytes);

}  // namespace orrery::measure
