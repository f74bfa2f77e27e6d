// SPDX-License-Identifier: Apache-2.0
// Where the matrices of experts are split over etp ranks, each of these works on the tokens of all
// of them, as in Megatron-Core (core/transformer/moe/token_dispatcher.py): with expert parallelism
// the rows that have arrived are gathered over etp, and the results reduced and scattered before
// they are sent back (alltoall dispatcher); without it the tokens are gathered before they are
// copied to the rows of their experts, and reduced once the copies are added up (allgather
// dispatcher, which with expert parallelism too gathers the tokens of all ranks).
#include "workloads/layers/experts/token_dispatch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/parts/expert_rows.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// Decoding sends each copy straight, as kernels for few tokens do; everything else sends a token
/// once to a rank.
ExpertRouting routing_of(const LayerTask& task) {
  const MoeConfig& moe = task.model.moe;
  const bool decode = task.work.batch.phase == Phase::kDecode;
  const std::optional<HeaviestRank>& heaviest = task.work.split.heaviest;
  const bool in_order = !heaviest || heaviest->in_order;
  return {.experts = static_cast<int>(heaviest ? heaviest->placed : moe.experts),
          .top_k = static_cast<int>(moe.experts_per_token),
          .groups = in_order ? static_cast<int>(moe.groups) : 0,
          .top_groups = in_order ? static_cast<int>(moe.top_groups) : 0,
          .mode = decode ? ExpertRouting::Mode::kLowLatency : ExpertRouting::Mode::kNormal,
          .skew = heaviest ? heaviest->skew : 1,
          .hook = decode && task.work.takes_turns};
}

void exchange(StepList& steps, const std::string& name, TransferKind kind, const LayerTask& task,
              Precision precision) {
  if (task.work.split.ep == 1 || all_reduces(task)) return;
  LayerCollective collective;
  collective.name = name;
  collective.kind = kind;
  collective.scope = Scope::kExpert;
  collective.bytes = token_bytes(precision, task.model.expert_columns()) * real(sent_rows(task));
  collective.routing = routing_of(task);
  steps.then(collective);
}

/// Whether kernels of this rank put its rows on the way and fetch what has come, and hold no SM
/// between (DeepEP's return_recv_hook).
bool sends_and_fetches(const LayerTask& task) {
  return task.work.takes_turns && task.work.batch.phase == Phase::kDecode &&
         task.work.split.ep > 1 && !all_reduces(task);
}

// What DeepEP's low-latency kernels reach of the rate of a copy of the same rows while they hold
// the SMs: they work row by row, a warp posts each one's message, and flags and counts are polled.
// By the times that its test prints for 128 tokens to 8 experts, hidden 7168 (Hopper): 36 us for
// sending tokens, 40 us for sending results (deepseek-ai/DeepEP pull request 425); sending and
// receiving tokens 60 us together (SGLang, lmsys.org/blog/2025-05-05-large-scale-ep). Adding
// received results takes as long as it would elsewhere: 10 us. Estimates on other hardware.
constexpr double kSendRate = 0.1, kReceiveRate = 0.25, kResultRate = 0.3;

/// Rows of experts from one buffer to another, as a kernel of its own.
Kernel copy_rows(const std::string& name, const LayerTask& task, double bytes, double rate) {
  Kernel kernel = stream(name, KernelClass::kElementwise, expert_rows(task), task.model.hidden,
                         {bytes, bytes, 0});
  kernel.rate = rate;
  return kernel;
}

/// Rows of experts out of tokens, for the transfer that follows.
void send_tokens(StepList& steps, const LayerTask& task, double payload) {
  next_turn(steps, task);
  Kernel kernel = permute_tokens(permuted_tokens(task), task.model.expert_columns(),
                                 copies_of(task), task.bytes(), payload);
  if (sends_and_fetches(task)) {
    kernel.name = "dispatch send";
    kernel.rate = kSendRate;
  }
  steps.then(std::move(kernel));
}

/// Rows that the ranks which share each expert's matrices have together.
std::int64_t shared_rows(const LayerTask& task) {
  return gathers_tokens(task) ? permuted_tokens(task) : expert_rows(task);
}

void gather(StepList& steps, const std::string& name, const LayerTask& task, Precision precision) {
  steps.then(LayerCollective{
      name + " all-gather", TransferKind::kAllGather, Scope::kExpertTensor,
      token_bytes(precision, task.model.expert_columns()) * real(shared_rows(task))});
}

