// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/chakra/writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "workloads/formats/chakra/fields.h"
#include "workloads/formats/kernel_text.h"

namespace orrery {
namespace {

using namespace chakra;

std::int64_t type_of(const Transfer& transfer) {
  if (transfer.host || transfer.routing || !transfer.pair_bytes.empty()) return -1;
  return collective_type(transfer.kind);
}

const std::vector<int>* group_with(const Transfer& transfer, int rank) {
  for (const std::vector<int>& group : transfer.groups)
    if (std::find(group.begin(), group.end(), rank) != group.end()) return &group;
  return nullptr;
}

void put_device(std::string& node, StreamId stream) {
  put_attribute(node, "is_cpu_op", kBool, 0);
  put_attribute(node, "stream", kInt64, stream);
}

}  // namespace

ChakraWriter::ChakraWriter(const PricedSteps& steps) : steps_(steps) {
  for (const OperatorGraph& block : steps.program.blocks)
    blocks_.push_back(freeze(block, steps.program.streams.size()));
  role_of_rank_.resize(static_cast<std::size_t>(steps.program.ranks));
  for (const Role& role : steps.program.roles)
    for (const int rank : role.ranks) role_of_rank_.at(static_cast<std::size_t>(rank)) = &role;
  for (const Transfer& transfer : steps.program.transfers)
    if (type_of(transfer) >= 0)
      for (const std::vector<int>& group : transfer.groups) groups_.try_emplace(group, 0);
  keeps_results_ =
      std::any_of(steps.program.tensors.begin(), steps.program.tensors.end(),
                  [](const Tensor& tensor) { return tensor.role == TensorRole::kActivation; });
  std::size_t number = 0;
  for (auto& [ranks, of_group] : groups_) of_group = ++number;
}

std::string ChakraWriter::name_of(const std::vector<int>& group) const {
  return std::to_string(groups_.at(group));
}

void ChakraWriter::write_groups(std::ostream& out) const {
  std::vector<Group> groups;
  for (const auto& [ranks, number] : groups_) groups.emplace_back(std::to_string(number), ranks);
  write_group_file(out, groups);
}

ChakraWriter::Piece ChakraWriter::kernel_piece(const Operator& op) const {
  const Kernel& kernel = steps_.program.kernels[op.work];
  const KernelCost& cost = steps_.costs.kernels[op.work];
  std::string node = begun_node(op.name, ChakraType::kCompute);
  put_device(node, op.stream);
  put_amount(node, "num_ops", kInt64, (kernel.matrix_flops + kernel.vector_flops).base());
  put_amount(node, "tensor_size", kUint64, (kernel.read + kernel.written).base());
  put_attribute(node, "orrery.class", to_string(kernel.kind));
  put_attribute(node, "orrery.kernel", kernel_text(kernel));
  if (keeps_results_) put_attribute(node, "orrery.kept", kBool, 1);
  return {{node}, std::max(steps_.costs.enqueue, cost.issue), cost.host_waits, op.work};
}

ChakraWriter::Piece ChakraWriter::transfer_piece(const Operator& op, int rank) const {
  const Transfer& transfer = steps_.program.transfers[op.work];
  Piece piece;
  if (transfer.kind == TransferKind::kSendReceive && !transfer.host) {
    for (const std::vector<int>& pair : transfer.groups) {
      if (pair.size() != 2 || (pair[0] != rank && pair[1] != rank)) continue;
      const bool sends = pair[0] == rank;
      std::string node = begun_node(op.name, sends ? ChakraType::kSend : ChakraType::kReceive);
      put_attribute(node, "is_cpu_op", kBool, 0);
      put_amount(node, "comm_size", kInt64, transfer.bytes.base());
      put_attribute(node, "comm_src", kInt32, pair[0]);
      put_attribute(node, "comm_dst", kInt32, pair[1]);
      put_attribute(node, "comm_tag", kInt32, op.work);
      piece.messages.push_back(std::move(node));
    }
    return piece;
  }
  const std::int64_t type = type_of(transfer);
  const std::vector<int>* group = group_with(transfer, rank);
  if (type < 0 || group == nullptr) {
    std::string node = begun_node(op.name, ChakraType::kCompute);
    put_duration(node, steps_.alone.at(op.work));
    put_device(node, op.stream);
    piece.messages.push_back(std::move(node));
    return piece;
  }
  std::string node = begun_node(op.name, ChakraType::kCollective);
  put_device(node, op.stream);
  put_attribute(node, "comm_type", kInt64, type);
  const double parts = gathers(transfer.kind) ? static_cast<double>(group->size()) : 1;
  put_amount(node, "comm_size", kInt64, transfer.bytes.base() / parts);
  put_attribute(node, "pg_name", name_of(*group));
  piece.messages.push_back(std::move(node));
  return piece;
}

std::vector<ChakraWriter::Piece> ChakraWriter::pieces_of(BlockId block, int rank) const {
  const OperatorGraph& graph = steps_.program.blocks[block];
  std::vector<Piece> pieces;
  pieces.reserve(blocks_[block].operators.size());
  for (const FrozenOperator& frozen : blocks_[block].operators) {
    const Operator& op = graph[frozen.id];
    pieces.push_back(op.kind == OperatorKind::kCompute ? kernel_piece(op)
                                                       : transfer_piece(op, rank));
  }
  return pieces;
}

/// A node with the communicators of a rank.
std::string ChakraWriter::groups_of(const Role& role, int rank) const {
  std::set<BlockId> called(role.calls.begin(), role.calls.end());
  std::set<std::vector<int>> groups;
  for (const BlockId block : called) {
    const OperatorGraph& graph = steps_.program.blocks[block];
    for (OperatorId id = 0; id < graph.size(); ++id) {
      if (graph[id].kind == OperatorKind::kCompute) continue;
      const Transfer& transfer = steps_.program.transfers[graph[id].work];
      const std::vector<int>* group = group_with(transfer, rank);
      if (group != nullptr && type_of(transfer) >= 0) groups.insert(*group);
    }
  }
  std::vector<Group> named;
  named.reserve(groups.size());
  for (const std::vector<int>& group : groups) named.emplace_back(name_of(group), group);
  return groups_node(named);
}

/// The file of one rank while it is written.
class ChakraWriter::RankFile {
 public:
  RankFile(const ChakraWriter& writer, int rank, std::ostream& out)
      : writer_(writer),
        rank_(rank),
        role_(*writer.role_of_rank_.at(static_cast<std::size_t>(rank))),
        file_(out),
        last_(writer.steps_.program.streams.size()),
        pieces_(writer.blocks_.size()),
        runs_(writer.steps_.program.kernels.size()) {}

