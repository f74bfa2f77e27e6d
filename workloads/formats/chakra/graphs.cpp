// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/chakra/graphs.h"

#include <algorithm>
#include <numeric>
#include <ostream>
#include <set>
#include <stdexcept>

#include "workloads/formats/chakra/fields.h"
#include "workloads/formats/kernel_text.h"

namespace orrery {
namespace {

using namespace chakra;

constexpr std::size_t kFlush = std::size_t{1} << 20U;
constexpr std::string_view kGroupsNode = "process_group";

/// A node that says who is in which group alone, as those that are written here.
bool is_groups_node(const ImportedGraph& graph, NodeId id) {
  const ImportedNode& node = graph.nodes[id];
  return node.kind == NodeKind::kMarker && node.waits == 0 && graph.name(id) == kGroupsNode &&
         node.first_next == graph.nodes[id + 1].first_next;
}

bool gathers(TransferKind kind) {
  return kind == TransferKind::kAllGather || kind == TransferKind::kGather;
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

std::vector<ChakraGraphWriter::Group> ChakraGraphWriter::groups_of(
    const ImportedGraph& graph) const {
  std::set<std::uint32_t> used;
  for (const ImportedMessage& message : graph.messages)
    if (message.kind != TransferKind::kSendReceive) used.insert(message.group);
  std::vector<Group> groups;
  groups.reserve(used.size());
  for (const std::uint32_t group : used) groups.emplace_back(name_of(group), members(group));
  return groups;
}

void ChakraGraphWriter::write_groups(std::ostream& out) const {
  std::string text = "{";
  for (std::uint32_t group = 0; group <= run_.groups.size(); ++group) {
    const bool world = group == run_.groups.size();
    text += group > 0 ? ",\n \"" : "\"";
    text += std::to_string(group + 1);
    text += "\": ";
    put_list(text, world ? world_ : members(group));
  }
  out << text << "}\n";
}

/// The file of one rank while it is written.
class ChakraGraphWriter::RankFile {
 public:
  RankFile(const ChakraGraphWriter& writer, int rank, const ImportedGraph& graph, std::ostream& out)
      : writer_(writer), graph_(graph), rank_(rank), out_(out) {}

  std::uint64_t write() {
    std::string metadata;
    put_text(metadata, 1, "0.0.4");
    constexpr unsigned kMetadataAttribute = 2;
    if (writer_.partial_) put_attribute(metadata, "orrery.rank", kInt64, rank_, kMetadataAttribute);
    put_message(metadata);
    put_groups();
    find_earlier();
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (!is_groups_node(graph_, id)) put_node(id);
    out_ << buffer_;
    return nodes_;
  }

 private:
  void put_message(std::string_view message) {
    put_varint(buffer_, message.size());
    buffer_ += message;
    if (buffer_.size() < kFlush) return;
    out_ << buffer_;
    buffer_.clear();
  }

  /// What each node waits for, in the order of the file.
  void find_earlier() {
    first_.assign(graph_.size() + 1, 0);
    for (NodeId id = 0; id < graph_.size(); ++id)
      first_[id + 1] = first_[id] + graph_.nodes[id].waits;
    earlier_.resize(graph_.next.size());
    std::vector<std::uint32_t> at(first_.begin(), first_.end() - 1);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      for (std::uint32_t e = graph_.nodes[id].first_next; e < graph_.nodes[id + 1].first_next; ++e)
        earlier_[at[graph_.next[e]]++] = id;
    }
  }

  void put_groups() {
    const std::vector<Group> groups = writer_.groups_of(graph_);
    if (groups.empty()) return;
    const auto highest = std::max_element(graph_.ids.begin(), graph_.ids.end());
    std::string inputs, node;
    put_number(node, 1, highest == graph_.ids.end() ? 0 : *highest + 1);
    node += begun_node(kGroupsNode, ChakraType::kMetadata);
    put_text(inputs, 1, process_groups_text(groups));
    put_text(node, 8, inputs);
    put_message(node);
    ++nodes_;
  }

  void put_node(NodeId id) {
    const ImportedNode& node = graph_.nodes[id];
    text_.clear();
    if (graph_.ids[id] > 0) put_number(text_, 1, graph_.ids[id]);
    put_text(text_, 2, graph_.name(id));
    std::string packed;
    for (std::uint32_t e = first_[id]; e < first_[id + 1]; ++e)
      put_varint(packed, graph_.ids[earlier_[e]]);
    if (!packed.empty()) put_text(text_, 5, packed);
    if (node.kind <= NodeKind::kKernel) {
      put_work(node);
    } else {
      put_transfer(node);
    }
    const ImportedStream& stream = graph_.streams[node.stream];
    put_attribute(text_, "orrery.stream", stream.name);
    if (!stream.serial) put_attribute(text_, "orrery.side_by_side", kBool, 1);
    put_message(text_);
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
      throw std::logic_error(std::string("Chakra has no collective ") + to_string(message.kind));
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
  std::ostream& out_;
  std::vector<std::uint32_t> first_;  ///< index in earlier_, by node
  std::vector<NodeId> earlier_;
  std::string buffer_, text_;
  std::uint64_t nodes_ = 0;
};

std::uint64_t ChakraGraphWriter::write(int rank, std::ostream& out) const {
  const std::uint32_t graph = run_.graph_of_rank.at(static_cast<std::size_t>(rank));
  if (graph == ImportedRun::kAbsent)
    throw std::out_of_range("rank " + std::to_string(rank) + " has no graph");
  return RankFile(*this, rank, run_.graphs[graph], out).write();
}

}  // namespace orrery
