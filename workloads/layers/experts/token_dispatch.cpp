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
#include <variant>

#include "workloads/base/real.h"
#include "workloads/layers/parts/expert_rows.h"
#include "workloads/software/engine_switches.h"

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

LayerCollective exchange(const LayerTask& task, const std::string& name, TransferKind kind,
                         Precision precision) {
  return {name, kind, Scope::kExpert,
          token_bytes(precision, task.model.expert_columns()) * real(sent_rows(task)),
          routing_of(task)};
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
  Kernel kernel = elementwise(name, expert_rows(task), task.model.hidden, {bytes, bytes, 0});
  kernel.rate = rate;
  return kernel;
}

/// Format of tokens on their way to the experts.
Precision sent_precision(const LayerTask& task) {
  const bool wide = task.work.trains() &&
                    expert_software(task).dispatch_format.value == DispatchFormat::kSixteenBit;
  return wide ? unquantised(task.work.formats.precision) : task.precision(task.layer.feed);
}

double sent_bytes(const LayerTask& task) {
  return std::min(task.bytes(), element_bytes(sent_precision(task)));
}

/// Rows of experts out of tokens, for the transfer that follows.
void send_tokens(StepList& steps, const LayerTask& task) {
  next_turn(steps, task);
  Kernel kernel = permute_tokens(permuted_tokens(task), task.model.expert_columns(),
                                 copies_of(task), task.bytes(), sent_bytes(task));
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

double token_columns_bytes(const LayerTask& task) {
  return real(task.model.expert_columns()) * task.bytes();
}

LayerOp::Emit step(std::variant<Kernel, LayerCollective> work) {
  return [work = std::move(work)](StepList& steps, const LayerTask& /*task*/) { steps.then(work); };
}

LayerOp::Emit gather(const LayerTask& task, const std::string& name, Precision precision) {
  return step(LayerCollective{
      name + " all-gather", TransferKind::kAllGather, Scope::kExpertTensor,
      token_bytes(precision, task.model.expert_columns()) * real(shared_rows(task))});
}

LayerOp::Emit reduce(const LayerTask& task, const std::string& name) {
  return step(LayerCollective{name + " reduce-scatter", TransferKind::kReduceScatter,
                              Scope::kExpertTensor,
                              Bytes(real(shared_rows(task)) * token_columns_bytes(task))});
}

/// All copies, each to the rank of its expert (NCCL).
LayerCollective all_to_all(const LayerTask& task, const std::string& name, Precision precision) {
  const double rows = real(sent_rows(task)) * skew_of(task);
  return {name, TransferKind::kAllToAll, Scope::kExpert,
          token_bytes(precision, task.model.expert_columns()) * rows};
}

TokenDispatcher dispatcher_of(const LayerTask& task) {
  if (task.work.trains()) return expert_software(task).dispatcher.value;
  return sends_tokens_once(task) ? TokenDispatcher::kFlex : TokenDispatcher::kExchange;
}

/// Rows to the ranks of their experts (kDispatch), or their results back (kCombine); gradients go
/// the other way.
LayerOp exchange_op(const LayerTask& task, const std::string& name, TransferKind kind,
                    Precision sent) {
  const Precision wide = unquantised(task.work.formats.precision);
  if (task.work.split.ep == 1 || all_reduces(task)) return {};
  if (dispatcher_of(task) == TokenDispatcher::kAllToAll)
    return {step(all_to_all(task, name, sent)), step(all_to_all(task, name + " backward", wide))};
  const bool there = kind == TransferKind::kDispatch;
  return {step(exchange(task, name, kind, sent)),
          step(exchange(task, name + " backward",
                        there ? TransferKind::kCombine : TransferKind::kDispatch, wide))};
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
LayerOp::Emit gather_tokens(const std::string& name, double bytes) {
  return [=](StepList& steps, const LayerTask& task) {
    const double mine = bytes * real(permuted_tokens(task));
    if (gathers_rows(task))
      steps.then(LayerCollective{name + " all-gather over tensors", TransferKind::kAllGather,
                                 Scope::kExpertTensor, Bytes(mine * task.work.split.etp)});
    if (task.work.split.ep > 1)
      steps.then(LayerCollective{name + " all-gather", TransferKind::kAllGather, Scope::kExpert,
                                 Bytes(bytes * real(gathered_tokens(task)))});
  };
}

LayerOp::Emit scatter_tokens(const std::string& name, double bytes) {
  return [=](StepList& steps, const LayerTask& task) {
    if (task.work.split.ep > 1)
      steps.then(LayerCollective{name + " reduce-scatter", TransferKind::kReduceScatter,
                                 Scope::kExpert, Bytes(bytes * real(gathered_tokens(task)))});
    if (gathers_rows(task))
      steps.then(LayerCollective{name + " reduce-scatter over tensors",
                                 TransferKind::kReduceScatter, Scope::kExpertTensor,
                                 Bytes(bytes * real(permuted_tokens(task)) * task.work.split.etp)});
  };
}

/// What a router says of a token: a mask and an fp32 weight for each expert.
double choice_bytes(const LayerTask& task, bool mask) {
  return real(task.model.moe.experts) * ((mask ? 1 : 0) + sizeof(float));
}

/// Sorts copies that came from all ranks by their expert, or back.
LayerOp sort_copies(const LayerTask& task, const std::string& name, double there) {
  if (local_experts(task) == 1) return {};
  const auto pass = [&](const std::string& what, double bytes) {
    return step(
        elementwise(what, expert_rows(task), task.model.expert_columns(), {bytes, bytes, 0}));
  };
  return {pass(name, there), pass(name + " backward", task.bytes())};
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
  return elementwise(name, tokens, task.model.expert_columns(), cost);
}

Kernel move_rows(const std::string& name, const LayerTask& task, StreamCost per_element) {
  return elementwise(name, permuted_tokens(task), task.model.expert_columns(), per_element);
}

/// What the sum of a token's results, `copies` of them, does to gradients: of each a copy by the
/// weight of its gate, whose own gradient needs the result.
StreamCost spread_gradients(const LayerTask& task, double copies) {
  const double bytes = task.bytes();
  const bool weighted = expert_software(task).gate_weights.value == GateWeights::kResults;
  return {bytes + (weighted ? copies * bytes : 0), copies * bytes, weighted ? 2 * copies : 0};
}

/// Tokens in the format in which they are sent, where the norm before does not write it.
void narrow_tokens(StepList& steps, const LayerTask& task) {
  const Precision sent = sent_precision(task);
  if (task.work.kernels.on(kQuantFusion) || element_bytes(sent) >= 2) return;
  steps.then(quantize("dispatch input quantisation", sent, permuted_tokens(task),
                      task.model.expert_columns()));
}

bool host_waits(const LayerTask& task) {
  return task.work.trains() && expert_software(task).host_waits.value &&
         task.work.passes.expert_capacity == 0;
}

/// Rows of experts from tokens that have come. The numbers of rows come with the tokens (recalled:
/// Megatron-Core 2026, moe/fused_a2a.py, waits for those of HybridEP in pinned memory; the
/// allgather dispatcher copies its sums to the host).
LayerOp permute_received(const LayerTask& task, double bytes) {
  Kernel permute = move_received("permute", task, bytes, false);
  permute.host_waits = host_waits(task);
  return {step(std::move(permute)),
          step(move_received("permute backward", task, task.bytes(), true))};
}

/// The sum of what a rank's experts give for each token that came.
LayerOp sum_received(const LayerTask& task) {
  const double each = real(expert_rows(task)) / tokens_here(task);
  const auto tokens = static_cast<std::int64_t>(std::llround(tokens_here(task)));
  return {step(move_received("unpermute", task, task.bytes(), true)),
          step(elementwise("combine add backward", tokens, task.model.expert_columns(),
                           spread_gradients(task, each)))};
}

void send_results(StepList& steps, const LayerTask& task) {
  if (sends_and_fetches(task))
    steps.then(copy_rows("combine send", task, task.bytes(), kResultRate));
}

/// The sum of the copies of each token, with what shared experts gave if these are given.
LayerOp add_copies(const LayerTask& task, const std::shared_ptr<ExpertSteps>& earlier) {
  const double copies = real(task.model.moe.experts_per_token);
  const auto add = [=](StepList& steps, const LayerTask& of) {
    const std::vector<std::size_t> beside = earlier ? earlier->shared : std::vector<std::size_t>();
    steps.join(combine_copies(permuted_tokens(of), of.model.expert_columns(), copies_of(of),
                              of.bytes(), beside.empty() ? 0 : of.bytes()),
               beside);
  };
  return {add, step(move_rows("combine add backward", task, spread_gradients(task, copies)))};
}

}  // namespace

bool waits_before_dispatch(const LayerTask& task) {
  return host_waits(task) && !permutes_behind(task);
}

std::vector<LayerOp> permute_ops(const LayerTask& task) {
  const double bytes = task.bytes(), copies = real(task.model.moe.experts_per_token);
  std::vector<LayerOp> all;
  if (gathers_tokens(task))
    all.push_back({gather(task, "expert tokens", unquantised(task.work.formats.precision)),
                   reduce(task, "permute backward")});
  if (!permutes_behind(task))
    all.push_back(
        {send_tokens, step(move_rows("permute backward", task, {copies * bytes, bytes, copies}))});
  return all;
}

std::vector<LayerOp> dispatch_ops(const LayerTask& task) {
  const Precision sent = sent_precision(task);
  const double token = token_columns_bytes(task), payload = sent_bytes(task);
  const TokenDispatcher dispatcher = dispatcher_of(task);
  if (dispatcher == TokenDispatcher::kAllGather)
    return {{gather_tokens("expert choices", choice_bytes(task, true)),
             scatter_tokens("expert choices backward", choice_bytes(task, false))},
            {gather_tokens("dispatch", token), scatter_tokens("dispatch backward", token)},
            permute_received(task, task.bytes())};
  std::vector<LayerOp> all;
  if (sends_tokens_once(task)) all.push_back({narrow_tokens});
  all.push_back(exchange_op(task, "dispatch", TransferKind::kDispatch, sent));
  if (gathers_rows(task))
    all.push_back({gather(task, "dispatch", sent), reduce(task, "dispatch backward")});
  if (dispatcher == TokenDispatcher::kAllToAll)
    all.push_back(sort_copies(task, "dispatch sort", payload));
  // In inference behind what runs beside the dispatch.
  if (dispatcher == TokenDispatcher::kFlex && task.work.trains())
    all.push_back(permute_received(task, payload));
  return all;
}

void receive_dispatched(StepList& steps, const LayerTask& task) {
  const double payload = sent_bytes(task);
  if (sends_tokens_once(task)) steps.then(move_received("permute", task, payload, false));
  if (!sends_and_fetches(task)) return;
  next_turn(steps, task);
  steps.then(copy_rows("dispatch receive", task, payload, kReceiveRate));
}

std::vector<LayerOp> combine_ops(const LayerTask& task,
                                 const std::shared_ptr<ExpertSteps>& earlier) {
  const Precision wide = unquantised(task.work.formats.precision);
  const double token = token_columns_bytes(task);
  const TokenDispatcher dispatcher = dispatcher_of(task);
  std::vector<LayerOp> all = {{send_results}};
  if (permutes_behind(task)) all.push_back(sum_received(task));
  if (dispatcher == TokenDispatcher::kAllGather) {
    all.push_back({scatter_tokens("combine", token), gather_tokens("combine backward", token)});
  } else {
    if (dispatcher == TokenDispatcher::kAllToAll)
      all.push_back(sort_copies(task, "combine sort", task.bytes()));
    if (gathers_rows(task))
      all.push_back({reduce(task, "combine"), gather(task, "combine backward", wide)});
    all.push_back(exchange_op(task, "combine", TransferKind::kCombine, wide));
  }
  all.push_back({next_turn});
  const bool joins = !permutes_behind(task) && !gathers_tokens(task);
  if (!permutes_behind(task)) all.push_back(add_copies(task, joins ? earlier : nullptr));
  if (gathers_tokens(task))
    all.push_back({reduce(task, "combine add"), gather(task, "combine add backward", wide)});
  all.push_back(joins ? LayerOp{next_turn} : add_shared(earlier));
  return all;
}

LayerOp add_shared(const std::shared_ptr<ExpertSteps>& earlier) {
  return {[=](StepList& steps, const LayerTask& task) {
    if (!earlier || earlier->shared.empty()) return;
    const double bytes = task.bytes();
    steps.join(elementwise("shared expert add", routed_tokens(task), task.model.hidden,
                           {2 * bytes, bytes, 1}),
               earlier->shared);
  }};
}

}  // namespace orrery
