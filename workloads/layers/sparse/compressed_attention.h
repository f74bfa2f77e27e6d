// SPDX-License-Identifier: Apache-2.0
// What attention of DeepSeek-V4 is made of, for its steps in inference and in training.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/layers/parts/layer_op.h"
#include "workloads/layers/sparse/indexer_kernels.h"

namespace orrery {

/// What a token sees beside the latest keys: nothing, all entries of compressed keys, or those that
/// an indexer chooses.
enum class Compressed : std::uint8_t { kNothing, kAll, kChosen };

/// What a compressor of `columns` columns is made of: entries of `ratio` tokens, where chosen ones
/// overlap by half, for which columns and gates come twice.
struct Compressor {
  std::int64_t ratio = 1, columns = 0, overlap = 1;

  /// Columns of its projection: what is pooled, and gates.
  std::int64_t projected() const { return 2 * overlap * columns; }
  /// Places of tokens in an entry, and a norm.
  std::int64_t vectors() const { return ratio * overlap * columns + columns; }
  /// fp32 elements of tokens that do not fill an entry yet, pooled and gates.
  std::int64_t pending() const { return overlap * ratio * projected(); }
};

/// Tokens of an entry.
std::int64_t entry_ratio(const AttentionConfig& a, Compressed kind);
/// Compressors of the key and, where entries are chosen, of the indexer's key.
std::vector<Compressor> compressors_of(const AttentionConfig& a, Compressed kind);
/// The latest keys and the entries that tokens of a part attend to; `pairs` are those of entries.
SeenKeys compressed_keys(const AttentionConfig& a, const AttentionPart& part, Compressed kind);

/// Places that a kernel works on for each token: the window and, in steps of 64, the most entries.
std::int64_t compressed_places(const AttentionConfig& a, const AttentionPart& part,
                               Compressed kind);

/// Matrices of a layer, and those that inference multiplies with as training does.
std::vector<Linear> compressed_linears(const LayerTask& task);
Linear head_queries(const LayerTask& task);
Linear group_values(const LayerTask& task);
Linear row_output(const LayerTask& task);
/// Rotates the last columns of what heads give back.
Kernel inverse_rotary(const LayerTask& task);

/// A training step (compressed_training.cpp).
std::vector<LayerOp> compressed_training_ops(const LayerTask& task);

}  // namespace orrery
