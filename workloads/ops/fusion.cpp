// SPDX-License-Identifier: Apache-2.0
#include "workloads/ops/fusion.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "workloads/base/real.h"

namespace orrery {
namespace {

using Uses = std::vector<TensorUse>;

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

Bytes sum(const Uses& uses) {
  Bytes bytes;
  for (const TensorUse& use : uses) bytes += use.bytes;
  return bytes;
}

bool has(const Uses& uses, const std::string& tensor) {
  return std::ranges::any_of(uses, [&](const TensorUse& use) { return use.tensor == tensor; });
}

Uses without(Uses uses, const std::string& tensor) {
  std::erase_if(uses, [&](const TensorUse& use) { return use.tensor == tensor; });
  return uses;
}

/// Both, a tensor that both use once: with the larger part of it.
Uses merged(Uses uses, const Uses& others) {
  for (const TensorUse& other : others) {
    const auto same = std::ranges::find(uses, other.tensor, &TensorUse::tensor);
    if (same == uses.end()) {
      uses.push_back(other);
    } else {
      same->bytes = std::max(same->bytes, other.bytes);
    }
  }
  return uses;
}

void count_bytes(GraphKernel& node) {
  node.kernel.read = sum(node.reads);
  node.kernel.written = sum(node.writes);
}

/// A product of tensors that the graph tells apart; epilogues read theirs after them.
bool multiplies_two(const GraphKernel& node) {
  return node.kernel.kind == KernelClass::kGemm && node.reads.size() >= 2;
}

bool can_be_epilogue(const GraphKernel& node) {
  const KernelClass kind = node.kernel.kind;
  return !node.apart && (kind == KernelClass::kElementwise || kind == KernelClass::kNormalization ||
                         kind == KernelClass::kQuantize);
}

/// `first` and what only it feeds as one kernel that does the work of both.
GraphKernel joined(const GraphKernel& first, const GraphKernel& second) {
  GraphKernel node = first;
  const std::string& between = first.writes.front().tensor;
  node.kernel.name += " + " + second.kernel.name;
  node.kernel.matrix_flops += second.kernel.matrix_flops;
  node.kernel.vector_flops += second.kernel.vector_flops;
  node.kernel.exponentials += second.kernel.exponentials;
  node.reads = merged(first.reads, without(second.reads, between));
  node.writes = second.writes;
  count_bytes(node);
  return node;
}

GraphKernel attention_of(const KernelGraph& graph, const std::vector<std::size_t>& parts) {
  const GraphKernel& scores = graph.kernels[parts.front()];
  const GraphKernel& values = graph.kernels[parts.back()];
  const MaskedScores& mask = *graph.kernels[parts[1]].scores;
  GraphKernel node = scores;
  for (std::size_t i = 1; i < parts.size(); ++i) node = joined(node, graph.kernels[parts[i]]);
  node.scores.reset();
  node.kernel.name = "attention";
  node.kernel.kind = mask.kind;
  node.kernel.k = head_width(mask.kind, scores.kernel.k, values.kernel.n);
  node.kernel.attention = mask.shape;
  const double square = real(scores.kernel.batch) * real(scores.kernel.m) * real(scores.kernel.n);
  const Flops epilogue = values.kernel.vector_flops;  // on results, not on pairs
  node.kernel.matrix_flops = node.kernel.matrix_flops / square * mask.pairs;
  node.kernel.vector_flops = (node.kernel.vector_flops - epilogue) / square * mask.pairs + epilogue;
  node.kernel.exponentials = node.kernel.exponentials / square * mask.pairs;
  for (TensorUse& use : node.reads) {
    if (use.tensor == scores.reads[1].tensor && mask.keys > Bytes()) use.bytes = mask.keys;
    if (use.tensor == values.reads[1].tensor && mask.values > Bytes()) use.bytes = mask.values;
  }
  count_bytes(node);
  return node;
}

/// Fuses the kernels of a graph, each pair looked at once: a kernel that is part of another has
/// gone, and that other one stands where the last of its parts stood. What it needs is there, and
/// nothing between them needs what they made.
class GraphFusion {
 public:
  explicit GraphFusion(KernelGraph graph) : graph_(std::move(graph)), gone_(graph_.kernels.size()) {
    for (std::size_t i = 0; i < graph_.kernels.size(); ++i)
      for (const TensorUse& use : graph_.kernels[i].reads) readers_[use.tensor].insert(i);
    kept_.insert(graph_.kept.begin(), graph_.kept.end());
  }

  KernelGraph run() {
    for (std::size_t i = 0; i < graph_.kernels.size(); ++i)
      if (!gone_[i]) fuse_epilogue(i);
    for (std::size_t i = 0; i < graph_.kernels.size(); ++i) {
      const std::vector<std::size_t> parts =
          gone_[i] ? std::vector<std::size_t>() : attention_at(i);
      if (!parts.empty()) replace(parts, attention_of(graph_, parts));
    }
    std::vector<GraphKernel> left;
    left.reserve(graph_.kernels.size());
    for (std::size_t i = 0; i < graph_.kernels.size(); ++i)
      if (!gone_[i]) left.push_back(std::move(graph_.kernels[i]));
    graph_.kernels = std::move(left);
    return std::move(graph_);
  }