void reduce(StepList& steps, const std::string& name, const LayerTask& task) {
  const double element = task.bytes();
  steps.then(
      LayerCollective{name + " reduce-scatter", TransferKind::kReduceScatter, Scope::kExpertTensor,
                      Bytes(real(shared_rows(task) * task.model.expert_columns()) * element)});
}

/// All copies, each to the rank of its expert (NCCL).
void all_to_all(StepList& steps, const std::string& name, const LayerTask& task,
                Precision precision) {
  if (task.work.split.ep == 1) return;
  const double rows = real(sent_rows(task)) * skew_of(task);
  steps.then(LayerCollective{name, TransferKind::kAllToAll, Scope::kExpert,
                             token_bytes(precision, task.model.expert_columns()) * rows});
}

TokenDispatcher dispatcher_of(const LayerTask& task) {
  if (task.work.trains()) return expert_software(task).dispatcher.value;
  return sends_tokens_once(task) ? TokenDispatcher::kFlex : TokenDispatcher::kExchange;
}

/// Whether rows are made where tokens have come, not where they are sent.
bool permutes_behind(const LayerTask& task) {
  return dispatcher_of(task) == TokenDispatcher::kFlex ||
         dispatcher_of(task) == TokenDispatcher::kAllGather;
}

// The allgather dispatcher (Megatron-Core 2025, transformer/moe/token_dispatcher.py:
// MoEAllGatherTokenDispatcher).

/// Tokens of all ranks that share the experts.
std::int64_t gathered_tokens(const LayerTask& task) {
  return permuted_tokens(task) * task.work.split.ep *
         (gathers_rows(task) ? task.work.split.etp : 1);
}

/// @param bytes of a token
void gather_tokens(StepList& steps, const std::string& name, const LayerTask& task, double bytes) {
  const double mine = bytes * real(permuted_tokens(task));
  if (gathers_rows(task))
    steps.then(LayerCollective{name + " all-gather over tensors", TransferKind::kAllGather,
                               Scope::kExpertTensor, Bytes(mine * task.work.split.etp)});
  if (task.work.split.ep > 1)
    steps.then(LayerCollective{name + " all-gather", TransferKind::kAllGather, Scope::kExpert,
                               Bytes(bytes * real(gathered_tokens(task)))});
}

void scatter_tokens(StepList& steps, const std::string& name, const LayerTask& task, double bytes) {
  if (task.work.split.ep > 1)
    steps.then(LayerCollective{name + " reduce-scatter", TransferKind::kReduceScatter,
                               Scope::kExpert, Bytes(bytes * real(gathered_tokens(task)))});
  if (gathers_rows(task))
    steps.then(LayerCollective{name + " reduce-scatter over tensors", TransferKind::kReduceScatter,
                               Scope::kExpertTensor,
                               Bytes(bytes * real(permuted_tokens(task)) * task.work.split.etp)});
}

/// What a router says of a token: a mask and an fp32 weight for each expert.
double choice_bytes(const LayerTask& task, bool mask) {
  return real(task.model.moe.experts) * ((mask ? 1 : 0) + sizeof(float));
}

double token_columns_bytes(const LayerTask& task) {
  return real(task.model.expert_columns()) * task.bytes();
}

/// Sorts copies that came from all ranks by their expert, or back.
void sort_copies(StepList& steps, const std::string& name, const LayerTask& task, double bytes) {
  if (local_experts(task) == 1) return;
  steps.then(stream(name, KernelClass::kElementwise, expert_rows(task), task.model.expert_columns(),
                    {bytes, bytes, 0}));
}

/// Tokens that this rank has to make rows of.
double tokens_here(const LayerTask& task) {
  return dispatcher_of(task) == TokenDispatcher::kAllGather ? real(gathered_tokens(task))
                                                            : received_tokens(task);
}

/// The rows of experts from the tokens that came to this rank, or their sums.
/// @param rows_read whether rows are read and added up
Kernel move_received(const std::string& name, const LayerTask& task, double bytes, bool rows_read) {
  const double rows = real(expert_rows(task));
  const double copies = rows / tokens_here(task);
  const auto tokens = static_cast<std::int64_t>(std::llround(tokens_here(task)));
  const StreamCost cost = rows_read ? StreamCost{copies * bytes, bytes, copies}
                                    : StreamCost{std::min(1.0, copies) * bytes, copies * bytes, 0};
  return stream(name, KernelClass::kElementwise, tokens, task.model.expert_columns(), cost);
}

