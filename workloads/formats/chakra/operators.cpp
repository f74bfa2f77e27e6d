// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "workloads/formats/chakra/nodes.h"
#include "workloads/formats/chakra/torch_operator.h"

namespace orrery {
namespace {

/// A kernel's node has the name of the kernel, and the operator's schema; one of an operator has
/// its name.
std::string_view operator_name(const ChakraNode& node) {
  if (!node.schema.empty()) return operator_of_schema(node.schema);
  return node.name.find("::") == std::string_view::npos ? std::string_view() : node.name;
}

}  // namespace

void ChakraOperators::add(NodeId id, const ChakraNode& node, const NodeWork& work) {
  if (node.operation >= 0) operations_.emplace_back(node.operation, id);
  const auto op = add_tensors(id, node);
  ++(op ? told_ : untold_);
  if (!op) return;
  graph_.keeps(id);  // dependencies do not say who reads its results
  if (op->kernel && work.kernel == NodeWork::kNoKernel)
    ruled_.push_back({id, graph_.kernel(*op->kernel), op->kernel->kind,
                      work.classified && work.kind == op->kernel->kind, node.operation});
}

std::optional<TorchOperator> ChakraOperators::add_tensors(NodeId id, const ChakraNode& node) {
  auto op = torch_operator(operator_name(node), node.in, node.out);
  NodeTensors tensors{id, op.has_value(), false, {}, {}};
  if (op) {
    tensors.reads = op->reads;
    tensors.writes = op->writes;
  }
  graph_.has_tensors(std::move(tensors));
  return op;
}

void ChakraOperators::finish(const std::string& file, std::vector<std::string>& notes) {
  if (told_ == 0) return graph_.forget_tensors();
  std::sort(operations_.begin(), operations_.end());
  const auto kernels_of = [&](std::int64_t operation) {
    const auto [begin, end] =
        std::equal_range(operations_.begin(), operations_.end(), std::pair(operation, NodeId{0}),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
    return end - begin;
  };
  std::map<std::int64_t, std::uint64_t> named;
  for (const Ruled& one : ruled_)
    if (one.named) ++named[one.operation];
  for (const Ruled& one : ruled_) {
    const bool alone = one.operation < 0 || kernels_of(one.operation) == 1;
    if (!alone && (!one.named || named[one.operation] != 1)) continue;
    graph_.computes(one.node, one.kernel, one.kind);
    ++sized_;
  }
  for (const auto& [operation, node] : operations_)
    if (kernels_of(operation) > 1) graph_.shares_tensors(node);
  notes.push_back(
      fmt::format("{}: {} of {} kernels have sizes by the tensors of their operators; {} are of "
                  "operators without a rule, or some of several, and {} tell no tensors",
                  file, sized_, told_ + untold_, told_ - sized_, untold_));
}

}  // namespace orrery
