// SPDX-License-Identifier: Apache-2.0
#include "workloads/plan/program_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "sim/graph/executions.h"

namespace orrery {
namespace {

std::string transfer_name(const std::string& purpose, TransferKind kind, int stage, Bytes bytes) {
  return fmt::format("{} {} stage {} {} B", purpose, to_string(kind), stage,
                     static_cast<std::int64_t>(bytes.base()));
}

/// Along which axis the collectives of a scope run, which is what breakdowns call them, and where.
struct ScopeParts {
  const char* axis;
  StreamId stream;
};

ScopeParts parts_of(Scope scope) {
  static const std::map<Scope, ScopeParts> kParts = {
      {Scope::kTensor, {"tp", kTensorStream}},
      {Scope::kExpert, {"ep", kExpertStream}},
      {Scope::kExpertTensor, {"etp", kExpertTensorStream}},
      {Scope::kContext, {"cp", kContextStream}},
      {Scope::kContextHeads, {"cp a2a", kContextStream}},
      {Scope::kContextRings, {"cp p2p", kContextStream}},
      {Scope::kHostOut, {"host out", kHostStream}},
      {Scope::kHostIn, {"host in", kHostStream}},
      {Scope::kDecodeContext, {"dcp", kDecodeContextStream}},
  };
  return kParts.at(scope);
}

bool is_host_copy(Scope scope) { return scope == Scope::kHostOut || scope == Scope::kHostIn; }

/// Messages from each rank to the next one of its group, from the last to the first.
Mesh::Groups ring_neighbours(const Mesh::Groups& groups) {
  Mesh::Groups pairs;
  for (const std::vector<int>& group : groups)
    for (std::size_t i = 0; i < group.size(); ++i)
      pairs.push_back({group[i], group[(i + 1) % group.size()]});
  return pairs;
}

bool is_exchange(const Step& step) {
  return step.collective() != nullptr && step.collective()->scope == Scope::kExpert;
}

bool exchanges_tokens(const BlockBuilder::Lane& lane) {
  const std::vector<Step>& steps = lane.steps.steps();
  return std::ranges::any_of(steps, is_exchange);
}

Operator communication(std::string name, OperatorKind kind, StreamId stream, TransferId transfer) {
  return {std::move(name), kind, Category::kCommunication, stream, transfer};
}

}  // namespace

ProgramBuilder::ProgramBuilder(const ParallelConfig& parallel, bool both_ways, bool host_updates)
    : mesh_(parallel) {
  program_.ranks = mesh_.ranks();
  program_.streams = {"compute",
                      "tp",
                      "ep",
                      "dp",
                      "pp send forward",
                      "pp receive forward",
                      "pp send backward",
                      "pp receive backward",
                      "etp",
                      "cp",
                      "dcp",
                      "host"};
  if (!both_ways && !host_updates) return;
  for (const char* name : {"pp send forward down", "pp receive forward down",
                           "pp send backward down", "pp receive backward down"})
    program_.streams.emplace_back(name);
  if (!host_updates) return;
  program_.streams.emplace_back("host update");
  program_.streams.emplace_back("host return");
}

KernelId ProgramBuilder::kernel(const Kernel& kernel) {
  std::vector<KernelId>& same_name = kernels_[kernel.name];
  for (const KernelId id : same_name)
    if (program_.kernels[id] == kernel) return id;
  same_name.push_back(static_cast<KernelId>(program_.kernels.size()));
  program_.kernels.push_back(kernel);
  return same_name.back();
}

/// The transfer of a name from which its groups follow; they are listed where it is new.
template <class Groups>
TransferId ProgramBuilder::once(Transfer transfer, const Groups& groups) {
  std::vector<TransferId>& same_name = named_groups_[transfer.name];
  for (const TransferId id : same_name) {
    const Transfer& known = program_.transfers[id];
    if (known.kind == transfer.kind && known.bytes == transfer.bytes &&
        known.routing == transfer.routing)
      return id;
  }
  transfer.groups = groups();
  groups_listed_ += transfer.groups.size();
  same_name.push_back(this->transfer(std::move(transfer)));
  return same_name.back();
}

TransferId ProgramBuilder::collective(const LayerCollective& collective, int stage) {
  const ScopeParts parts = parts_of(collective.scope);
  const std::string axis = parts.axis;
  Transfer transfer{.name = transfer_name(axis, collective.kind, stage, collective.bytes),
                    .kind = collective.kind,
                    .bytes = collective.bytes,
                    .groups = {},
                    .purpose = axis.substr(0, axis.find(' ')),
                    .routing = collective.routing};
  if (is_host_copy(collective.scope))
    transfer.host = HostCopy{HostEnd::kHost, collective.scope == Scope::kHostOut};
  return once(std::move(transfer), [&] {
    if (is_host_copy(collective.scope)) return runs_of(Mesh::Groups{mesh_.stage(stage)}, 1);
    const Mesh::Groups groups = mesh_.groups({parts.axis}, stage);
    return collective.kind == TransferKind::kSendReceive ? ring_neighbours(groups) : groups;
  });
}

TransferId ProgramBuilder::message(const std::string& direction, int from, int to, Bytes bytes) {
  Transfer transfer{.name = fmt::format("{} {}->{}", direction, from, to),
                    .kind = TransferKind::kSendReceive,
                    .bytes = bytes,
                    .groups = {},
                    .participants = 2,
                    .purpose = "pp"};
  return once(std::move(transfer), [&] { return mesh_.pairs(from, to); });
}

TransferId ProgramBuilder::transfer(Transfer transfer) {
  std::vector<TransferId>& same_name = transfers_[transfer.name];
  for (const TransferId id : same_name)
    if (program_.transfers[id] == transfer) return id;
  same_name.push_back(static_cast<TransferId>(program_.transfers.size()));
  program_.transfers.push_back(std::move(transfer));
  return same_name.back();
}

TensorId ProgramBuilder::tensor(Tensor tensor) {
  const auto [entry, added] =
      tensors_.emplace(tensor.name, static_cast<TensorId>(program_.tensors.size()));
  if (added) program_.tensors.push_back(std::move(tensor));
  return entry->second;
}

BlockId ProgramBuilder::block(std::string name, OperatorGraph graph,
                              std::vector<TensorEvent> tensors) {
  program_.blocks.push_back(std::move(graph));
  program_.tensor_events.push_back(std::move(tensors));
  program_.block_names.push_back(std::move(name));
  return static_cast<BlockId>(program_.blocks.size() - 1);
}

Program ProgramBuilder::finish(std::vector<std::vector<BlockId>> calls) {
  for (std::size_t stage = 0; stage < calls.size(); ++stage) {
    Role& role = program_.roles.emplace_back();
    role.name = "pp " + std::to_string(stage);
    role.calls = std::move(calls[stage]);
    role.ranks = mesh_.stage(static_cast<int>(stage));
  }
  if (program_.tensors.empty()) program_.tensor_events.clear();
  set_reuse(program_);
  return std::move(program_);
}

OperatorId BlockBuilder::add(const Operator& op) {
  const OperatorId id = graph_.add(op);
  if (cursor_) graph_.depends(id, *cursor_);
  for (const OperatorId earlier : ahead_) graph_.depends(id, earlier);
  ahead_.clear();
  return id;
}

void BlockBuilder::add_tensors(std::string_view prefix, const StepList& steps, const Step& step,
                               OperatorId op) {
  using What = TensorEvent::What;
  for (const auto& [told, what] :
       {std::pair(&step.makes, What::kMakes), std::pair(&step.uses, What::kUses),
        std::pair(&step.frees, What::kFrees)})
    for (const TensorId id : *told) {
      Tensor tensor = steps.tensors()[id];
      tensor.name.insert(0, prefix);
      tensors_.push_back({what, program_.tensor(std::move(tensor)), op});
    }
}

OperatorId BlockBuilder::add_step(std::string_view prefix, const StepList& steps,
                                  const Step& step) {
  Operator op;
  op.name = std::string(prefix) + step.part + step.name();
  if (const Kernel* kernel = step.kernel()) {
    op.work = program_.kernel(*kernel);
  } else {
    const LayerCollective& collective = *step.collective();
    op = communication(std::move(op.name), OperatorKind::kCollective,
                       parts_of(collective.scope).stream, program_.collective(collective, stage_));
  }
  const OperatorId id = graph_.add(op);
  add_tensors(prefix, steps, step, id);
  return id;
}

void BlockBuilder::append(std::string_view prefix, const StepList& steps) {
  const std::optional<OperatorId> entry = cursor_;
  const auto first = static_cast<OperatorId>(graph_.size());
  for (const Step& step : steps.steps()) {
    const OperatorId id = add_step(prefix, steps, step);
    for (const std::size_t earlier : step.after)
      graph_.depends(id, first + static_cast<OperatorId>(earlier));
    if (step.after.empty() && entry) graph_.depends(id, *entry);
    if (id == first) {
      for (const OperatorId earlier : ahead_) graph_.depends(id, earlier);
      ahead_.clear();
    }
  }
  if (steps.cursor() != StepList::kStart) cursor_ = first + static_cast<OperatorId>(steps.cursor());
}

OperatorId BlockBuilder::append_beside(std::string_view prefix, const StepList& steps) {
  const std::optional<OperatorId> here = cursor_;
  std::vector<OperatorId> awaited = std::exchange(ahead_, {});
  append(prefix, steps);
  cursor_ = here;
  ahead_ = std::move(awaited);
  return static_cast<OperatorId>(graph_.size() - 1);
}

void BlockBuilder::append_side_by_side(std::array<Lane, 2>& lanes) {
  const bool exchanges = exchanges_tokens(lanes[0]) || exchanges_tokens(lanes[1]);
  std::array<std::vector<OperatorId>, 2> ids;  // operators of the steps that are there
  const auto done = [&](std::size_t i) {
    return ids.at(i).size() == lanes.at(i).steps.steps().size();
  };
  // Gradients of weights that nothing waits for fill in behind the collective.
  const auto fills = [&](std::size_t i) {
    return !done(i) && lanes.at(i).steps.steps()[ids.at(i).size()].for_weights;
  };
  while (!done(0) || !done(1)) {
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      for (bool moved = false; (!moved && !done(i)) || fills(i);) {
        const Lane& lane = lanes.at(i);
        const Step& step = lane.steps.steps()[ids.at(i).size()];
        const OperatorId id = add_step("", lane.steps, step);
        for (const std::size_t earlier : step.after) graph_.depends(id, ids.at(i)[earlier]);
        if (step.after.empty() && lane.cursor) graph_.depends(id, *lane.cursor);
        ids.at(i).push_back(id);
        moved = moved || (exchanges ? is_exchange(step) : step.collective() != nullptr);
      }
    }
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const std::size_t end = lanes.at(i).steps.cursor();
    if (end != StepList::kStart) lanes.at(i).cursor = ids.at(i)[end];
  }
}