Kernel move_rows(const std::string& name, const LayerTask& task, StreamCost per_element) {
  return stream(name, KernelClass::kElementwise, permuted_tokens(task), task.model.expert_columns(),
                per_element);
}

/// Format of tokens on their way to the experts.
Precision sent_precision(const LayerTask& task) {
  const bool wide = task.work.trains() &&
                    expert_software(task).dispatch_format.value == DispatchFormat::kSixteenBit;
  return wide ? unquantised(task.work.formats.precision) : task.precision(task.layer.feed);
}

/// What the sum of a token's results, `copies` of them, does to gradients: of each a copy by the
/// weight of its gate, whose own gradient needs the result.
StreamCost spread_gradients(const LayerTask& task, double copies) {
  const double bytes = task.bytes();
  const bool weighted = expert_software(task).gate_weights.value == GateWeights::kResults;
  return {bytes + (weighted ? copies * bytes : 0), copies * bytes, weighted ? 2 * copies : 0};
}

/// Tokens in the format in which they are sent, where the norm before does not write it.
void narrow_tokens(StepList& steps, const LayerTask& task, Precision sent) {
  if (task.work.kernels.on(kQuantFusion) || element_bytes(sent) >= 2) return;
  steps.then(quantize("dispatch input quantisation", sent, permuted_tokens(task),
                      task.model.expert_columns()));
}

bool host_waits(const LayerTask& task) {
  return task.work.trains() && expert_software(task).host_waits.value &&
         task.work.passes.expert_capacity == 0;
}

}  // namespace

bool waits_before_dispatch(const LayerTask& task) {
  return host_waits(task) && !permutes_behind(task);
}

void dispatch(StepList& steps, const LayerTask& task) {
  const double bytes = task.bytes();
  const Precision sent = sent_precision(task);
  const double payload = std::min(bytes, element_bytes(sent));
  const std::int64_t hidden = task.model.expert_columns();
  if (gathers_tokens(task))
    gather(steps, "expert tokens", task, unquantised(task.work.formats.precision));
  switch (dispatcher_of(task)) {
    case TokenDispatcher::kExchange:
      send_tokens(steps, task, payload);
      exchange(steps, "dispatch", TransferKind::kDispatch, task, sent);
      if (gathers_rows(task)) gather(steps, "dispatch", task, sent);
      return;
    case TokenDispatcher::kAllToAll:
      steps.then(permute_tokens(permuted_tokens(task), hidden, copies_of(task), bytes, payload));
      all_to_all(steps, "dispatch", task, sent);
      if (gathers_rows(task)) gather(steps, "dispatch", task, sent);
      sort_copies(steps, "dispatch sort", task, payload);
      return;
    case TokenDispatcher::kFlex:
      if (sends_tokens_once(task)) narrow_tokens(steps, task, sent);
      exchange(steps, "dispatch", TransferKind::kDispatch, task, sent);
      if (gathers_rows(task)) gather(steps, "dispatch", task, sent);
      if (!task.work.trains()) return;  // behind what runs beside the dispatch
      break;
    case TokenDispatcher::kAllGather:
      gather_tokens(steps, "expert choices", task, choice_bytes(task, true));
      gather_tokens(steps, "dispatch", task, token_columns_bytes(task));
  }
  const bool gathers = dispatcher_of(task) == TokenDispatcher::kAllGather;
  // The numbers of rows come with the tokens (recalled: Megatron-Core 2026, moe/fused_a2a.py, waits
  // for those of HybridEP in pinned memory; the allgather dispatcher copies its sums to the host).
  Kernel permute = move_received("permute", task, gathers ? bytes : payload, false);
  permute.host_waits = host_waits(task);
  steps.then(std::move(permute));
}

void receive_dispatched(StepList& steps, const LayerTask& task) {
  const double payload = std::min(task.bytes(), element_bytes(sent_precision(task)));
  if (sends_tokens_once(task)) steps.then(move_received("permute", task, payload, false));
  if (!sends_and_fetches(task)) return;
  next_turn(steps, task);
  steps.then(copy_rows("dispatch receive", task, payload, kReceiveRate));
}

