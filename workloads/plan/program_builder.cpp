// SPDX-License-Identifier: Apache-2.0
#include "workloads/plan/program_builder.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "sim/graph/executions.h"

namespace orrery {
namespace {

std::string transfer_name(const std::string& purpose, TransferKind kind, int stage, Bytes bytes) {
  return purpose + " " + to_string(kind) + " stage " + std::to_string(stage) + " " +
         std::to_string(static_cast<std::int64_t>(bytes.base())) + " B";
}

/// Along which axis the collectives of a scope run, which is what breakdowns call them, and where.
struct ScopeParts {
  const char* axis;
  StreamId stream;
};

ScopeParts parts_of(Scope scope) {
  switch (scope) {
    case Scope::kTensor:
      return {"tp", kTensorStream};
    case Scope::kExpert:
      return {"ep", kExpertStream};
    case Scope::kExpertTensor:
      return {"etp", kExpertTensorStream};
    case Scope::kContext:
      return {"cp", kContextStream};
    case Scope::kContextHeads:
      return {"cp a2a", kContextStream};
    case Scope::kContextRings:
      return {"cp p2p", kContextStream};
    case Scope::kHostOut:
      return {"host out", kHostStream};
    case Scope::kHostIn:
      return {"host in", kHostStream};
    case Scope::kDecodeContext:
      break;
  }
  return {"dcp", kDecodeContextStream};
}

Mesh::Groups alone(const std::vector<int>& ranks) {
  Mesh::Groups groups;
  for (const int rank : ranks) groups.push_back({rank});
  return groups;
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
  for (const KernelId id : same_name) {
    if (program_.kernels[id] == kernel) return id;
  }
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
  Transfer transfer;
  const std::string axis = parts.axis;
  transfer.purpose = axis.substr(0, axis.find(' '));
  transfer.name = transfer_name(axis, collective.kind, stage, collective.bytes);
  transfer.kind = collective.kind;
  transfer.bytes = collective.bytes;
  transfer.routing = collective.routing;
  if (is_host_copy(collective.scope))
    transfer.host = HostCopy{HostEnd::kHost, collective.scope == Scope::kHostOut};
  return once(std::move(transfer), [&] {
    if (is_host_copy(collective.scope)) return alone(mesh_.stage(stage));
    const Mesh::Groups groups = mesh_.groups({parts.axis}, stage);
    return collective.kind == TransferKind::kSendReceive ? ring_neighbours(groups) : groups;
  });
}

TransferId ProgramBuilder::message(const std::string& direction, int from, int to, Bytes bytes) {
  Transfer transfer;
  transfer.purpose = "pp";
  transfer.name = direction + " " + std::to_string(from) + "->" + std::to_string(to);
  transfer.kind = TransferKind::kSendReceive;
  transfer.bytes = bytes;
  transfer.participants = 2;
  return once(std::move(transfer), [&] { return mesh_.pairs(from, to); });
}

TransferId ProgramBuilder::transfer(Transfer transfer) {
  std::vector<TransferId>& same_name = transfers_[transfer.name];
  for (const TransferId id : same_name) {
    if (program_.transfers[id] == transfer) return id;
  }
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
    Role role;
    role.name = "pp " + std::to_string(stage);
    role.calls = std::move(calls[stage]);
    role.ranks = mesh_.stage(static_cast<int>(stage));
    program_.roles.push_back(std::move(role));
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
        std::pair(&step.frees, What::kFrees)}) {
    for (const TensorId id : *told) {
      Tensor tensor = steps.tensors()[id];
      tensor.name.insert(0, prefix);
      tensors_.push_back({what, program_.tensor(std::move(tensor)), op});
    }
  }
}

OperatorId BlockBuilder::add_step(std::string_view prefix, const StepList& steps,
                                  const Step& step) {
  Operator op;
  op.name = std::string(prefix) + step.part + step.name();
  if (const Kernel* kernel = step.kernel()) {
    op.work = program_.kernel(*kernel);
  } else {
    op.kind = OperatorKind::kCollective;
    op.category = Category::kCommunication;
    op.stream = parts_of(step.collective()->scope).stream;
    op.work = program_.collective(*step.collective(), stage_);
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
    for (const std::size_t earlier : step.after) {
      graph_.depends(id, first + static_cast<OperatorId>(earlier));
    }
    if (step.after.empty() && entry) graph_.depends(id, *entry);
    if (id == first) {
      for (const OperatorId earlier : ahead_) graph_.depends(id, earlier);
      ahead_.clear();
    }
  }
  if (steps.cursor() != StepList::kStart) {
    cursor_ = first + static_cast<OperatorId>(steps.cursor());
  }
}

OperatorId BlockBuilder::append_beside(std::string_view prefix, const StepList& steps) {
  const std::optional<OperatorId> here = cursor_;
  std::vector<OperatorId> awaited = std::exchange(ahead_, {});
  append(prefix, steps);
  cursor_ = here;
  ahead_ = std::move(awaited);
  return static_cast<OperatorId>(graph_.size() - 1);
}

namespace {

bool is_exchange(const Step& step) {
  return step.collective() != nullptr && step.collective()->scope == Scope::kExpert;
}

bool exchanges_tokens(const BlockBuilder::Lane& lane) {
  const std::vector<Step>& steps = lane.steps.steps();
  return std::any_of(steps.begin(), steps.end(), is_exchange);
}

}  // namespace

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

void BlockBuilder::collective(Transfer transfer, Stream stream) {
  Operator op;
  op.name = transfer.name;
  op.kind = OperatorKind::kCollective;
  op.category = Category::kCommunication;
  op.stream = stream;
  op.work = program_.transfer(std::move(transfer));
  cursor_ = add(op);
}

/// Without dependencies.
OperatorId BlockBuilder::add_collective(Transfer transfer, Stream stream) {
  Operator op;
  op.name = transfer.name;
  op.kind = OperatorKind::kCollective;
  op.category = Category::kCommunication;
  op.stream = stream;
  op.work = program_.transfer(std::move(transfer));
  return graph_.add(op);
}

OperatorId BlockBuilder::beside(Transfer transfer, Stream stream) {
  const auto before = static_cast<OperatorId>(graph_.size());
  const OperatorId id = add_collective(std::move(transfer), stream);
  if (cursor_) graph_.depends(id, *cursor_);
  // Kernels run in issue order: behind the last one all others have run.
  if (before > 0 && (!cursor_ || *cursor_ != before - 1)) graph_.depends(id, before - 1);
  return id;
}

OperatorId BlockBuilder::ahead(Transfer transfer, Stream stream) {
  return add_collective(std::move(transfer), stream);
}

void BlockBuilder::receive(TransferId message, Stream stream) {
  Operator op;
  op.name = "receive";
  op.kind = OperatorKind::kReceive;
  op.category = Category::kCommunication;
  op.stream = stream;
  op.work = message;
  cursor_ = add(op);
}

namespace {

Operator sending(TransferId message, Stream stream) {
  Operator op;
  op.name = "send";
  op.kind = OperatorKind::kSend;
  op.category = Category::kCommunication;
  op.stream = stream;
  op.work = message;
  return op;
}

}  // namespace

void BlockBuilder::send(TransferId message, Stream stream) { add(sending(message, stream)); }

void BlockBuilder::send_and_wait(TransferId message) {
  cursor_ = add(sending(message, kComputeStream));
}

BlockId BlockBuilder::finish(std::string name) {
  return program_.block(std::move(name), std::move(graph_), std::move(tensors_));
}

}  // namespace orrery
