// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/chakra/graphs.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "workloads/formats/chakra/fields.h"
#include "workloads/formats/dependencies.h"
#include "workloads/formats/kernel_text.h"

namespace orrery {
namespace {

using namespace chakra;

/// A node that says who is in which group alone, as those that are written here.
bool is_groups_node(const ImportedGraph& graph, NodeId id) {
  const ImportedNode& node = graph.nodes[id];
  return node.kind == NodeKind::kMarker && node.waits == 0 && graph.name(id) == "process_group" &&
         next_of(graph, id).empty();
}

}  // namespace

ChakraGraphWriter::ChakraGraphWriter(const ImportedRun& run)
    : run_(run), world_(run.graph_of_rank.size()) {
  std::iota(world_.begin(), world_.end(), 0);
  partial_ =
      std::count(run.graph_of_rank.begin(), run.graph_of_rank.end(), ImportedRun::kAbsent) > 0;
}

const std::vector<int>& ChakraGraphWriter::members(std::uint32_t group) const {
  const bool world = group == ImportedMessage::kWorld || run_.groups[group].empty();
  return world ? world_ : run_.groups[group];
}

/// ASTRA-sim takes names of groups for numbers, of which 0 is all ranks.
std::string ChakraGraphWriter::name_of(std::uint32_t group) const {
  return std::to_string(group == ImportedMessage::kWorld ? run_.groups.size() + 1
                                                         : std::size_t{group} + 1);
}

std::vector<Group> ChakraGraphWriter::groups_of(const ImportedGraph& graph) const {
  std::set<std::uint32_t> used;
  for (const ImportedMessage& message : graph.messages)
    if (message.kind != TransferKind::kSendReceive) used.insert(message.group);
  std::vector<Group> groups;
  groups.reserve(used.size());
  for (const std::uint32_t group : used) groups.emplace_back(name_of(group), members(group));
  return groups;
}

void ChakraGraphWriter::write_groups(std::ostream& out) const {
  std::vector<Group> groups;
  for (std::uint32_t group = 0; group <= run_.groups.size(); ++group)
    groups.emplace_back(std::to_string(group + 1),
                        group == run_.groups.size() ? world_ : members(group));
  write_group_file(out, groups);
}

/// The file of one rank while it is written.
class ChakraGraphWriter::RankFile {
 public:
  RankFile(const ChakraGraphWriter& writer, int rank, const ImportedGraph& graph, std::ostream& out)
      : writer_(writer),
        graph_(graph),
        rank_(rank),
        earlier_(graph),
        file_(out, writer.partial_ ? rank_attribute(rank) : "") {}

  std::uint64_t write() {
    put_groups();
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (!is_groups_node(graph_, id)) put_node(id);
    file_.flush();
    return nodes_;
  }

 private:
  static std::string rank_attribute(int rank) {
    constexpr unsigned kMetadataAttribute = 2;
    std::string attribute;
    put_attribute(attribute, "orrery.rank", kInt64, rank, kMetadataAttribute);
    return attribute;
  }

  void put_groups() {
    const std::vector<Group> groups = writer_.groups_of(graph_);
    if (groups.empty()) return;
    const auto highest = std::max_element(graph_.ids.begin(), graph_.ids.end());
    std::string node;
    put_number(node, 1, highest == graph_.ids.end() ? 0 : *highest + 1);
    file_.put(node + groups_node(groups));
    ++nodes_;
  }

  void put_node(NodeId id) {
    const ImportedNode& node = graph_.nodes[id];
    text_.clear();
    if (graph_.ids[id] > 0) put_number(text_, 1, graph_.ids[id]);
    put_text(text_, 2, graph_.name(id));
    std::string packed;
    for (const NodeId earlier : earlier_.of(id)) put_varint(packed, graph_.ids[earlier]);
    if (!packed.empty()) put_text(text_, 5, packed);
    if (node.kind <= NodeKind::kKernel) {
      put_work(node);
    } else {
      put_transfer(node);
    }
    const ImportedStream& stream = graph_.streams[node.stream];
    put_attribute(text_, "orrery.stream", stream.name);
    if (!stream.serial) put_attribute(text_, "orrery.side_by_side", kBool, 1);
    file_.put(text_);
    ++nodes_;
  }