void combine(StepList& steps, const LayerTask& task, const std::vector<std::size_t>& beside) {
  const double bytes = task.bytes();
  if (sends_and_fetches(task)) steps.then(copy_rows("combine send", task, bytes, kResultRate));
  const TokenDispatcher dispatcher = dispatcher_of(task);
  const bool behind = permutes_behind(task);
  if (behind) steps.then(move_received("unpermute", task, bytes, true));
  if (dispatcher == TokenDispatcher::kAllGather) {
    scatter_tokens(steps, "combine", task, token_columns_bytes(task));
    if (gathers_tokens(task)) reduce(steps, "combine add", task);
    add_results(steps, task, beside);
    return;
  }
  if (dispatcher == TokenDispatcher::kAllToAll) sort_copies(steps, "combine sort", task, bytes);
  if (gathers_rows(task)) reduce(steps, "combine", task);
  if (dispatcher == TokenDispatcher::kAllToAll) {
    all_to_all(steps, "combine", task, unquantised(task.work.formats.precision));
  } else {
    exchange(steps, "combine", TransferKind::kCombine, task,
             unquantised(task.work.formats.precision));
  }
  next_turn(steps, task);
  const auto add = [&](double more) {
    return combine_copies(permuted_tokens(task), task.model.expert_columns(), copies_of(task),
                          bytes, more);
  };
  if (!behind && !gathers_tokens(task)) {
    steps.join(add(beside.empty() ? 0 : bytes), beside);
    next_turn(steps, task);
    return;
  }
  if (!behind) steps.then(add(0));
  if (gathers_tokens(task)) reduce(steps, "combine add", task);
  add_results(steps, task, beside);
}

void add_results(StepList& steps, const LayerTask& task, const std::vector<std::size_t>& beside) {
  if (beside.empty()) return;
  const double bytes = task.bytes();
  steps.join(stream("shared expert add", KernelClass::kElementwise, routed_tokens(task),
                    task.model.hidden, {2 * bytes, bytes, 1}),
             beside);
}

void combine_backward(StepList& steps, const LayerTask& task) {
  const Precision wide = unquantised(task.work.formats.precision);
  const double bytes = task.bytes(), copies = real(task.model.moe.experts_per_token);
  if (gathers_tokens(task)) gather(steps, "combine add backward", task, wide);
  const TokenDispatcher dispatcher = dispatcher_of(task);
  const bool behind = permutes_behind(task);
  if (!behind) steps.then(move_rows("combine add backward", task, spread_gradients(task, copies)));
  if (dispatcher == TokenDispatcher::kAllGather) {
    gather_tokens(steps, "combine backward", task, token_columns_bytes(task));
  } else if (dispatcher == TokenDispatcher::kAllToAll) {
    all_to_all(steps, "combine backward", task, wide);
  } else {
    exchange(steps, "combine backward", TransferKind::kDispatch, task, wide);
  }
  if (gathers_rows(task) && dispatcher != TokenDispatcher::kAllGather)
    gather(steps, "combine backward", task, wide);
  if (dispatcher == TokenDispatcher::kAllToAll)
    sort_copies(steps, "combine sort backward", task, bytes);
  if (!behind) return;
  const double each = real(expert_rows(task)) / tokens_here(task);
  const auto tokens = static_cast<std::int64_t>(std::llround(tokens_here(task)));
  steps.then(stream("combine add backward", KernelClass::kElementwise, tokens,
                    task.model.expert_columns(), spread_gradients(task, each)));
}

void dispatch_backward(StepList& steps, const LayerTask& task) {
  const Precision wide = unquantised(task.work.formats.precision);
  const double bytes = task.bytes();
  const TokenDispatcher dispatcher = dispatcher_of(task);
  if (permutes_behind(task)) steps.then(move_received("permute backward", task, bytes, true));
  if (dispatcher == TokenDispatcher::kAllGather) {
    scatter_tokens(steps, "dispatch backward", task, token_columns_bytes(task));
    scatter_tokens(steps, "expert choices backward", task, choice_bytes(task, false));
    return;
  }
  if (dispatcher == TokenDispatcher::kAllToAll)
    sort_copies(steps, "dispatch sort backward", task, bytes);
  if (gathers_rows(task)) reduce(steps, "dispatch backward", task);
  if (dispatcher == TokenDispatcher::kAllToAll) {
    all_to_all(steps, "dispatch backward", task, wide);
  } else {
    exchange(steps, "dispatch backward", TransferKind::kCombine, task, wide);
  }
}

void permute_backward(StepList& steps, const LayerTask& task) {
  const double bytes = task.bytes(), copies = real(task.model.moe.experts_per_token);
  if (!permutes_behind(task))
    steps.then(move_rows("permute backward", task, {copies * bytes, bytes, copies}));
  if (gathers_tokens(task)) reduce(steps, "permute backward", task);
}

}  // namespace orrery
