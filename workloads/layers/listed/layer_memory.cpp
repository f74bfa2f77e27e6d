// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/listed/layer_memory.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "workloads/layers/listed/layer_folding.h"

namespace orrery {
namespace {

/// Plays the passes and adds up what is there.
class TensorPlay {
 public:
  TensorPlay(const LayerGraph& graph, const PassContext& pass)
      : graph_(graph),
        pass_(pass),
        folded_(fold(graph, pass)),
        last_use_(graph.tensors().size(), 0),
        first_keeper_(graph.tensors().size(), graph.nodes().size()),
        there_(graph.tensors().size(), false),
        gradients_(graph.tensors().size(), false) {
    note_uses();
    if (pass.training) note_keepers();
  }

  TensorMemory play() {
    for (const std::size_t input : graph_.inputs()) make(input);
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) forward(i);
    if (!pass_.training) return most_;
    gradients_[store(graph_.nodes().back().output)] = true;
    working_ += bytes(graph_.nodes().back().output);
    note_most();
    for (std::size_t i = graph_.nodes().size(); i-- > 0;) backward(i);
    return most_;
  }

 private:
  std::size_t store(std::size_t tensor) const { return folded_.storage[tensor]; }
  Bytes bytes(std::size_t tensor) const {
    return pass_.bytes(graph_.tensors()[store(tensor)].elements());
  }
  bool is_kept(std::size_t tensor) const {
    return first_keeper_[store(tensor)] < graph_.nodes().size();
  }

  /// Results of the whole are never freed.
  void note_uses() {
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i)
      for (const std::size_t input : graph_.nodes()[i].inputs)
        last_use_[store(input)] = std::max(last_use_[store(input)], folded_.root[i]);
    for (const LayerCall& call : graph_.calls())
      for (const std::size_t input : call.inputs)
        last_use_[store(input)] = std::max(last_use_[store(input)], call.last);
    last_use_[store(graph_.nodes().back().output)] = graph_.nodes().size();
  }
  void note_keepers() {
    const auto keep = [this](std::size_t tensor, std::size_t node) {
      first_keeper_[store(tensor)] = std::min(first_keeper_[store(tensor)], node);
    };
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const LayerNode& node = graph_.nodes()[i];
      if (node.op->keeps_output()) keep(node.output, i);
      if (!node.op->keeps_inputs()) continue;
      for (const std::size_t input : node.inputs) keep(input, i);
    }
  }

  void note_most() {
    if (kept_ + working_ > most_.total()) most_ = {kept_, working_};
  }
  Bytes& place(std::size_t tensor) { return is_kept(tensor) ? kept_ : working_; }
  void make(std::size_t tensor) {
    if (there_[store(tensor)]) return;
    there_[store(tensor)] = true;
    place(tensor) += bytes(tensor);
    note_most();
  }
  void free(std::size_t tensor) {
    if (!there_[store(tensor)]) return;
    there_[store(tensor)] = false;
    place(tensor) -= bytes(tensor);
  }

  void forward(std::size_t i) {
    if (folded_.root[i] == i) make(graph_.nodes()[i].output);
    for (std::size_t tensor = 0; tensor < last_use_.size(); ++tensor)
      if (store(tensor) == tensor && last_use_[tensor] == i && !is_kept(tensor)) free(tensor);
  }

  void backward(std::size_t i) {
    const LayerNode& node = graph_.nodes()[i];
    for (const std::size_t input : node.inputs) {
      if (gradients_[store(input)] || folded_.maker[input] == graph_.nodes().size()) continue;
      gradients_[store(input)] = true;
      working_ += bytes(input);
    }
    note_most();
    const bool passes_on = !node.inputs.empty() && store(node.inputs.front()) == store(node.output);
    if (gradients_[store(node.output)] && !passes_on) {
      gradients_[store(node.output)] = false;
      working_ -= bytes(node.output);
    }
    for (std::size_t tensor = 0; tensor < first_keeper_.size(); ++tensor)
      if (store(tensor) == tensor && first_keeper_[tensor] == i) free(tensor);
  }

  const LayerGraph& graph_;
  const PassContext& pass_;
  FoldedGraph folded_;
  std::vector<std::size_t> last_use_;      ///< the last node of the forward pass by storage
  std::vector<std::size_t> first_keeper_;  ///< the last node of the backward pass by storage
  std::vector<bool> there_, gradients_;
  Bytes kept_, working_;
  TensorMemory most_;
};

}  // namespace

TensorMemory tensor_memory(const LayerGraph& graph, const PassContext& pass) {
  return TensorPlay(graph, pass).play();
}

}  // namespace orrery
