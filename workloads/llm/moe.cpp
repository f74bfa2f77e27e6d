// SPDX-License-Identifier: Apache-2.0
// Mixture of experts on one rank's share of the tokens: route, send every token to the ranks of its
// experts (dispatch), compute, send back, add up (combine). Routing is balanced: a rank receives as
// many rows as it sends. Router and shared experts are whole on every rank (each works on its own
// tokens).
#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_parts.h"
#include "workloads/llm/layers.h"
#include "workloads/llm/linear.h"
#include "workloads/llm/real.h"

namespace orrery {
namespace {

/// Token copies that this rank sends out, and in balance receives.
std::int64_t routed_rows(const LayerTask& task) {
  return task.work.split_tokens() * task.model.moe.experts_per_token;
}

GroupedShape expert_shape(const LayerTask& task, std::int64_t n, std::int64_t k) {
  const LayerWork& w = task.work;
  const double active = expected_active_slots(task.model.moe, w.ep, w.split_tokens());
  const double rows = real(routed_rows(task));
  return {.experts = active,
          .rows = rows,
          .n = n,
          .k = k,
          .load = even_load(active, rows, real(expert_slots(task.model.moe, w.ep)))};
}

GroupedShape expert_up(const LayerTask& task) {
  const std::int64_t inputs = task.model.mlp.gated ? 2 : 1;
  return expert_shape(task, inputs * task.model.moe.intermediate, task.model.hidden);
}

GroupedShape expert_down(const LayerTask& task) {
  return expert_shape(task, task.model.hidden, task.model.moe.intermediate);
}

Linear shared_up(const LayerTask& task) {
  const std::int64_t inputs = task.model.mlp.gated ? 2 : 1;
  return {"shared expert up", task.model.hidden, inputs * task.model.moe.shared_intermediate,
          task.work.precision};
}

Linear shared_down(const LayerTask& task) {
  return {"shared expert down", task.model.moe.shared_intermediate, task.model.hidden,
          task.work.precision};
}

/// With the gate of the shared experts, where there is one, as a further column.
Linear router_of(const LayerTask& task) {
  const MoeConfig& m = task.model.moe;
  return {"router", task.model.hidden, m.experts + (m.shared_gate ? 1 : 0),
          unquantised(task.work.precision)};
}

/// Decoding sends each copy straight, as kernels for few tokens do; everything else sends a token
/// once to a rank.
ExpertRouting routing_of(const LayerTask& task) {
  const MoeConfig& moe = task.model.moe;
  const bool decode = task.work.phase == Phase::kDecode;
  return {.experts = static_cast<int>(moe.experts),
          .top_k = static_cast<int>(moe.experts_per_token),
          .groups = static_cast<int>(moe.groups),
          .top_groups = static_cast<int>(moe.top_groups),
          .mode = decode ? ExpertRouting::Mode::kLowLatency : ExpertRouting::Mode::kNormal};
}

void exchange(StepList& steps, const std::string& name, TransferKind kind, const LayerTask& task,
              Precision precision) {
  if (task.work.ep == 1) return;
  LayerCollective collective;
  collective.name = name;
  collective.kind = kind;
  collective.scope = Scope::kExpert;
  collective.bytes = token_bytes(precision, task.model.hidden) * real(routed_rows(task));
  collective.routing = routing_of(task);
  steps.then(collective);
}

/// Tokens, or the gradients of the results, to the experts.
void dispatch(StepList& steps, const std::string& name, const LayerTask& task,
              Precision precision) {
  exchange(steps, name, TransferKind::kDispatch, task, precision);
}

/// Results, or the gradients of the tokens, back and added up.
void combine(StepList& steps, const std::string& name, const LayerTask& task) {
  exchange(steps, name, TransferKind::kCombine, task, unquantised(task.work.precision));
}

Kernel move_rows(const std::string& name, const LayerTask& task, StreamCost per_element) {
  return stream(name, KernelClass::kElementwise, task.work.split_tokens(), task.model.hidden,
                per_element);
}

/// Beside the main path from `input`: nothing of the routed path waits for it until the results are
/// added.
std::size_t shared_forward(StepList& steps, const LayerTask& task, std::size_t input) {
  const std::int64_t rows = task.work.split_tokens();
  const Linear up = shared_up(task), down = shared_down(task);
  std::size_t last = steps.aside(gemm(up.name, up.precision, {rows, up.out, up.in}), {input});
  last = steps.aside(activation_forward("shared expert activation", task, rows, down.in), {last});
  return steps.aside(gemm(down.name, down.precision, {rows, down.out, down.in}), {last});
}

void shared_backward(StepList& steps, const LayerTask& task) {
  const std::int64_t rows = task.work.split_tokens();
  local_backward(steps, shared_down(task), rows);
  steps.then(
      activation_backward("shared expert activation backward", task, rows, shared_down(task).in));
  local_backward(steps, shared_up(task), rows);
}

void route_forward(StepList& steps, const LayerTask& task) {
  const std::int64_t rows = task.work.split_tokens();
  const double bytes = activation_bytes(task.work.precision);
  const double payload = std::min(bytes, element_bytes(task.work.precision));
  const double copies = real(task.model.moe.experts_per_token);
  const Linear router = router_of(task);
  steps.then(gemm(router.name, router.precision, {rows, router.out, router.in}));
  for (Kernel& kernel : expert_choice(rows, router.out, task.model.moe.experts_per_token, bytes))
    steps.then(std::move(kernel));
  steps.then(permute_tokens(rows, task.model.hidden, copies, bytes, payload));
}

void experts_forward(StepList& steps, const LayerTask& task) {
  const Precision precision = task.work.precision;
  GroupedShape up = expert_up(task);
  up.load.copies = up.rows;
  // Tokens that come here: all of the exchange, or one for each copy where those are fewer.
  up.load.choices =
      std::min(up.rows, real(task.work.split_tokens()) * task.work.ep) * up.load.experts;
  steps.then(grouped_gemm("expert up", precision, up));
  steps.then(activation_forward("expert activation", task, routed_rows(task),
                                task.model.moe.intermediate));
  steps.then(grouped_gemm("expert down", precision, expert_down(task)));
}

void experts_backward(StepList& steps, const LayerTask& task) {
  const Precision precision = task.work.precision;
  std::size_t gradient = steps.cursor();
  steps.then(grouped_data_gradient("expert down", precision, expert_down(task)));
  steps.aside(grouped_weight_gradient("expert down", precision, expert_down(task)), {gradient});
  steps.then(activation_backward("expert activation backward", task, routed_rows(task),
                                 task.model.moe.intermediate));
  gradient = steps.cursor();
  steps.then(grouped_data_gradient("expert up", precision, expert_up(task)));
  combine(steps, "dispatch backward", task);
  // After the exchange in issue order, so that it runs beside it.
  steps.aside(grouped_weight_gradient("expert up", precision, expert_up(task)), {gradient});
}

}  // namespace

std::int64_t expert_slots(const MoeConfig& moe, int ep) { return (moe.experts + ep - 1) / ep; }

double expected_active_slots(const MoeConfig& moe, int ep, std::int64_t tokens) {
  const double slots = real(expert_slots(moe, ep));
  // A token picks experts_per_token different slots of all, so it misses a given one with 1 - k /
  // slots; tokens are independent.
  const double miss = 1 - real(moe.experts_per_token) / (slots * ep);
  return slots * (1 - std::pow(miss, real(tokens) * ep));
}

void moe_forward(StepList& steps, const LayerTask& task) {
  const LayerWork& w = task.work;
  const double bytes = activation_bytes(w.precision);
  const double copies = real(task.model.moe.experts_per_token);
  const std::size_t input = steps.cursor();
  route_forward(steps, task);
  dispatch(steps, "dispatch", task, w.precision);  // in the format of the experts' matrices
  std::vector<std::size_t> shared;
  if (task.model.moe.shared_intermediate > 0) {
    shared.push_back(shared_forward(steps, task, input));
  }
  experts_forward(steps, task);
  combine(steps, "combine", task);
  const double shared_read = shared.empty() ? 0 : bytes;
  steps.join(combine_copies(w.split_tokens(), task.model.hidden, copies, bytes, shared_read),
             shared);
  if (w.tp > 1 && !w.sp) {
    steps.then(tensor_collective("expert output all-gather", TransferKind::kAllGather, w,
                                 task.model.hidden));
  }
}

void moe_backward(StepList& steps, const LayerTask& task) {
  const double bytes = activation_bytes(task.work.precision);
  const double copies = real(task.model.moe.experts_per_token);
  // Gradients of the gates need the experts' outputs.
  steps.then(move_rows("combine add backward", task,
                       {bytes + copies * bytes, copies * bytes, 2 * copies}));
  dispatch(steps, "combine backward", task, unquantised(task.work.precision));
  experts_backward(steps, task);
  if (task.model.moe.shared_intermediate > 0) shared_backward(steps, task);
  steps.then(move_rows("permute backward", task, {copies * bytes, bytes, copies}));
  local_backward(steps, router_of(task), task.work.split_tokens());
}

}  // namespace orrery
