// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_fusion.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "workloads/formats/graph_builder.h"
#include "workloads/formats/joined_kernels.h"
#include "workloads/formats/tensor_flow.h"

namespace orrery {
namespace {

/// Places of nodes in an order that keeps all dependencies, the first of the file first.
std::vector<std::uint32_t> places_in_order(const ImportedGraph& graph) {
  std::vector<std::uint32_t> places(graph.size()), waits(graph.size());
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId node = 0; node < graph.size(); ++node) {
    waits[node] = graph.nodes[node].waits;
    if (waits[node] == 0) ready.push(node);
  }
  for (std::uint32_t place = 0; !ready.empty(); ++place) {
    const NodeId node = ready.top();
    ready.pop();
    places[node] = place;
    for (std::uint32_t e = graph.nodes[node].first_next; e < graph.nodes[node + 1].first_next; ++e)
      if (--waits[graph.next[e]] == 0) ready.push(graph.next[e]);
  }
  return places;
}

class ImportedFusion {
 public:
  ImportedFusion(ImportedGraph& graph, const std::vector<NodeTensors>& tensors) : graph_(graph) {
    if (tensors.empty()) return;
    flow_.emplace(graph, tensors);
    places_ = places_in_order(graph);
  }

  FusedKernels run() {
    // Attention first: what follows it is over all heads, and no epilogue of one.
    for (NodeId node = 0; node < graph_.size(); ++node) fuse_attention(node);
    for (NodeId node = 0; node < graph_.size(); ++node) fuse_with_next(node);
    if (!more_.empty()) add_dependencies(graph_, more_);
    for (NodeId node = 0; node < graph_.size() && !flow_; ++node)
      fused_.unknown += graph_.nodes[node].kept && kernel_of(node) != nullptr ? 1U : 0U;
    return fused_;
  }

 private:
  const Kernel* kernel_of(NodeId id) const {
    const ImportedNode& node = graph_.nodes[id];
    if (node.kind != NodeKind::kKernel) return nullptr;
    const NodeWork& work = graph_.works[node.work];
    return work.kernel == NodeWork::kNoKernel ? nullptr : &graph_.kernels[work.kernel];
  }

  bool is_classified(NodeId id) const { return graph_.works[graph_.nodes[id].work].classified; }

  bool has_dependency(NodeId earlier, NodeId later) const {
    const auto begin = graph_.next.begin();
    const auto end = begin + graph_.nodes[earlier + 1].first_next;
    return std::find(begin + graph_.nodes[earlier].first_next, end, later) != end;
  }

  /// The node that alone reads what a node writes, and alone may wait for it.
  std::optional<NodeId> only_reader(NodeId id) const {
    const ImportedNode& node = graph_.nodes[id];
    const std::uint32_t waiting = graph_.nodes[id + 1].first_next - node.first_next;
    if (!flow_) {
      if (node.kept || waiting != 1) return std::nullopt;
      return graph_.next[node.first_next];
    }
    const std::optional<NodeId> reader = flow_->only_reader(id);
    if (!reader || waiting > 1 || (waiting == 1 && !has_dependency(id, *reader)))
      return std::nullopt;
    return reader;
  }

  /// The kernel that alone follows a kernel, on its stream, and reads what it writes; nothing where
  /// there are more, or none.
  std::optional<NodeId> only_next(NodeId id) const {
    const std::optional<NodeId> reader = only_reader(id);
    if (!reader || graph_.nodes[*reader].stream != graph_.nodes[id].stream) return std::nullopt;
    const NodeId next = *reader;
    const Kernel* const kernel = kernel_of(next);
    if (kernel == nullptr || !is_classified(next)) return std::nullopt;
    const Bytes between = kernel_of(id)->written;
    if (!(between > Bytes()) || kernel->read < between) return std::nullopt;
    return next;
  }

  void fuse_with_next(NodeId first) {
    const Kernel* const ahead = kernel_of(first);
    const std::optional<NodeId> second = ahead != nullptr ? only_next(first) : std::nullopt;
    if (!second || (ahead->kind == KernelClass::kElementwise && !is_classified(first)) ||
        !may_join({first, *second}))
      return;
    if (const std::optional<Kernel> both = joined_pair(*ahead, *kernel_of(*second)))
      become_one({first, *second}, *both);
  }

  /// Scores, elementwise kernels, softmax, elementwise kernels, values, that begin with a node;
  /// empty where they do not.
  std::vector<NodeId> attention_at(NodeId first) const {
    const Kernel* const scores = kernel_of(first);
    if (scores == nullptr || scores->kind != KernelClass::kGemm || scores->m == 0) return {};
    std::vector<NodeId> chain = {first};
    bool has_softmax = false;
    for (std::optional<NodeId> next = only_next(first); next; next = only_next(*next)) {
      chain.push_back(*next);
      const KernelClass kind = kernel_of(*next)->kind;
      if (kind == KernelClass::kGemm) return has_softmax ? chain : std::vector<NodeId>();
      if (kind == KernelClass::kElementwise) continue;
      if (kind != KernelClass::kSoftmax || has_softmax) return {};
      has_softmax = true;
    }
    return {};
  }

