// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/graph/kernel.h"

namespace orrery {

/// Bytes of a tensor that a kernel reads or writes: all of it, or the part that it needs.
struct TensorUse {
  std::string tensor;
  Bytes bytes;

  bool operator==(const TensorUse&) const = default;
};

/// What a softmax over scores needs to become part of FlashAttention, which computes the pairs and
/// reads the keys that the mask leaves: without it both are whole squares.
struct MaskedScores {
  KernelClass kind = KernelClass::kAttentionPrefill;  ///< class of the fused kernel
  AttentionShape shape;
  double pairs = 0;  ///< query-key pairs that are not masked, over all heads and sequences
  Bytes keys;        ///< bytes of the keys that some query sees; 0: of all that the product reads
  Bytes values;      ///< bytes of their values; 0: of all

  bool operator==(const MaskedScores&) const = default;
};

/// A kernel with the tensors that it reads and writes; of a product the two operands come first.
/// Its `read` and `written` are their sums.
struct GraphKernel {
  Kernel kernel;
  std::vector<TensorUse> reads, writes;
  std::optional<MaskedScores> scores;  ///< attention scores that a softmax is over
  /// It is nobody's epilogue: an element of its result needs more than one, or than a row, of each
  /// tensor that it reads.
  bool apart = false;

  bool operator==(const GraphKernel&) const = default;
};

/// Kernels in issue order with the tensors between them. Every tensor is written at most once.
struct KernelGraph {
  std::vector<GraphKernel> kernels;
  /// Tensors that are needed afterwards although a kernel of the graph reads them.
  std::vector<std::string> kept;

  /// Appends a kernel; its bytes become those of its tensors.
  /// @throws std::logic_error for a tensor that an earlier kernel has written
  void add(Kernel kernel, std::vector<TensorUse> reads, std::vector<TensorUse> writes,
           std::optional<MaskedScores> scores = std::nullopt);

  bool operator==(const KernelGraph&) const = default;
};

/// Kernels that each read the result of the one before, and whatever else they read from elsewhere.
KernelGraph chain(const std::vector<Kernel>& kernels);

std::vector<Kernel> kernels_of(const KernelGraph& graph);
/// Tensors that no kernel of the graph writes, and those that are read by none or kept; sorted.
std::vector<std::string> inputs_of(const KernelGraph& graph);
std::vector<std::string> outputs_of(const KernelGraph& graph);
/// Bytes read and written by all kernels.
Bytes traffic(const std::vector<Kernel>& kernels);

/// Whether kernels of a class have their results in registers, where others can work on them.
bool takes_epilogues(KernelClass kind);

/// Fuses until nothing is left to fuse:
///  - what a matrix product or convolution writes and only one elementwise kernel, norm or
///  quantisation reads does
///    not leave the registers: that kernel becomes the product's epilogue;
///  - a product, the softmax over it (MaskedScores), elementwise kernels on that and the product
///    with the result become one attention kernel that keeps the scores on the chip (Dao et al.
///    2022, FlashAttention, section 3.1).
/// Inputs, outputs and FLOPs stay, except that attention skips what its mask hides; bytes between
/// the fused kernels and their launches are saved.
KernelGraph fuse(KernelGraph graph);

/// The one width of heads that an attention kernel is priced by: tiles of grouped attention know no
/// other, so that where keys and values differ it is their mean; others go by their keys.
std::int64_t head_width(KernelClass kind, std::int64_t keys, std::int64_t values);

}  // namespace orrery