void BlockBuilder::kernel(const Kernel& kernel, Category category) {
  Operator op;
  op.name = kernel.name;
  op.category = category;
  op.work = program_.kernel(kernel);
  cursor_ = add(op);
}

Operator BlockBuilder::operator_of(Transfer collective, Stream stream) {
  return {collective.name, OperatorKind::kCollective, Category::kCommunication, stream,
          program_.transfer(std::move(collective))};
}

void BlockBuilder::collective(Transfer transfer, Stream stream) {
  cursor_ = add(operator_of(std::move(transfer), stream));
}

OperatorId BlockBuilder::beside(Transfer transfer, Stream stream) {
  const auto before = static_cast<OperatorId>(graph_.size());
  const OperatorId id = ahead(std::move(transfer), stream);
  if (cursor_) graph_.depends(id, *cursor_);
  // Kernels run in issue order: behind the last one all others have run.
  if (before > 0 && (!cursor_ || *cursor_ != before - 1)) graph_.depends(id, before - 1);
  return id;
}

OperatorId BlockBuilder::ahead(Transfer transfer, Stream stream) {
  return graph_.add(operator_of(std::move(transfer), stream));
}

void BlockBuilder::receive(TransferId message, Stream stream) {
  cursor_ = add(communication("receive", OperatorKind::kReceive, stream, message));
}

OperatorId BlockBuilder::send(TransferId message, Stream stream) {
  return add(communication("send", OperatorKind::kSend, stream, message));
}

BlockId BlockBuilder::finish(std::string name) {
  return program_.block(std::move(name), std::move(graph_), std::move(tensors_));
}

}  // namespace orrery
