// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/graph/imported_graph.h"
#include "workloads/formats/node_tensors.h"

namespace orrery {

/// `later` waits for `earlier`.
struct Dependency {
  NodeId later;
  NodeId earlier;
};

/// Adds dependencies to a graph, which may have them already.
void add_dependencies(ImportedGraph& graph, const std::vector<Dependency>& more);

/// Puts the graph of one rank together while its file streams by: nodes in the order of the file,
/// dependencies by the identifiers of the file, of nodes that have come or will come.
class GraphBuilder {
 public:
  /// The number of a stream, which may be new.
  std::uint16_t stream(std::string_view name, bool serial = true);
  /// The number of a kernel; equal ones, names apart, have one.
  std::uint32_t kernel(const Kernel& kernel);

  /// @param id in the file; any number, in any order
  NodeId add(std::uint64_t id, std::string_view name, NodeKind kind, std::uint16_t stream,
             const NodeWork& work);
  NodeId add(std::uint64_t id, std::string_view name, NodeKind kind, std::uint16_t stream,
             const ImportedMessage& message);

  /// `later` waits for the node with an identifier, wherever in the file that one stands.
  void depends(NodeId later, std::uint64_t earlier_id);
  /// `later` waits for a node that has come: the one before it in its stream, say.
  void follows(NodeId later, NodeId earlier);

  /// What a node writes is needed by others than those that wait for it.
  void keeps(NodeId node) { graph_.nodes[node].kept = true; }

  /// What a kernel that has come computes and moves, and its class.
  void computes(NodeId node, std::uint32_t kernel, KernelClass kind);

  /// From now on tensors are collected.
  void collect_tensors() { collects_tensors_ = true; }
  /// Tensors of a node that has come, of all that run on the device, in their order.
  void has_tensors(NodeTensors tensors) {
    if (collects_tensors_) tensors_.push_back(std::move(tensors));
  }
  /// Other nodes have the same tensors as this one.
  void shares_tensors(NodeId node);
  /// The file tells no tensors.
  void forget_tensors() { tensors_.clear(); }
  const std::vector<NodeTensors>& tensors() const { return tensors_; }

  std::size_t size() const { return graph_.ids.size(); }
  /// Room for so many, of which what stays unused takes no memory.
  void reserve(std::size_t nodes, std::size_t dependencies);

  /// The file says whose graph it is.
  void belongs_to(int rank) { rank_ = rank; }
  /// Whose graph the file says it is; -1: it does not.
  int rank() const { return rank_; }
  /// The same file as another rank's would be another graph.
  void is_of_its_rank() { of_its_rank_ = true; }
  bool of_its_rank() const { return of_its_rank_; }

  /// The graph, dependencies resolved.
  /// @param file for errors
  /// @param repair dependencies on nodes that are not there are dropped, those that lead back to a
  /// node on the way to it too (depth first, in the order of the file), and counted in `notes`
  /// @throws config::ConfigError for identifiers that stand twice, for dependencies on nodes that
  /// are not there (the first of them, and how many), for cycles (the shortest)
  ImportedGraph finish(const std::string& file, bool repair, std::vector<std::string>& notes);

 private:
  /// `later` waits for a node whose identifier has not come yet.
  struct Reference {
    NodeId later;
    std::uint64_t earlier_id;
  };
  struct Hash {
    std::size_t operator()(const Kernel& kernel) const;
    std::size_t operator()(const ImportedMessage& message) const;
  };

  NodeId add_node(std::uint64_t id, std::string_view name, const ImportedNode& node);
  void resolve(const std::string& file, bool repair, std::vector<std::string>& notes);

  ImportedGraph graph_;
  NamesInStream names_;
  std::vector<Dependency> dependencies_;
  std::vector<Reference> references_;
  std::vector<NodeTensors> tensors_;
  bool collects_tensors_ = false;
  int rank_ = -1;
  bool of_its_rank_ = false;
  bool ascending_ = true;                                    ///< identifiers, as they came
  std::unordered_map<Kernel, std::uint32_t, Hash> kernels_;  ///< numbers of kernels without names
  std::unordered_map<ImportedMessage, std::uint32_t, Hash> messages_;
};

}  // namespace orrery
