// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_fusion.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/formats/joined_kernels.h"

namespace orrery {
namespace {

class ImportedFusion {
 public:
  explicit ImportedFusion(ImportedGraph& graph) : graph_(graph) {}

  FusedKernels run() {
    // Attention first: what follows it is over all heads, and no epilogue of one.
    for (NodeId node = 0; node < graph_.size(); ++node) fuse_attention(node);
    for (NodeId node = 0; node < graph_.size(); ++node) fuse_with_next(node);
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

  /// The kernel that alone waits for a kernel, on its stream, and reads what it writes; nothing
  /// where there are more, or none.
  std::optional<NodeId> only_next(NodeId id) const {
    const ImportedNode& node = graph_.nodes[id];
    if (node.kept || graph_.nodes[id + 1].first_next != node.first_next + 1) return std::nullopt;
    const NodeId next = graph_.next[node.first_next];
    if (graph_.nodes[next].stream != node.stream) return std::nullopt;
    const Kernel* const reader = kernel_of(next);
    if (reader == nullptr || !is_classified(next)) return std::nullopt;
    const Bytes between = kernel_of(id)->written;
    if (!(between > Bytes()) || reader->read < between) return std::nullopt;
    return next;
  }

  void fuse_with_next(NodeId first) {
    const Kernel* const ahead = kernel_of(first);
    const std::optional<NodeId> second = ahead != nullptr ? only_next(first) : std::nullopt;
    if (!second || (ahead->kind == KernelClass::kElementwise && !is_classified(first))) return;
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
    if (chain.empty()) return;
    std::vector<const Kernel*> kernels;
    kernels.reserve(chain.size());
    for (const NodeId node : chain) kernels.push_back(kernel_of(node));
    const std::optional<Kernel> attention = joined_attention(kernels);
    if (!attention) return;
    become_one(chain, *attention);
    ++fused_.attentions;
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
  return line;
}

FusedKernels fuse_kernels(ImportedGraph& graph) { return ImportedFusion(graph).run(); }

}  // namespace orrery