  void put_type(ChakraType type) { put_number(text_, 3, static_cast<std::uint64_t>(type)); }

  void put_work(const ImportedNode& node) {
    const NodeWork& work = graph_.works[node.work];
    put_type(node.kind == NodeKind::kMarker ? ChakraType::kMetadata : ChakraType::kCompute);
    if (work.timed) put_duration(text_, work.recorded);
    put_attribute(text_, "is_cpu_op", kBool, node.kind == NodeKind::kHost ? 1 : 0);
    if (node.kind != NodeKind::kKernel) return;
    put_attribute(text_, "orrery.class",
                  work.communicates ? kCollectiveWord
                  : work.classified ? to_string(work.kind)
                                    : "unknown");
    if (node.kept) put_attribute(text_, "orrery.kept", kBool, 1);
    if (work.kernel == NodeWork::kNoKernel) return;
    const Kernel& kernel = graph_.kernels[work.kernel];
    put_amount(text_, "num_ops", kInt64, (kernel.matrix_flops + kernel.vector_flops).base());
    put_amount(text_, "tensor_size", kUint64, (kernel.read + kernel.written).base());
    put_attribute(text_, "orrery.kernel", kernel_text(kernel));
  }

  void put_transfer(const ImportedNode& node) {
    const ImportedMessage& message = graph_.messages[node.work];
    if (message.recorded > 0) put_duration(text_, message.recorded);
    put_attribute(text_, "is_cpu_op", kBool, 0);
    if (node.kind == NodeKind::kCollective) return put_collective(message);
    const bool sends = node.kind == NodeKind::kSend;
    put_type(sends ? ChakraType::kSend : ChakraType::kReceive);
    put_amount(text_, "comm_size", kInt64, message.bytes.base());
    put_attribute(text_, "comm_src", kInt32, sends ? rank_ : message.peer);
    put_attribute(text_, "comm_dst", kInt32, sends ? message.peer : rank_);
    put_attribute(text_, "comm_tag", kInt64, message.tag);
  }

  void put_collective(const ImportedMessage& message) {
    const std::int64_t type = collective_type(message.kind);
    if (type < 0)
      throw std::logic_error(fmt::format("Chakra has no collective {}", to_string(message.kind)));
    const std::vector<int>& ranks = writer_.members(message.group);
    put_type(ChakraType::kCollective);
    put_attribute(text_, "comm_type", kInt64, type);
    const double parts = gathers(message.kind) ? static_cast<double>(ranks.size()) : 1;
    put_amount(text_, "comm_size", kInt64, message.bytes.base() / parts);
    put_attribute(text_, "pg_name", writer_.name_of(message.group));
    if (message.root > 0 && static_cast<std::size_t>(message.root) < ranks.size())
      put_attribute(text_, "root_rank", kInt64, ranks[static_cast<std::size_t>(message.root)]);
  }

  const ChakraGraphWriter& writer_;
  const ImportedGraph& graph_;
  int rank_;
  Earlier earlier_;
  MessageFile file_;
  std::string text_;
  std::uint64_t nodes_ = 0;
};

std::uint64_t ChakraGraphWriter::write(int rank, std::ostream& out) const {
  const std::uint32_t graph = run_.graph_of_rank.at(static_cast<std::size_t>(rank));
  if (graph == ImportedRun::kAbsent)
    throw std::out_of_range(fmt::format("rank {} has no graph", rank));
  return RankFile(*this, rank, run_.graphs[graph], out).write();
}

}  // namespace orrery