  void fuse_attention(NodeId first) {
    const std::vector<NodeId> chain = attention_at(first);
    if (chain.empty() || !may_join(chain)) return;
    std::vector<const Kernel*> kernels;
    kernels.reserve(chain.size());
    for (const NodeId node : chain) kernels.push_back(kernel_of(node));
    const std::optional<Kernel> attention = joined_attention(kernels);
    if (!attention) return;
    become_one(chain, *attention);
    ++fused_.attentions;
  }

  /// Whether what a chain reads waits for its last node, and dependencies from one to the next
  /// close no cycle.
  bool may_join(const std::vector<NodeId>& chain) const {
    if (!flow_) return true;
    for (std::size_t i = 1; i < chain.size(); ++i)
      if (places_[chain[i - 1]] >= places_[chain[i]]) return false;
    return flow_->is_there(chain);
  }

  /// What an earlier part waits for the last one waits for too.
  void keep_order(const std::vector<NodeId>& chain) {
    for (std::size_t i = 1; i < chain.size(); ++i)
      if (!has_dependency(chain[i - 1], chain[i])) more_.push_back({chain[i], chain[i - 1]});
    flow_->join(chain);
  }

  /// Nodes become the last of them, with the work of all.
  void become_one(const std::vector<NodeId>& chain, const Kernel& kernel) {
    const NodeId last = chain.back();
    NodeWork whole = graph_.works[graph_.nodes[last].work];
    std::vector<std::uint32_t> parts;
    std::string name;
    for (const NodeId node : chain) {
      NodeWork& work = graph_.works[graph_.nodes[node].work];
      const Kernel& part = graph_.kernels[work.kernel];
      fused_.saved += part.read + part.written;
      parts.push_back(work.kernel);
      if (!name.empty()) name += " + ";
      name += graph_.name(node);
      if (node == last) continue;
      whole.recorded += work.recorded;
      whole.timed = whole.timed && work.timed;
      work = NodeWork();
      graph_.nodes[node].kind = NodeKind::kMarker;
      graph_.nodes[node].stream = markers();
      ++fused_.gone;
    }
    if (flow_) keep_order(chain);
    fused_.saved -= kernel.read + kernel.written;
    whole.kernel = number_of(kernel, parts);
    whole.kind = kernel.kind;
    graph_.works[graph_.nodes[last].work] = whole;
    graph_.names[last] = graph_.pool.append(name);
  }

  /// Alike chains have one kernel.
  std::uint32_t number_of(const Kernel& kernel, const std::vector<std::uint32_t>& parts) {
    const auto [known, is_new] =
        numbers_.try_emplace(parts, static_cast<std::uint32_t>(graph_.kernels.size()));
    if (!is_new) return known->second;
    graph_.kernels.push_back(kernel);
    std::vector<std::uint32_t>& all = graph_.parts[known->second];
    for (const std::uint32_t part : parts) {
      const auto joined = graph_.parts.find(part);  // one of several itself
      if (joined == graph_.parts.end()) {
        all.push_back(part);
      } else {
        all.insert(all.end(), joined->second.begin(), joined->second.end());
      }
    }
    return known->second;
  }

  /// The stream of nodes that take no time.
  std::uint16_t markers() {
    if (!markers_) {
      const auto known =
          std::find_if(graph_.streams.begin(), graph_.streams.end(),
                       [](const ImportedStream& s) { return !s.serial && s.name == "markers"; });
      markers_ = static_cast<std::uint16_t>(known - graph_.streams.begin());
      if (known == graph_.streams.end()) graph_.streams.push_back({"markers", false});
    }
    return *markers_;
  }

  ImportedGraph& graph_;
  FusedKernels fused_;
  std::optional<TensorFlow> flow_;
  std::vector<std::uint32_t> places_;  ///< places of nodes in an order, where tensors are told
  std::vector<Dependency> more_;       ///< dependencies to be added, where tensors are told
  std::map<std::vector<std::uint32_t>, std::uint32_t> numbers_;  ///< kernels by their parts
  std::optional<std::uint16_t> markers_;
};

}  // namespace

std::string FusedKernels::text() const {
  char bytes[48];
  std::snprintf(bytes, sizeof bytes, "%.6g MB", saved.base() * 1e-6);
  std::string line = std::to_string(gone) + " kernels are part of the one behind them";
  if (attentions > 0) line += ", " + std::to_string(attentions) + " of which became attention";
  if (gone > 0) line += "; " + std::string(bytes) + " less go to memory and back";
  if (unknown > 0)
    line += "; of " + std::to_string(unknown) +
            " kernels nothing tells who reads their results, which stay in memory";
  return line;
}

FusedKernels fuse_kernels(ImportedGraph& graph, const std::vector<NodeTensors>& tensors) {
  return ImportedFusion(graph, tensors).run();
}

}  // namespace orrery
