// SPDX-License-Identifier: Apache-2.0
// ONNX (https://github.com/onnx/onnx/blob/main/docs/IR.md): a model as operators between tensors.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "workloads/formats/graph_format.h"
#include "workloads/formats/onnx/passes.h"

namespace orrery {
namespace onnx {
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

/// Writes a model as kernels on one stream, with what they wait for.
/// @param fuses products do what follows them (fusion.h), kernels over the same elements are one
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

}  // namespace
}  // namespace onnx

namespace {

class OnnxFormat final : public GraphFormat {
 public:
  /// Files have no magic. A ModelProto begins with its first field, the version of the format (1 to
  /// 15 so far), and one of those that may follow: a producer, a domain, a text, the graph, opsets.
  bool recognises(std::string_view head, std::string_view path) const override {
    constexpr std::size_t kShortest = 4;
    constexpr char kVersion = 0x08, kMostVersion = 15;
    const bool named = path.ends_with(".onnx");
    if (head.size() < kShortest) return named && !head.empty();
    if (head[0] == kVersion && head[1] > 0 && head[1] <= kMostVersion) {
      constexpr std::string_view kNext("\x12\x1a\x22\x28\x2a\x32\x3a\x42\x72");
      return kNext.find(head[2]) != std::string_view::npos;
    }
    return named;
  }

  void read(ByteSource& source, const GraphReadOptions& options, Communicators& /*communicators*/,
            GraphBuilder& graph, std::vector<std::string>& notes) const override {
    const onnx::Model model = onnx::read_model(source);
    if (model.graph.nodes.empty() && model.ir_version == 0)
      throw config::ConfigError(source.path() +
                                ": no ONNX model: it has neither a version nor operators");
    onnx::LoweredModel lowered =
        onnx::lower(model, {source.path(), options.dimensions, {options.precision}});
    for (const std::string& note : lowered.notes) notes.push_back(source.path() + ": " + note);
    onnx::write_kernels(std::move(lowered), options.fuse, graph);
  }
};

const GraphFormatRegistry::Register registered_onnx(
    "onnx", "ONNX models, opsets 7 to 23: operators as kernels, weights left aside",
    std::make_shared<OnnxFormat>());

}  // namespace
}  // namespace orrery
