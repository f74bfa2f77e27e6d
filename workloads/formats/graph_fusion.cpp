// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_fusion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "workloads/fusion.h"

namespace orrery {
namespace {

class ImportedFusion {
 public:
  explicit ImportedFusion(ImportedGraph& graph) : graph_(graph) {}

  std::uint64_t run() {
    std::uint64_t fused = 0;
    for (NodeId node = 0; node < graph_.size(); ++node)
      if (fuse_at(node)) ++fused;
    return fused;
  }

 private:
  const Kernel* kernel_of(NodeId id) const {
    const ImportedNode& node = graph_.nodes[id];
    if (node.kind != NodeKind::kKernel) return nullptr;
    const std::uint32_t number = graph_.works[node.work].kernel;
    return number == NodeWork::kNoKernel ? nullptr : &graph_.kernels[number];
  }

  /// The node that alone waits for a node; nothing where there are more, or none.
  std::optional<NodeId> only_next(NodeId id) const {
    const std::uint32_t first = graph_.nodes[id].first_next;
    if (graph_.nodes[id + 1].first_next != first + 1) return std::nullopt;
    return graph_.next[first];
  }

  bool fuse_at(NodeId first) {
    const Kernel* const product = kernel_of(first);
    const std::optional<NodeId> second = product != nullptr ? only_next(first) : std::nullopt;
    if (!second || graph_.nodes[*second].stream != graph_.nodes[first].stream) return false;
    const Kernel* const epilogue = kernel_of(*second);
    if (epilogue == nullptr || !graph_.works[graph_.nodes[*second].work].classified) return false;
    const std::optional<Kernel> both = fused(*product, *epilogue);
    if (!both) return false;
    NodeWork& ahead = graph_.works[graph_.nodes[first].work];
    NodeWork& work = graph_.works[graph_.nodes[*second].work];
    work.kernel = number_of(*both, ahead.kernel, work.kernel);
    work.kind = both->kind;
    work.classified = ahead.classified;
    work.timed = work.timed && ahead.timed;
    work.recorded += ahead.recorded;
    graph_.names[*second] = graph_.pool.append(std::string(graph_.name(first)) + " + " +
                                               std::string(graph_.name(*second)));
    ahead = NodeWork();
    graph_.nodes[first].kind = NodeKind::kMarker;
    graph_.nodes[first].stream = markers();
    return true;
  }

  /// One kernel that does the work of both; nothing where they stay two.
  static std::optional<Kernel> fused(const Kernel& product, const Kernel& epilogue) {
    const Bytes between = product.written;
    if (!(between > Bytes()) || epilogue.read < between) return std::nullopt;
    KernelGraph pair;
    pair.add(product, {{"operands", product.read}}, {{"between", between}});
    pair.add(epilogue, {{"between", between}, {"others", epilogue.read - between}},
             {{"results", epilogue.written}});
    const std::vector<Kernel> kernels = kernels_of(fuse(std::move(pair)));
    if (kernels.size() != 1) return std::nullopt;
    return kernels.front();
  }

  /// Alike pairs have one kernel.
  std::uint32_t number_of(const Kernel& kernel, std::uint32_t first, std::uint32_t second) {
    const auto [known, is_new] =
        numbers_.try_emplace({first, second}, static_cast<std::uint32_t>(graph_.kernels.size()));
    if (is_new) graph_.kernels.push_back(kernel);
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
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
  std::optional<std::uint16_t> markers_;
};

}  // namespace

std::uint64_t fuse_kernels(ImportedGraph& graph) { return ImportedFusion(graph).run(); }

}  // namespace orrery
