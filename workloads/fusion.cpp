// SPDX-License-Identifier: Apache-2.0
#include "workloads/fusion.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "workloads/llm/real.h"

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
  return std::any_of(uses.begin(), uses.end(),
                     [&](const TensorUse& use) { return use.tensor == tensor; });
}

Uses without(Uses uses, const std::string& tensor) {
  std::erase_if(uses, [&](const TensorUse& use) { return use.tensor == tensor; });
  return uses;
}

/// Both, a tensor that both use once: with the larger part of it.
Uses merged(Uses uses, const Uses& others) {
  for (const TensorUse& other : others) {
    const auto same = std::find_if(
        uses.begin(), uses.end(), [&](const TensorUse& use) { return use.tensor == other.tensor; });
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

bool takes_epilogues(const GraphKernel& node) {
  return node.kernel.kind == KernelClass::kGemm || node.kernel.kind == KernelClass::kGroupedGemm;
}

bool can_be_epilogue(const GraphKernel& node) {
  const KernelClass kind = node.kernel.kind;
  return kind == KernelClass::kElementwise || kind == KernelClass::kNormalization ||
         kind == KernelClass::kQuantize;
}

/// The one kernel that reads the one tensor which kernel `producer` writes; kNone where there are
/// more or the tensor is kept.
std::size_t only_reader(const KernelGraph& graph, std::size_t producer) {
  const Uses& writes = graph.kernels[producer].writes;
  if (writes.size() != 1) return kNone;
  const std::string& tensor = writes.front().tensor;
  if (std::find(graph.kept.begin(), graph.kept.end(), tensor) != graph.kept.end()) return kNone;
  std::size_t reader = kNone;
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    if (!has(graph.kernels[i].reads, tensor)) continue;
    if (reader != kNone) return kNone;
    reader = i;
  }
  return reader;
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

/// Puts `node` in the place of the last of the kernels that it replaces: what the others need is
/// there, and nothing between them needs what they made.
void replace(KernelGraph& graph, const std::vector<std::size_t>& ascending, GraphKernel node) {
  graph.kernels[ascending.back()] = std::move(node);
  for (std::size_t i = ascending.size() - 1; i-- > 0;)
    graph.kernels.erase(graph.kernels.begin() + static_cast<std::ptrdiff_t>(ascending[i]));
}

bool fuse_epilogue(KernelGraph& graph) {
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    const GraphKernel& first = graph.kernels[i];
    if (!takes_epilogues(first)) continue;
    const std::size_t reader = only_reader(graph, i);
    if (reader == kNone || !can_be_epilogue(graph.kernels[reader])) continue;
    replace(graph, {i, reader}, joined(first, graph.kernels[reader]));
    return true;
  }
  return false;
}

/// The chain scores, softmax, elementwise kernels, values that starts at kernel `first`; empty
/// where there is none.
std::vector<std::size_t> attention_at(const KernelGraph& graph, std::size_t first) {
  if (!multiplies_two(graph.kernels[first])) return {};
  std::vector<std::size_t> parts = {first};
  std::size_t next = only_reader(graph, first);
  if (next == kNone || !graph.kernels[next].scores) return {};
  while (next != kNone) {
    parts.push_back(next);
    if (multiplies_two(graph.kernels[next])) return parts;
    next = only_reader(graph, next);
    if (next == kNone) break;
    const GraphKernel& node = graph.kernels[next];
    if (node.kernel.kind != KernelClass::kElementwise && !multiplies_two(node)) break;
  }
  return {};
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
    if (use.tensor == scores.reads[1].tensor) use.bytes = mask.keys;
    if (use.tensor == values.reads[1].tensor) use.bytes = mask.values;
  }
  count_bytes(node);
  return node;
}

bool fuse_attention(KernelGraph& graph) {
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    const std::vector<std::size_t> parts = attention_at(graph, i);
    if (parts.empty()) continue;
    replace(graph, parts, attention_of(graph, parts));
    return true;
  }
  return false;
}

}  // namespace

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
    const std::string step = std::to_string(graph.kernels.size()) + " " + kernel.name;
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

KernelGraph fuse(KernelGraph graph) {
  while (fuse_epilogue(graph) || fuse_attention(graph)) {
  }
  return graph;
}

std::int64_t head_width(KernelClass kind, std::int64_t keys, std::int64_t values) {
  const bool grouped =
      kind == KernelClass::kAttentionDecode || kind == KernelClass::kAttentionPrefill;
  return grouped ? (keys + values) / 2 : keys;
}

}  // namespace orrery
