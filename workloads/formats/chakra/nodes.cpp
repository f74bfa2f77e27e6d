// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/chakra/nodes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <variant>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "sim/graph/kernel_classes.h"
#include "workloads/formats/chakra/names.h"
#include "workloads/formats/kernel_text.h"

namespace orrery {
namespace {

constexpr Picoseconds kPicosecondsPerMicrosecond = 1'000'000;
constexpr int kHighestRankOfTraces = 10'000'000;

/// CollectiveCommType of et_def.proto.
constexpr std::array<TransferKind, 10> kCollectiveTypes = {
    TransferKind::kAllReduce, TransferKind::kReduce,        TransferKind::kAllGather,
    TransferKind::kGather,    TransferKind::kScatter,       TransferKind::kBroadcast,
    TransferKind::kAllToAll,  TransferKind::kReduceScatter, TransferKind::kReduceScatter,
    TransferKind::kBarrier};

/// What the tensors of a list [name, bytes, name, bytes, ...] have together, as STG writes it; -1
/// for another list.
double bytes_of_tensors(const std::vector<std::string_view>& list) {
  if (list.empty() || list.size() % 2 != 0) return -1;
  double bytes = 0;
  for (std::size_t i = 1; i < list.size(); i += 2) {
    const auto one = number_in<double>(list[i]);
    if (!one || !(*one >= 0) || !std::isfinite(*one)) return -1;
    bytes += *one;
  }
  return bytes;
}

using Member = std::variant<bool ChakraNode::*, double ChakraNode::*, std::int64_t ChakraNode::*,
                            std::string_view ChakraNode::*>;
constexpr std::pair<std::string_view, Member> kAttributes[] = {
    {"is_cpu_op", &ChakraNode::on_host},
    {"num_ops", &ChakraNode::flops},
    {"tensor_size", &ChakraNode::bytes},
    {"comm_size", &ChakraNode::comm_bytes},
    {"comm_src", &ChakraNode::source},
    {"comm_dst", &ChakraNode::destination},
    {"comm_tag", &ChakraNode::tag},
    {"pg_name", &ChakraNode::group},
    {"stream", &ChakraNode::stream},
    {"op_schema", &ChakraNode::schema},
    {"rf_id", &ChakraNode::operation},
    {"root_rank", &ChakraNode::root},
    {"orrery.class", &ChakraNode::kernel_class},
    {"orrery.duration_ps", &ChakraNode::duration_ps},
    {"orrery.stream", &ChakraNode::stream_name},
    {"orrery.side_by_side", &ChakraNode::side_by_side},
    {"orrery.rank", &ChakraNode::rank},
    {"orrery.kernel", &ChakraNode::kernel},
    {"orrery.kept", &ChakraNode::kept},
};

void assign(bool& flag, const ChakraValue& value) { flag = value.integer != 0; }
void assign(double& number, const ChakraValue& value) { number = value.number; }
void assign(std::int64_t& integer, const ChakraValue& value) { integer = value.integer; }
void assign(std::string_view& text, const ChakraValue& value) { text = value.text; }

}  // namespace

std::int64_t collective_type(TransferKind kind) {
  const auto* const type = std::find(kCollectiveTypes.begin(), kCollectiveTypes.end(), kind);
  return type == kCollectiveTypes.end() ? -1 : type - kCollectiveTypes.begin();
}

bool gathers(TransferKind kind) {
  return kind == TransferKind::kAllGather || kind == TransferKind::kGather;
}

void ChakraNode::clear() {
  ChakraNode fresh;
  fresh.after.swap(after);  // which keeps its room
  fresh.after.clear();
  *this = std::move(fresh);
}

void ChakraNode::set(std::string_view attribute, const ChakraValue& value) {
  for (const auto& [known, member] : kAttributes)
    if (attribute == known) return std::visit([&](auto of) { assign(this->*of, value); }, member);
  if (attribute == "inputs") {
    read = bytes_of_tensors(value.texts);
  } else if (attribute == "outputs") {
    written = bytes_of_tensors(value.texts);
  } else if (attribute == "comm_type") {
    collective = value.integer;
  } else if (attribute == "involved_dim") {
    dimensions = value.flags;
  }
}

ChakraNodes::ChakraNodes(const std::string& file, const GraphReadOptions& options,
                         Communicators& communicators, GraphBuilder& graph)
    : file_(file),
      options_(options),
      communicators_(communicators),
      graph_(graph),
      operators_(graph) {}

void ChakraNodes::refuse(const ChakraNode& node, std::uint64_t offset,
                         const std::string& what) const {
  refuse_at_byte(file_, offset, fmt::format("node {} '{}' {}", node.id, node.name, what));
}

std::uint16_t ChakraNodes::stream_of(const ChakraNode& node, std::string_view otherwise,
                                     bool serial) {
  const bool told = !node.stream_name.empty();
  const std::string_view name = told ? node.stream_name : otherwise;
  if (const auto known = named_streams_.find(name); known != named_streams_.end())
    return known->second;
  const std::uint16_t stream = graph_.stream(name, told ? !node.side_by_side : serial);
  named_streams_.emplace(name, stream);
  return stream;
}

std::uint16_t ChakraNodes::device_stream(const ChakraNode& node) {
  if (node.stream < 0 || !node.stream_name.empty()) return stream_of(node, "compute");
  const auto [known, is_new] = device_streams_.try_emplace(node.stream, std::uint16_t{0});
  if (is_new) known->second = graph_.stream(fmt::format("stream {}", node.stream));
  return known->second;
}

void ChakraNodes::add(const ChakraNode& node, std::uint64_t offset) {
  offset_ = offset;
  for (const double amount : {node.flops, node.bytes, node.comm_bytes})
    if (!(amount >= 0 && std::isfinite(amount)))
      refuse(node, "has FLOPs or bytes that are no number from 0 on");
  switch (static_cast<ChakraType>(node.type)) {
    case ChakraType::kCompute:
      if (node.on_host) {
        add_work(node, NodeKind::kHost, stream_of(node, "host"));
      } else {
        add_work(node, NodeKind::kKernel, device_stream(node));
      }
      break;
    case ChakraType::kMemoryLoad:
    case ChakraType::kMemoryStore:
      add_work(node, NodeKind::kKernel, stream_of(node, "memory"));
      break;
    case ChakraType::kCollective:
      add_collective(node);
      break;
    case ChakraType::kSend:
    case ChakraType::kReceive:
      add_message(node, static_cast<ChakraType>(node.type) == ChakraType::kSend);
      break;
    default:
      if (node.type != static_cast<std::int64_t>(ChakraType::kMetadata))
        ++unknown_types_[node.type];
      for (const ProcessGroup& group : process_groups(node.in.values))
        communicators_.name(group.name, group.ranks);
      add_work(node, NodeKind::kMarker, stream_of(node, "markers", false));
  }
  for (const std::uint64_t earlier : node.after) graph_.depends(last_, earlier);
}

Picoseconds ChakraNodes::recorded_time(const ChakraNode& node) const {
  if (node.duration_ps >= 0) return static_cast<Picoseconds>(node.duration_ps);
  if (node.duration_us > kMaxTime / kPicosecondsPerMicrosecond)
    refuse(node, "takes more than 106 days");
  return node.duration_us * kPicosecondsPerMicrosecond;
}

void ChakraNodes::add_work(const ChakraNode& node, NodeKind kind, std::uint16_t stream) {
  NodeWork work;
  if (kind != NodeKind::kMarker) {
    work.timed = node.duration_us > 0 || node.duration_ps >= 0;
    work.recorded = recorded_time(node);
  }
  if (kind == NodeKind::kKernel) {
    const auto named = node.kernel_class.empty() ? class_of_name(node.name)
                                                 : kernel_class_named(node.kernel_class);
    work.classified = named.has_value();
    work.communicates = node.kernel_class == kCollectiveWord;
    if (named) work.kind = *named;
    if (!node.kernel.empty()) {
      work.kernel = written_kernel(node, work);
    } else if (node.flops > 0 || node.bytes > 0) {
      work.kernel = kernel_of(node, work);
    }
  }
  last_ = graph_.add(node.id, node.name, kind, stream, work);
  if (node.kept) graph_.keeps(last_);
  if (kind == NodeKind::kKernel) operators_.add(last_, node, work);
}

/// One that was written here, with its shape.
std::uint32_t ChakraNodes::written_kernel(const ChakraNode& node, const NodeWork& work) {
  const auto known = written_kernels_.find({std::string(node.kernel), work.kind});
  if (known != written_kernels_.end()) return known->second;
  std::optional<Kernel> kernel = kernel_of_text(node.kernel);
  if (!kernel) refuse(node, "has an attribute orrery.kernel that is none");
  kernel->name = node.name;
  kernel->kind = work.kind;
  const std::uint32_t number = graph_.kernel(*kernel);
  written_kernels_.emplace(std::pair(std::string(node.kernel), work.kind), number);
  return number;
}

std::uint32_t ChakraNodes::kernel_of(const ChakraNode& node, const NodeWork& work) {
  // Tensors may be told beside tensor_size, which then is their sum or nothing.
  const bool apart = node.read >= 0 && node.written >= 0 &&
                     (node.bytes == 0 || node.bytes == node.read + node.written);
  const double read = apart ? node.read : node.bytes;
  const double written = apart ? node.written : 0;
  // Without a shape a roofline is all that there is, whatever the class; products take epilogues.
  const bool product = work.classified && node.flops > 0 &&
                       (work.kind == KernelClass::kGemm || work.kind == KernelClass::kConvolution);
  const int kind = product ? static_cast<int>(work.kind) : -1;
  const auto [known, is_new] = kernels_.try_emplace({kind, node.flops, read, written}, 0);
  if (is_new) {
    Kernel kernel;
    kernel.name = node.name;
    if (product) kernel.kind = work.kind;
    kernel.matrix_flops = Flops(node.flops);
    kernel.read = Bytes(read);
    kernel.written = Bytes(written);
    known->second = graph_.kernel(kernel);
  }
  return known->second;
}

/// The type of a collective. Converters of PyTorch's traces leave that of broadcasts out.
TransferKind ChakraNodes::kind_of(const ChakraNode& node) {
  if (!node.collective) {
    const auto named = collective_of_name(node.name);
    if (!named) refuse(node, "is a collective without a type (comm_type)");
    if (!options_.repair)
      refuse(node, fmt::format("is a collective without a type (comm_type); --repair takes it for "
                               "the {} of its name",
                               to_string(*named)));
    ++types_of_names_[*named];
    return *named;
  }
  const std::int64_t type = *node.collective;
  if (type < 0 || type >= static_cast<std::int64_t>(kCollectiveTypes.size()))
    refuse(node, fmt::format("is a collective of the unknown type {}", type));
  return kCollectiveTypes[static_cast<std::size_t>(type)];
}

void ChakraNodes::add_collective(const ChakraNode& node) {
  ImportedMessage message;
  message.kind = kind_of(node);
  message.group = node.dimensions.empty() || !node.group.empty()
                      ? group_of(node)
                      : group_of_dimensions(node.dimensions);
  const double ranks = message.group == ImportedMessage::kWorld
                           ? options_.ranks
                           : static_cast<double>(communicators_.groups()[message.group].size());
  if (message.kind != TransferKind::kBarrier)
    message.bytes = Bytes(node.comm_bytes * (gathers(message.kind) ? ranks : 1));
  message.recorded = recorded_time(node);
  if (node.root >= 0 && message.group != ImportedMessage::kWorld) {
    const std::vector<int>& group = communicators_.groups()[message.group];
    const auto at = std::find(group.begin(), group.end(), static_cast<int>(node.root));
    if (at == group.end()) refuse(node, "has a root that is no member of its group");
    message.root = static_cast<int>(at - group.begin());
  } else if (node.root >= 0) {
    message.root = static_cast<int>(std::min<std::int64_t>(node.root, kHighestRankOfTraces));
  }
  const bool placed = node.stream >= 0 || !node.stream_name.empty();
  const std::uint16_t stream = placed ? device_stream(node) : group_stream(node.group);
  last_ = graph_.add(node.id, node.name, NodeKind::kCollective, stream, message);
  operators_.add_tensors(last_, node);
}

std::uint16_t ChakraNodes::group_stream(std::string_view group) {
  const auto known = group_streams_.find(group);
  if (known != group_streams_.end()) return known->second;
  const std::uint16_t stream = graph_.stream(
      group.empty() ? std::string("communication") : fmt::format("communication {}", group));
  group_streams_.emplace(group, stream);
  return stream;
}

std::uint32_t ChakraNodes::group_of(const ChakraNode& node) {
  if (node.group.empty()) return ImportedMessage::kWorld;
  if (const auto group = communicators_.find(node.group)) {
    return communicators_.groups()[*group].empty() ? ImportedMessage::kWorld : *group;
  }
  if (node.group == "0") return ImportedMessage::kWorld;  // as ASTRA-sim takes it
  refuse(node, fmt::format("is in the group '{}': neither a file of groups nor a METADATA node "
                           "before it says who that is",
                           node.group));
}

/// All ranks that differ from this one in the involved dimensions of the network alone, whose sizes
/// are dim0, dim1, ... of the dimensions that were given; the first varies fastest.
std::uint32_t ChakraNodes::group_of_dimensions(const std::vector<bool>& involved) {
  if (std::find(involved.begin(), involved.end(), false) == involved.end())
    return ImportedMessage::kWorld;
  std::vector<int> ranks = {0};
  std::int64_t stride = 1;
  std::int64_t base = options_.rank;
  for (std::size_t d = 0; d < involved.size(); ++d) {
    const std::string name = fmt::format("dim{}", d);
    const auto size = options_.dimensions.find(name);
    if (size == options_.dimensions.end())
      refuse_at_byte(file_, offset_,
                     fmt::format("a collective along some dimensions of a network; "
                                 "graph.dimensions has to say how large they are: {} is missing",
                                 name));
    if (stride * size->second > kHighestRankOfTraces)
      throw config::ConfigError(file_ + ": graph.dimensions have too many ranks");
    if (involved[d]) {
      base -= options_.rank / stride % size->second * stride;
      std::vector<int> more;
      more.reserve(ranks.size() * static_cast<std::size_t>(size->second));
      for (std::int64_t i = 0; i < size->second; ++i)
        for (const int rank : ranks) more.push_back(rank + static_cast<int>(i * stride));
      ranks = std::move(more);
    }
    stride *= size->second;
  }
  for (int& rank : ranks) rank += static_cast<int>(base);
  graph_.is_of_its_rank();
  return communicators_.add(ranks);
}

void ChakraNodes::add_message(const ChakraNode& node, bool sends) {
  const std::int64_t peer = sends ? node.destination : node.source;
  if (peer < 0 || peer > kHighestRankOfTraces)
    refuse(node, sends ? "is a send without a destination (comm_dst)"
                       : "is a receive without a source (comm_src)");
  ImportedMessage message;
  message.kind = TransferKind::kSendReceive;
  message.bytes = Bytes(node.comm_bytes);
  message.peer = static_cast<int>(peer);
  message.tag = node.tag;
  message.recorded = recorded_time(node);
  last_ = graph_.add(node.id, node.name, sends ? NodeKind::kSend : NodeKind::kReceive,
                     stream_of(node, "messages", false), message);
  operators_.add_tensors(last_, node);
}

void ChakraNodes::finish(std::vector<std::string>& notes) {
  operators_.finish(file_, notes);
  for (const auto& [kind, count] : types_of_names_)
    notes.push_back(fmt::format("{}: {} {} without a type (comm_type) taken for {}, as named",
                                file_, count, count == 1 ? "collective" : "collectives",
                                to_string(kind)));
  for (const auto& [type, count] : unknown_types_)
    notes.push_back(fmt::format("{}: {} {} of the unknown type {}, taken as markers without time",
                                file_, count, count == 1 ? "node" : "nodes", type));
}

}  // namespace orrery
