// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/config/byte_source.h"
#include "workloads/formats/communicators.h"
#include "workloads/formats/graph_format.h"
#include "workloads/formats/onnx/lowered.h"

namespace orrery::onnx {

/// The graph of a model that is in memory.
inline ImportedGraph imported(const std::string& file, const GraphReadOptions& options = {},
                              std::vector<std::string>* notes = nullptr) {
  ByteSource source("model.onnx", file);
  Communicators none;
  GraphBuilder graph;
  std::vector<std::string> said;
  GraphFormatRegistry::at("graph format", "onnx")->read(source, options, none, graph, said);
  ImportedGraph finished = graph.finish("model.onnx", false, said);
  if (notes != nullptr) *notes = said;
  return finished;
}

inline LoweredModel lowered_of(const std::string& file,
                               const std::map<std::string, std::int64_t>& dimensions = {}) {
  ByteSource source("model.onnx", file);
  return lower(read_model(source), {"model.onnx", dimensions, {}});
}

inline const Kernel& kernel_at(const ImportedGraph& graph, NodeId node) {
  return graph.kernels.at(graph.works.at(graph.nodes.at(node).work).kernel);
}

template <class Amount>
double sum(const ImportedGraph& graph, Amount amount) {
  double all = 0;
  for (NodeId node = 0; node < graph.size(); ++node) all += amount(kernel_at(graph, node));
  return all;
}
inline double matrix_flops(const ImportedGraph& graph) {
  return sum(graph, [](const Kernel& kernel) { return kernel.matrix_flops.base(); });
}
inline double vector_flops(const ImportedGraph& graph) {
  return sum(graph, [](const Kernel& kernel) { return kernel.vector_flops.base(); });
}
inline double bytes(const ImportedGraph& graph) {
  return sum(graph, [](const Kernel& kernel) { return (kernel.read + kernel.written).base(); });
}

inline std::size_t count(const ImportedGraph& graph, KernelClass kind) {
  return static_cast<std::size_t>(
      sum(graph, [kind](const Kernel& kernel) { return kernel.kind == kind ? 1.0 : 0.0; }));
}
inline Kernel first_of(const ImportedGraph& graph, KernelClass kind) {
  for (NodeId node = 0; node < graph.size(); ++node)
    if (kernel_at(graph, node).kind == kind) return kernel_at(graph, node);
  return {};
}

}  // namespace orrery::onnx