  std::uint64_t write() {
    put_node(writer_.groups_of(role_, rank_), {});
    for (const BlockId block : role_.calls) call(block);
    file_.flush();
    return next_;
  }

 private:
  std::uint64_t put_node(const std::string& rest, const std::vector<std::uint64_t>& after) {
    scratch_.clear();
    if (next_ > 0) put_number(scratch_, 1, next_);
    if (!after.empty()) {
      packed_.clear();
      for (const std::uint64_t earlier : after) put_varint(packed_, earlier);
      put_text(scratch_, 5, packed_);
    }
    scratch_ += rest;
    file_.put(scratch_);
    return next_++;
  }

  void call(BlockId block) {
    if (pieces_[block].empty()) pieces_[block] = writer_.pieces_of(block, rank_);
    const FrozenBlock& frozen = writer_.blocks_[block];
    // Identifiers follow from the place: those of a call are known before they are written.
    std::vector<std::uint64_t> first(frozen.operators.size());
    std::uint64_t id = next_;
    for (std::size_t i = 0; i < frozen.operators.size(); ++i) {
      const Piece& piece = pieces_[block][i];
      id += piece.issue > 0 ? 1 : 0;
      first[i] = id;
      id += piece.messages.size();
    }
    for (std::size_t stream = 0; stream + 1 < frozen.stream_begin.size(); ++stream) {
      for (std::uint32_t i = frozen.stream_begin[stream]; i < frozen.stream_begin[stream + 1]; ++i)
        put_operator(frozen, pieces_[block], first, stream, i);
    }
  }

  void put_operator(const FrozenBlock& frozen, const std::vector<Piece>& pieces,
                    const std::vector<std::uint64_t>& first, std::size_t stream, std::uint32_t i) {
    const FrozenOperator& op = frozen.operators[i];
    std::vector<std::uint64_t> after = last_[stream];
    for (std::uint32_t w = op.first_wait; w < op.first_wait + op.waits; ++w) {
      const StreamWait& wait = frozen.waits[w];
      const std::uint32_t earlier = frozen.stream_begin[wait.stream] + wait.count - 1;
      for (std::size_t p = 0; p < pieces[earlier].messages.size(); ++p)
        after.push_back(first[earlier] + p);
    }
    if (pieces[i].issue > 0) after.push_back(put_issue(pieces[i].issue));
    if (pieces[i].messages.empty()) return;
    last_[stream].clear();
    for (const std::string& message : pieces[i].messages) {
      if (pieces[i].kernel) {
        timed_ = message;
        put_duration(timed_, next_run(*pieces[i].kernel));
        last_[stream].push_back(put_node(timed_, after));
      } else {
        last_[stream].push_back(put_node(message, after));
      }
    }
    if (pieces[i].host_waits) host_.insert(host_.end(), last_[stream].begin(), last_[stream].end());
  }

  /// Kernels of one identifier run on one stream, in the order in which they are written.
  Picoseconds next_run(KernelId kernel) {
    const PricedSteps& steps = writer_.steps_;
    const auto role = static_cast<std::size_t>(&role_ - steps.program.roles.data());
    if (role < steps.runs.size() && kernel < steps.runs[role].size() &&
        runs_[kernel] < steps.runs[role][kernel].size())
      return steps.runs[role][kernel][runs_[kernel]++];
    return steps.costs.kernels[kernel].duration;
  }

  /// The host issues kernels one after the other.
  std::uint64_t put_issue(Picoseconds time) {
    std::string node = begun_node("launch", ChakraType::kCompute);
    put_duration(node, time);
    put_attribute(node, "is_cpu_op", kBool, 1);
    const std::uint64_t issued = put_node(node, host_);
    host_ = {issued};
    return issued;
  }

  const ChakraWriter& writer_;
  int rank_;
  const Role& role_;
  MessageFile file_;
  std::vector<std::vector<std::uint64_t>> last_;  ///< nodes that streams have come to
  std::vector<std::uint64_t> host_;               ///< what the host waits for
  std::vector<std::vector<Piece>> pieces_;        ///< nodes by block, of blocks called so far
  std::vector<std::size_t> runs_;                 ///< runs so far, by kernel
  std::string scratch_, packed_, timed_;
  std::uint64_t next_ = 0;
};

std::uint64_t ChakraWriter::write(int rank, std::ostream& out) const {
  if (role_of_rank_.at(static_cast<std::size_t>(rank)) == nullptr)
    throw std::out_of_range(fmt::format("no role stands for rank {}", rank));
  return RankFile(*this, rank, out).write();
}

}  // namespace orrery
