// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/declared.h"
#include "sim/graph/kernel.h"

namespace orrery {

/// A tensor of one sample: channels at each of rows x columns positions. Tokens are rows.
struct Extent {
  std::int64_t channels = 1, rows = 1, columns = 1;

  std::int64_t positions() const { return rows * columns; }
  std::int64_t elements() const { return channels * positions(); }
  bool operator==(const Extent&) const = default;
  static const config::Schema<Extent>& schema();
};

/// "256 x 56 x 56".
std::string to_string(const Extent& extent);

/// How the operations of a pass are run.
struct PassContext {
  std::int64_t samples = 1;
  Precision precision = Precision::kFp32;
  bool training = false;
  bool fuses = false;  ///< inference does epilogues in the kernel before them

  /// Bytes of an element of weights and of what lies between operations.
  double element() const { return element_bytes(precision); }
  /// Bytes of that many elements of every sample.
  Bytes bytes(std::int64_t elements) const;
  std::int64_t rows(const Extent& extent) const { return samples * extent.positions(); }
};

/// Gradients of weights are those of fp32 weights, whatever products run in (PyTorch's autocast).
inline constexpr double kWeightGradientBytes = 4;

/// What a kernel that streams does for each element of a tensor: elements of tensors of that size
/// that it reads and writes, and vector FLOPs.
struct ElementCost {
  double read = 1, written = 1, flops = 1;
};
Kernel stream(const PassContext& pass, const std::string& name, KernelClass kind,
              const Extent& extent, ElementCost cost);

/// Numbers of tensors.
using LayerInputs = std::vector<std::size_t>;

/// An operation between tensors of a sample, which are known by their numbers. Kernels are those of
/// all samples in a pass.
struct ListedOp {
  std::string name = {};    ///< what it does in its layer: "narrow"
  LayerInputs inputs = {};  ///< tensors that it reads
  Extent result = {};
  std::int64_t parameters = 0;
  /// Multiply-adds of a sample by weights, or of queries and keys: what papers count.
  std::int64_t multiply_adds = 0;
  std::vector<Kernel> forward = {};   ///< none: it only looks at its input another way
  std::vector<Kernel> gradient = {};  ///< kernels that give the gradients of inputs and weights
  bool keeps_inputs = false, keeps_result = false;  ///< what `gradient` reads of the forward pass
  /// Inference may do it to what a product has in registers: a norm with constants for each
  /// channel, a function of each element, a sum.
  bool epilogue = false;

  // LayerGraphBuilder says the rest.
  std::string layer = {};   ///< the layer of the list, and which repetition of it: "conv2.0"
  std::size_t output = 0;   ///< the tensor that it makes
  std::size_t runs_in = 0;  ///< the operation in whose kernels it runs, by default its own
};

struct ListedTensor {
  Extent extent;
  std::optional<std::size_t> maker = {};  ///< the operation that makes it; none: an input
  std::vector<std::size_t> readers = {};  ///< operations in order
  std::size_t held = 0;                   ///< the last operation while a caller holds it
  std::size_t storage = 0;                ///< the tensor whose memory it is in, by default its own
  bool trained = false;                   ///< weights lie before it, so that it has a gradient
};

/// A model as operations between tensors, in the order in which a pass runs them.
class LayerGraph {
 public:
  const PassContext& pass() const { return pass_; }
  const std::vector<ListedTensor>& tensors() const { return tensors_; }
  const std::vector<ListedOp>& ops() const { return ops_; }
  /// What the last operation makes.
  std::size_t result() const { return ops_.back().output; }
  std::int64_t parameters() const;
  std::int64_t multiply_adds() const;

 private:
  friend class LayerGraphBuilder;
  PassContext pass_;
  std::vector<ListedTensor> tensors_;
  std::vector<ListedOp> ops_;
};

class LayerGraphBuilder {
 public:
  explicit LayerGraphBuilder(const PassContext& pass) { graph_.pass_ = pass; }

  const PassContext& pass() const { return graph_.pass_; }
  const ListedTensor& tensor(std::size_t id) const { return graph_.tensors_[id]; }
  const Extent& extent(std::size_t id) const { return tensor(id).extent; }

  std::size_t input(Extent extent);
  /// @return the tensor that the operation makes
  std::size_t add(ListedOp op);
  /// The layer that operations are those of from now on.
  void set_layer(std::string layer) { layer_ = std::move(layer); }
  /// The caller of a layer held its inputs until now.
  void held(const LayerInputs& inputs);

  /// Where a pass fuses, an epilogue runs in the kernels of the product that makes the latest of
  /// its inputs, if nobody else reads that and all others are there when the product runs. What
  /// works on each element and does not keep its inputs writes over the first, where nobody else
  /// needs that.
  LayerGraph finish();

 private:
  bool fold(std::size_t id);
  void share_memory(const ListedOp& op);

  LayerGraph graph_;
  std::string layer_;
};

}  // namespace orrery
