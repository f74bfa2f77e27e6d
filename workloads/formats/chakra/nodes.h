// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/graph/imported_graph.h"
#include "workloads/formats/base/whole_number.h"
#include "workloads/formats/chakra/torch_operator.h"
#include "workloads/formats/communicators.h"
#include "workloads/formats/graph_builder.h"
#include "workloads/formats/graph_format.h"

namespace orrery {

/// NodeType of Chakra's et_def.proto (https://github.com/mlcommons/chakra).
enum class ChakraType : std::int64_t {
  kInvalid = 0,
  kMetadata = 1,
  kMemoryLoad = 2,
  kMemoryStore = 3,
  kCompute = 4,
  kSend = 5,
  kReceive = 6,
  kCollective = 7,
};

/// CollectiveCommType of et_def.proto; -1: Chakra has none.
std::int64_t collective_type(TransferKind kind);
/// Whether `comm_size` is what each rank puts in, where we count the whole buffer.
bool gathers(TransferKind kind);

/// What orrery.class says of a kernel that is a collective of unknown size; else it is a name of
/// KernelClass.
inline constexpr const char* kCollectiveWord = "collective";

/// The value of an attribute, of whichever type its writer has chosen.
struct ChakraValue {
  std::string_view text;
  std::vector<std::string_view> texts;  ///< entries of a list
  double number = 0;
  std::int64_t integer = 0;
  std::vector<bool> flags;

  void set(std::int64_t value) {
    integer = value;
    number = static_cast<double>(value);
  }
  void set_real(double value) {
    integer = whole_number(value);
    number = value;
  }
};

/// A node of a Chakra trace, in whichever form it stands in the file, as far as it is read.
struct ChakraNode {
  std::uint64_t id = 0;
  std::string_view name;
  std::int64_t type = 0;
  std::vector<std::uint64_t> after;  ///< control and data dependencies
  std::uint64_t duration_us = 0;
  TensorTexts in, out;                     ///< inputs and outputs
  std::string_view schema;                 ///< attribute op_schema, "aten::add.Tensor(...) -> ..."
  std::int64_t operation = -1;             ///< attribute rf_id: run of an operator; -1: not told
  bool on_host = false;                    ///< attribute is_cpu_op
  double flops = 0;                        ///< attribute num_ops
  double read = -1, written = -1;          ///< bytes of the tensors in attributes inputs, outputs
  double bytes = 0;                        ///< attribute tensor_size
  std::optional<std::int64_t> collective;  ///< attribute comm_type; all_reduce is 0
  double comm_bytes = 0;
  std::int64_t source = -1, destination = -1, tag = 0, root = -1;
  std::string_view group;         ///< attribute pg_name
  std::vector<bool> dimensions;   ///< attribute involved_dim
  std::int64_t stream = -1;       ///< stream of the device, where the trace tells
  std::string_view kernel_class;  ///< our own attribute: a name of KernelClass
  // Our own attributes, of graphs that were written here:
  std::int64_t duration_ps = -1;
  std::string_view stream_name;  ///< name of the stream, as ImportedStream has it
  bool side_by_side = false;     ///< nodes of that stream run side by side
  std::string_view kernel;       ///< see kernel_text()
  bool kept = false;             ///< see ImportedNode::kept
  std::int64_t rank = -1;        ///< rank that GlobalMetadata tells

  void clear();
  /// Keeps an attribute, if it is one that counts.
  void set(std::string_view attribute, const ChakraValue& value);
};

/// What the nodes of a Chakra trace from PyTorch tell of their tensors: what kernels compute and
/// move, and who reads what they write.
class ChakraOperators {
 public:
  explicit ChakraOperators(GraphBuilder& graph) : graph_(graph) {}

  /// A node of the device.
  void add(NodeId id, const ChakraNode& node, const NodeWork& work);
  /// The tensors of a node, one that communicates or another, and its operator, if they tell it.
  std::optional<TorchOperator> add_tensors(NodeId id, const ChakraNode& node);
  /// Gives kernels what they compute: of several kernels of one operator, which have all of its
  /// tensors each, that which its name calls so.
  void finish(const std::string& file, std::vector<std::string>& notes);

 private:
  /// A kernel with a rule, until all kernels of its operator are known.
  struct Ruled {
    NodeId node;
    std::uint32_t kernel;
    KernelClass kind;
    bool named;  ///< the name of the kernel tells that class
    std::int64_t operation;
  };

  GraphBuilder& graph_;
  std::vector<Ruled> ruled_;
  /// Kernels by their operator, as `rf_id` numbers it, where it does.
  std::vector<std::pair<std::int64_t, NodeId>> operations_;
  std::uint64_t told_ = 0, sized_ = 0, untold_ = 0;  ///< counts of kernels
};

/// Turns nodes of a Chakra trace into those of a graph.
///
/// Streams are those of ASTRA-sim's execution engine, one node at a time each: "host", "compute" (a
/// stream of the device where the trace tells), "memory", and one for each communicator; messages
/// run side by side.
class ChakraNodes {
 public:
  ChakraNodes(const std::string& file, const GraphReadOptions& options,
              Communicators& communicators, GraphBuilder& graph);

  /// @throws config::ConfigError with the place of the node for what it says that cannot be
  void add(const ChakraNode& node, std::uint64_t offset);
  /// @param offset of the node
  /// @throws config::ConfigError with the place of the node
  [[noreturn]] void refuse(const ChakraNode& node, std::uint64_t offset,
                           const std::string& what) const;
  /// What was not understood, and how often.
  void finish(std::vector<std::string>& notes);

 private:
  void add_work(const ChakraNode& node, NodeKind kind, std::uint16_t stream);
  void add_collective(const ChakraNode& node);
  TransferKind kind_of(const ChakraNode& node);
  void add_message(const ChakraNode& node, bool sends);
  std::uint32_t kernel_of(const ChakraNode& node, const NodeWork& work);
  std::uint32_t written_kernel(const ChakraNode& node, const NodeWork& work);
  std::uint32_t group_of(const ChakraNode& node);
  std::uint32_t group_of_dimensions(const std::vector<bool>& involved);
  std::uint16_t device_stream(const ChakraNode& node);
  std::uint16_t group_stream(std::string_view group);
  /// The stream that a node names, or that of another name.
  std::uint16_t stream_of(const ChakraNode& node, std::string_view otherwise, bool serial = true);
  Picoseconds recorded_time(const ChakraNode& node) const;
  [[noreturn]] void refuse(const ChakraNode& node, const std::string& what) const {
    refuse(node, offset_, what);
  }

  const std::string& file_;
  const GraphReadOptions& options_;
  Communicators& communicators_;
  GraphBuilder& graph_;
  std::uint64_t offset_ = 0;
  NodeId last_ = 0;
  std::map<std::string, std::uint16_t, std::less<>> group_streams_, named_streams_;
  std::map<std::int64_t, std::uint16_t> device_streams_;
  /// Kernels by class, FLOPs, bytes read and written.
  std::map<std::tuple<int, double, double, double>, std::uint32_t> kernels_;
  /// Kernels by kernel_text() and class.
  std::map<std::pair<std::string, KernelClass>, std::uint32_t> written_kernels_;
  std::map<std::int64_t, std::uint64_t> unknown_types_;
  std::map<TransferKind, std::uint64_t> types_of_names_;  ///< collectives without a type
  ChakraOperators operators_;
};

}  // namespace orrery
