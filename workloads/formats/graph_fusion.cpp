// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_fusion.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "workloads/formats/dependencies.h"
#include "workloads/formats/graph_builder.h"
#include "workloads/formats/tensor_flow.h"
#include "workloads/ops/fusion.h"

namespace orrery {
namespace {

/// Places of nodes in an order that keeps all dependencies, the first of the file first.
std::vector<std::uint32_t> places_in_order(const ImportedGraph& graph) {
  std::vector<std::uint32_t> places(graph.size());
  std::uint32_t place = 0;
  using FirstOfFile = std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>>;
  in_order<FirstOfFile>(graph, [&](NodeId node) { places[node] = place++; });
  return places;
}

/// What fuse() makes of kernels, where that is one.
std::optional<Kernel> only_kernel(KernelGraph graph) {
  std::vector<Kernel> kernels = kernels_of(fuse(std::move(graph)));
  if (kernels.size() != 1) return std::nullopt;
  return std::move(kernels.front());
}

Bytes operand_bytes(const Kernel& product) {
  return Bytes(static_cast<double>(product.batch) * static_cast<double>(product.m) *
               static_cast<double>(product.k) * element_bytes(product.precision));
}

/// Heads that share no keys, since each product of the batch reads its own. How many are of one
/// sequence the softmax may tell.
MaskedScores scores_of(const Kernel& product, const Kernel& softmax) {
  MaskedScores scores;
  scores.kind = product.m > 1 ? KernelClass::kAttentionPrefill : KernelClass::kAttentionDecode;
  const AttentionShape& told = softmax.attention;
  const bool fits = told.sequences > 0 && product.batch % told.sequences == 0 &&
                    product.batch / told.sequences == told.kv_heads;
  scores.shape.sequences = fits ? told.sequences : 1;
  scores.shape.kv_heads = fits ? told.kv_heads : product.batch;
  scores.pairs = static_cast<double>(product.batch) * static_cast<double>(product.m) *
                 static_cast<double>(product.n);
  return scores;
}

/// Both are elementwise: the second computes an element of its result from the first's, in
/// registers.
Kernel joined_elements(const Kernel& first, const Kernel& second) {
  Kernel both = second;
  both.vector_flops += first.vector_flops;
  both.exponentials += first.exponentials;
  both.matrix_flops += first.matrix_flops;
  both.read = first.read + (second.read - first.written);
  return both;
}

/// One kernel that does the work of two, the second of which reads all that the first writes, which
/// then does not go to memory; nothing where they stay two.
std::optional<Kernel> joined_pair(const Kernel& first, const Kernel& second) {
  const Bytes between = first.written;
  if (!(between > Bytes()) || second.read < between) return std::nullopt;
  constexpr auto kElementwise = KernelClass::kElementwise;
  if (first.kind == kElementwise && second.kind == kElementwise)
    return joined_elements(first, second);
  KernelGraph pair;
  pair.add(first, {{"operands", first.read}}, {{"between", between}});
  pair.add(second, {{"between", between}, {"others", second.read - between}},
           {{"results", second.written}});
  return only_kernel(std::move(pair));
}

/// Whether a product can be that of scores, [queries x keys] a head, and another one that of these
/// with values: as many heads and queries, and columns as the other has keys.
bool are_scores_and_values(const Kernel& scores, const Kernel& values) {
  return scores.kind == KernelClass::kGemm && values.kind == KernelClass::kGemm && scores.m > 0 &&
         scores.n > 0 && scores.k > 0 && values.n > 0 && scores.batch == values.batch &&
         scores.m == values.m && scores.n == values.k;
}

/// The attention kernel of a chain, each kernel of which reads what the one before it writes:
/// scores, elementwise kernels, the softmax over them, elementwise kernels and values. Nothing
/// where it is none. All query-key pairs are computed, so that FLOPs are those of the chain; bytes
/// are those of the chain but for what one of its kernels leaves to the next.
std::optional<Kernel> joined_attention(const std::vector<const Kernel*>& chain) {
  if (chain.size() < 3 || !are_scores_and_values(*chain.front(), *chain.back()))
    return std::nullopt;
  const Kernel& product = *chain.front();
  const Bytes queries = std::min(product.read, operand_bytes(product));
  KernelGraph graph;
  std::string last = "0";
  graph.add(product, {{"queries", queries}, {"keys", product.read - queries}},
            {{last, product.written}});
  for (std::size_t i = 1; i < chain.size(); ++i) {
    const Bytes between = chain[i - 1]->written;
    if (!(between > Bytes()) || chain[i]->read < between) return std::nullopt;
    const std::string number = std::to_string(i);
    std::vector<TensorUse> reads = {{last, between}};
    const bool is_last = i + 1 == chain.size();
    if (is_last || chain[i]->read > between)
      reads.push_back({"others of " + number, chain[i]->read - between});
    std::optional<MaskedScores> scores;
    if (chain[i]->kind == KernelClass::kSoftmax) scores = scores_of(product, *chain[i]);
    graph.add(*chain[i], std::move(reads), {{number, chain[i]->written}}, std::move(scores));
    last = number;
  }
  return only_kernel(std::move(graph));
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

  /// The node that alone reads what a node writes, and alone may wait for it.
  std::optional<NodeId> only_reader(NodeId id) const {
    const auto waiting = next_of(graph_, id);
    if (waiting.size() > 1) return std::nullopt;
    if (!flow_)
      return graph_.nodes[id].kept || waiting.empty() ? std::nullopt : std::optional(waiting[0]);
    const std::optional<NodeId> reader = flow_->only_reader(id);
    return waiting.empty() || reader == waiting[0] ? reader : std::nullopt;
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
    for (std::size_t i = 1; i < chain.size(); ++i) {
      const auto next = next_of(graph_, chain[i - 1]);
      if (std::find(next.begin(), next.end(), chain[i]) == next.end())
        more_.push_back({chain[i], chain[i - 1]});
    }
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
  std::string line = fmt::format("{} kernels are part of the one behind them", gone);
  if (attentions > 0) line += fmt::format(", {} of which became attention", attentions);
  if (gone > 0) line += fmt::format("; {:.6g} MB less go to memory and back", saved.base() * 1e-6);
  if (unknown > 0)
    line += fmt::format(
        "; of {} kernels nothing tells who reads their results, which stay in memory", unknown);
  return line;
}

FusedKernels fuse_kernels(ImportedGraph& graph, const std::vector<NodeTensors>& tensors) {
  return ImportedFusion(graph, tensors).run();
}

}  // namespace orrery
