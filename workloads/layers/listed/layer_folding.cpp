// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/listed/layer_folding.h"

#include <algorithm>
#include <numeric>

namespace orrery {
namespace {

class Folding {
 public:
  Folding(const LayerGraph& graph, const PassContext& pass) : graph_(graph), pass_(pass) {
    const std::size_t nodes = graph.nodes().size(), tensors = graph.tensors().size();
    folded_.root.resize(nodes);
    std::iota(folded_.root.begin(), folded_.root.end(), std::size_t{0});
    folded_.storage.resize(tensors);
    std::iota(folded_.storage.begin(), folded_.storage.end(), std::size_t{0});
    folded_.readers.resize(tensors);
    folded_.maker.assign(tensors, nodes);
    for (std::size_t i = 0; i < nodes; ++i) {
      for (const std::size_t input : graph.nodes()[i].inputs) folded_.readers[input].push_back(i);
      folded_.maker[graph.nodes()[i].output] = i;
    }
  }

  FoldedGraph fold() {
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (pass_.fuses && !pass_.training && fold_epilogue(i)) continue;
      share_memory(i);
    }
    return std::move(folded_);
  }

 private:
  const LayerNode& node(std::size_t i) const { return graph_.nodes()[i]; }

  bool fold_epilogue(std::size_t i) {
    if (!node(i).op->is_epilogue()) return false;
    const std::size_t none = graph_.nodes().size();
    std::size_t latest = none;
    for (const std::size_t input : node(i).inputs) {
      const std::size_t maker = folded_.maker[input];
      if (maker != none && (latest == none || maker > folded_.maker[latest])) latest = input;
    }
    if (latest == none || folded_.readers[latest].size() != 1) return false;
    const std::size_t root = folded_.root[folded_.maker[latest]];
    if (!node(root).op->is_product()) return false;
    if (graph_.tensors()[latest] != graph_.tensors()[node(i).output]) return false;
    for (const std::size_t input : node(i).inputs)
      if (input != latest && folded_.maker[input] != none && folded_.maker[input] > root)
        return false;
    folded_.root[i] = root;
    folded_.storage[node(i).output] = folded_.storage[latest];
    return true;
  }

  void share_memory(std::size_t i) {
    if (node(i).op->is_view()) {
      folded_.storage[node(i).output] = folded_.storage[node(i).inputs.front()];
      return;
    }
    const std::size_t input = node(i).inputs.front();
    const std::size_t maker = folded_.maker[input];
    if (!node(i).op->in_place() || folded_.readers[input].size() != 1 ||
        maker == graph_.nodes().size())
      return;
    if (pass_.training && (node(maker).op->keeps_output() || node(i).op->keeps_inputs())) return;
    folded_.storage[node(i).output] = folded_.storage[input];
  }

  const LayerGraph& graph_;
  const PassContext& pass_;
  FoldedGraph folded_;
};

}  // namespace

FoldedGraph fold(const LayerGraph& graph, const PassContext& pass) {
  return Folding(graph, pass).fold();
}

}  // namespace orrery
