// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/schema.h"
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

/// How the operators of a pass are run.
struct PassContext {
  std::int64_t samples = 1;
  Precision precision = Precision::kFp32;
  bool training = false;
  bool fuses = false;  ///< what can be is done by the kernel before it

  /// Bytes of an element of weights and of what lies between operators.
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

/// An operator between tensors of a sample: what it computes and keeps. Kernels are those of all
/// samples.
class LayerOperator {
 public:
  LayerOperator() = default;
  virtual ~LayerOperator() = default;
  LayerOperator(const LayerOperator&) = delete;
  LayerOperator& operator=(const LayerOperator&) = delete;

  virtual std::int64_t parameters() const { return 0; }
  /// Multiply-adds of a sample by weights, or of queries and keys: what papers count.
  virtual std::int64_t multiply_adds() const { return 0; }
  virtual std::vector<Kernel> forward(const PassContext& pass) const = 0;
  /// @param to_inputs whether somebody needs the gradients of the inputs
  virtual std::vector<Kernel> backward(const PassContext& pass, bool to_inputs) const = 0;

  /// What its backward pass needs of the forward pass.
  virtual bool keeps_inputs() const { return false; }
  virtual bool keeps_output() const { return false; }
  /// Whether weights multiply: what software that fuses does with its kernels what follows.
  virtual bool is_product() const { return false; }
  /// Whether inference does it to what a product has in registers: a norm with constants for each
  /// channel, a function of each element, a sum.
  virtual bool is_epilogue() const { return false; }
  /// Whether its result takes the memory of its first input, where nobody else needs that.
  virtual bool in_place() const { return false; }
  /// Whether it only looks at its input another way; it has no kernels.
  virtual bool is_view() const { return false; }
};

/// One operator in a list of layers. Tensors by their number.
struct LayerNode {
  std::string layer;  ///< the layer of the list, and which repetition of it: "conv2.0"
  std::string name;   ///< the layer and what it does there: "conv2.0 narrow"
  std::vector<std::size_t> inputs;
  std::size_t output = 0;
  std::shared_ptr<const LayerOperator> op;
};

/// Nodes of a layer of several, whose call holds its inputs until it returns.
struct LayerCall {
  std::size_t first = 0, last = 0;  ///< numbers of its first and its last node
  std::vector<std::size_t> inputs;
};

/// A model as operators between tensors, in the order in which they run.
class LayerGraph {
 public:
  const std::vector<Extent>& tensors() const { return tensors_; }
  const std::vector<LayerNode>& nodes() const { return nodes_; }
  const std::vector<LayerCall>& calls() const { return calls_; }
  /// Tensors that nobody makes.
  const std::vector<std::size_t>& inputs() const { return inputs_; }
  std::int64_t parameters() const;
  std::int64_t multiply_adds() const;

 private:
  friend class LayerGraphBuilder;
  std::vector<Extent> tensors_;
  std::vector<LayerNode> nodes_;
  std::vector<LayerCall> calls_;
  std::vector<std::size_t> inputs_;
};

/// Writes a LayerGraph.
class LayerGraphBuilder {
 public:
  std::size_t input(Extent extent);
  /// @return the tensor that the operator makes
  std::size_t add(const std::string& name, std::vector<std::size_t> inputs, Extent output,
                  std::shared_ptr<const LayerOperator> op);
  const Extent& extent(std::size_t tensor) const { return graph_.tensors_[tensor]; }

  /// The layer that operators are those of from now on.
  void set_layer(std::string layer) { layer_ = std::move(layer); }
  void begin_call(std::vector<std::size_t> inputs);
  void end_call();

  LayerGraph finish() { return std::move(graph_); }

 private:
  LayerGraph graph_;
  std::string layer_;
};

}  // namespace orrery
