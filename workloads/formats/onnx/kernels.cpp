// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/kernels.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "workloads/formats/onnx/element_groups.h"
#include "workloads/formats/onnx/simplify.h"

namespace orrery::onnx {
namespace {

std::vector<TensorUse> uses_of(const std::vector<ValueUse>& values) {
  std::vector<TensorUse> uses;
  for (const ValueUse& value : values) {
    const std::string tensor = std::to_string(value.value);
    const auto same = std::find_if(uses.begin(), uses.end(),
                                   [&](const TensorUse& use) { return use.tensor == tensor; });
    if (same == uses.end()) {
      uses.push_back({tensor, value.bytes});
    } else {
      same->bytes = std::max(same->bytes, value.bytes);
    }
  }
  return uses;
}

Bytes sum_of(const std::vector<TensorUse>& uses) {
  Bytes bytes;
  for (const TensorUse& use : uses) bytes += use.bytes;
  return bytes;
}

/// @param unmapped tensors that operators without a rule make
KernelGraph graph_of(LoweredModel& model, std::set<std::string>& unmapped) {
  KernelGraph graph;
  graph.kernels.reserve(model.kernels.size());
  for (Lowered& lowered : model.kernels) {
    GraphKernel node{std::move(lowered.kernel), uses_of(lowered.reads), uses_of(lowered.writes),
                     std::move(lowered.scores), lowered.fusing == Fusing::kAlone};
    node.kernel.read = sum_of(node.reads);
    node.kernel.written = sum_of(node.writes);
    if (!lowered.mapped)
      for (const TensorUse& use : node.writes) unmapped.insert(use.tensor);
    graph.kernels.push_back(std::move(node));
  }
  for (std::size_t i = 0; i < model.outputs.size(); ++i)
    graph.kept.push_back(std::to_string(model.output(i)));
  return graph;
}

}  // namespace

void write_kernels(LoweredModel model, bool fuses, GraphBuilder& graph) {
  simplify(model);
  if (fuses) group_elements(model);
  std::set<std::string> unmapped;
  KernelGraph kernels = graph_of(model, unmapped);
  if (fuses) kernels = fuse(std::move(kernels));
  const Bytes touched = traffic(kernels_of(kernels));
  const std::uint16_t stream = graph.stream("compute");
  std::map<std::string, NodeId> makers;
  for (GraphKernel& node : kernels.kernels) {
    node.kernel.reuse = touched;  // weights are read once a run
    NodeWork work;
    work.kind = node.kernel.kind;
    work.classified = node.writes.empty() || unmapped.count(node.writes.front().tensor) == 0;
    work.kernel = graph.kernel(node.kernel);
    const NodeId id = graph.add(graph.size(), node.kernel.name, NodeKind::kKernel, stream, work);
    std::set<NodeId> earlier;
    for (const TensorUse& use : node.reads)
      if (const auto maker = makers.find(use.tensor); maker != makers.end())
        earlier.insert(maker->second);
    for (const NodeId maker : earlier) graph.follows(id, maker);
    for (const TensorUse& use : node.writes) makers[use.tensor] = id;
  }
}

}  // namespace orrery::onnx