 private:
  /// The one kernel that reads the one tensor which kernel `producer` writes; kNone where there are
  /// more or the tensor is kept.
  std::size_t only_reader(std::size_t producer) const {
    const Uses& writes = graph_.kernels[producer].writes;
    if (writes.size() != 1 || kept_.count(writes.front().tensor) > 0) return kNone;
    const auto readers = readers_.find(writes.front().tensor);
    return readers == readers_.end() || readers->second.size() != 1 ? kNone
                                                                    : *readers->second.begin();
  }

  void replace(const std::vector<std::size_t>& ascending, GraphKernel node) {
    for (const std::size_t part : ascending) {
      for (const TensorUse& use : graph_.kernels[part].reads) readers_[use.tensor].erase(part);
      gone_[part] = true;
    }
    gone_[ascending.back()] = false;
    for (const TensorUse& use : node.reads) readers_[use.tensor].insert(ascending.back());
    graph_.kernels[ascending.back()] = std::move(node);
  }

  void fuse_epilogue(std::size_t i) {
    if (!takes_epilogues(graph_.kernels[i].kernel.kind)) return;
    const std::size_t reader = only_reader(i);
    if (reader == kNone || !can_be_epilogue(graph_.kernels[reader])) return;
    replace({i, reader}, joined(graph_.kernels[i], graph_.kernels[reader]));
  }

  /// The chain scores, softmax, elementwise kernels, values that starts at kernel `first`; empty
  /// where there is none.
  std::vector<std::size_t> attention_at(std::size_t first) const {
    if (!multiplies_two(graph_.kernels[first])) return {};
    std::vector<std::size_t> parts = {first};
    std::size_t next = only_reader(first);
    if (next == kNone || !graph_.kernels[next].scores) return {};
    while (next != kNone) {
      parts.push_back(next);
      if (multiplies_two(graph_.kernels[next])) return parts;
      next = only_reader(next);
      if (next == kNone) break;
      const GraphKernel& node = graph_.kernels[next];
      if (node.kernel.kind != KernelClass::kElementwise && !multiplies_two(node)) break;
    }
    return {};
  }

  KernelGraph graph_;
  std::vector<bool> gone_;
  std::map<std::string, std::set<std::size_t>> readers_;
  std::set<std::string> kept_;
};

}  // namespace

bool takes_epilogues(KernelClass kind) {
  return kind == KernelClass::kGemm || kind == KernelClass::kGroupedGemm ||
         kind == KernelClass::kConvolution;
}

void KernelGraph::add(Kernel kernel, std::vector<TensorUse> reads, std::vector<TensorUse> writes,
                      std::optional<MaskedScores> scores) {
  for (const TensorUse& write : writes)
    for (const GraphKernel& earlier : kernels)
      if (has(earlier.writes, write.tensor))
        throw std::logic_error("tensor '" + write.tensor + "' is written twice");
  GraphKernel node{std::move(kernel), std::move(reads), std::move(writes), std::move(scores)};
  count_bytes(node);
  kernels.push_back(std::move(node));
}

KernelGraph chain(const std::vector<Kernel>& kernels) {
  KernelGraph graph;
  std::string last;
  Bytes passed;
  for (const Kernel& kernel : kernels) {
    const std::string step = fmt::format("{} {}", graph.kernels.size(), kernel.name);
    std::vector<TensorUse> reads;
    const Bytes taken = last.empty() ? Bytes() : std::min(kernel.read, passed);
    if (!last.empty()) reads.push_back({last, taken});
    if (kernel.read > taken) reads.push_back({"operands of " + step, kernel.read - taken});
    last = "result of " + step;
    passed = kernel.written;
    graph.add(kernel, std::move(reads), {{last, kernel.written}});
  }
  return graph;
}

std::vector<Kernel> kernels_of(const KernelGraph& graph) {
  std::vector<Kernel> kernels;
  kernels.reserve(graph.kernels.size());
  for (const GraphKernel& node : graph.kernels) kernels.push_back(node.kernel);
  return kernels;
}

std::vector<std::string> inputs_of(const KernelGraph& graph) {
  std::set<std::string> inputs;
  for (const GraphKernel& node : graph.kernels)
    for (const TensorUse& use : node.reads) inputs.insert(use.tensor);
  for (const GraphKernel& node : graph.kernels)
    for (const TensorUse& use : node.writes) inputs.erase(use.tensor);
  return {inputs.begin(), inputs.end()};
}

std::vector<std::string> outputs_of(const KernelGraph& graph) {
  std::set<std::string> outputs;
  for (const GraphKernel& node : graph.kernels)
    for (const TensorUse& use : node.writes) outputs.insert(use.tensor);
  for (const GraphKernel& node : graph.kernels)
    for (const TensorUse& use : node.reads) outputs.erase(use.tensor);
  outputs.insert(graph.kept.begin(), graph.kept.end());
  return {outputs.begin(), outputs.end()};
}

Bytes traffic(const std::vector<Kernel>& kernels) {
  Bytes bytes;
  for (const Kernel& kernel : kernels) bytes += kernel.read + kernel.written;
  return bytes;
}

KernelGraph fuse(KernelGraph graph) { return GraphFusion(std::move(graph)).run(); }

std::int64_t head_width(KernelClass kind, std::int64_t keys, std::int64_t values) {
  const bool grouped =
      kind == KernelClass::kAttentionDecode || kind == KernelClass::kAttentionPrefill;
  return grouped ? (keys + values) / 2 : keys;
}

}  // namespace orrery
