// SPDX-License-Identifier: Apache-2.0
// Mixture of experts on one rank's share of the tokens: route, send every token to the ranks of its
// experts (token_dispatch.h), compute (experts.h), send back, add up. Routing is balanced, so that
// a rank receives as many rows as it sends, unless RankWork::heaviest says otherwise: then this is
// the rank that receives the most, for which the others wait. Router and shared experts are whole
// on every rank (each works on its own tokens).
//
// Serving engines without data parallel attention do not send tokens
// (RankWork::all_reduces_experts): each rank routes all tokens to those experts, or parts of them,
// that it holds, works on its part of the shared experts, and an all-reduce adds up all (vLLM,
// model_executor/layers/fused_moe/layer.py).
#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/experts/experts.h"
#include "workloads/layers/experts/token_dispatch.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/expert_rows.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// Whole on every rank that works on its own tokens, split over those that work on the same.
std::int64_t shared_width(const LayerTask& task) {
  const std::int64_t whole = task.model.moe.shared_intermediate;
  return all_reduces(task) ? (whole + task.work.split.tp - 1) / task.work.split.tp : whole;
}

Linear shared_up(const LayerTask& task) {
  const std::int64_t inputs = task.model.mlp.gated ? 2 : 1;
  return {"shared expert up", task.model.hidden, inputs * shared_width(task),
          task.precision(task.layer.shared), task.weights(task.layer.shared)};
}

Linear shared_down(const LayerTask& task) {
  return {"shared expert down", shared_width(task), task.model.hidden,
          task.precision(task.layer.shared), task.weights(task.layer.shared)};
}

/// With the gate of the shared experts, where there is one, as a further column.
Linear router_of(const LayerTask& task) {
  const MoeConfig& m = task.model.moe;
  return {"router", task.model.hidden, m.experts + (m.shared_gate ? 1 : 0),
          unquantised(task.work.formats.precision)};
}

/// Beside the main path from `input`: nothing of the routed path waits for it until the results are
/// added.
std::size_t shared_forward(StepList& steps, const LayerTask& task, std::size_t input) {
  const std::int64_t rows = routed_tokens(task);
  const Linear down = shared_down(task);
  const std::size_t main = steps.cursor();
  // Where every rank has a part of all experts, vLLM runs the shared one on a stream of its own
  // (layers/fused_moe/shared_fused_moe.py), so that no kernel of its quantises on the way.
  RankWork work = task.work;
  if (all_reduces(task)) work.kernels.quant_fusion = EngineSwitch::kOn;
  const LayerTask shared{task.model, task.layer, work, task.forward};
  steps.move_to(input);
  local_forward(steps, work, shared_up(task), rows);
  makes(steps, task, {kept::shared_input});
  steps.then(activation_forward("shared expert activation", shared, rows, down.in));
  makes(steps, task, {kept::shared_function_input, kept::shared_down_input});
  local_forward(steps, work, down, rows);
  const std::size_t last = steps.cursor();
  steps.move_to(main);
  return last;
}

void shared_backward(StepList& steps, const LayerTask& task) {
  const std::int64_t rows = task.work.split_tokens();
  if (again_alone(task, RecomputeModule::kSharedExperts))
    steps.move_to(shared_forward(steps, task.again(), steps.cursor()));
  local_backward(steps, task.work, shared_down(task), rows);
  frees(steps, task, {kept::shared_down_input});
  steps.then(
      activation_backward("shared expert activation backward", task, rows, shared_down(task).in));
  frees(steps, task, {kept::shared_function_input});
  local_backward(steps, task.work, shared_up(task), rows);
  uses(steps, task, {kept::router_input});
  frees(steps, task, {kept::shared_input});
}

/// Norms of a dense MLP beside experts and of these: of what each of them gives, and of what router
/// and experts read, which is in front of the MLP's norm.
void expert_norms(StepList& steps, const LayerTask& task) {
  const std::int64_t norms = task.model.moe.norms;
  if (norms == 0) return;
  const double bytes = task.bytes();
  Kernel kernel = stream("expert norms", KernelClass::kNormalization, routed_tokens(task) * norms,
                         task.model.hidden, {bytes, bytes, vector_cost::kRmsNorm});
  kernel.launches = norms;
  steps.then(std::move(kernel));
  makes(steps, task, {kept::expert_norm_inputs});
}

/// Gradients of norms of results, half of all.
void result_norms_backward(StepList& steps, const LayerTask& task) {
  for (std::int64_t i = 0; i < task.model.moe.norms / 2; ++i)
    norm_backward(steps, "expert norm backward", task, task.work.split_tokens(),
                  PastBlock::kNothing);
  frees(steps, task, {kept::expert_norm_inputs});
}

/// Those of the others, added to the gradient of the MLP's norm, which reads what they read.
void input_norms_backward(StepList& steps, const LayerTask& task) {
  for (std::int64_t i = 0; i < task.model.moe.norms / 2; ++i)
    norm_backward(steps, "expert input norm backward", task, task.work.split_tokens(),
                  PastBlock::kGradient);
}

/// Kernels of a training step that score, choose and count besides the one that chooses, and those
/// that prepare the dispatch: of some values a token and expert at most, so that each takes as long
/// as its latency.
void small_kernels(StepList& steps, const LayerTask& task, const char* name, std::int64_t kernels,
                   bool host_waits = false) {
  if (kernels == 0) return;
  Kernel kernel = stream(name, KernelClass::kElementwise, local_experts(task), task.work.split.ep,
                         {sizeof(float), sizeof(float), 1});
  kernel.launches = kernels;
  kernel.host_waits = host_waits;
  steps.then(std::move(kernel));
}

void route_forward(StepList& steps, const LayerTask& task) {
  const std::int64_t rows = routed_tokens(task);
  const Linear router = router_of(task);
  issued(steps, task, GraphPart::kRouting);
  steps.then(gemm(router.name, router.precision, {rows, router.out, router.in}));
  makes(steps, task, {kept::router_input, kept::router_scores});
  for (Kernel& kernel :
       expert_choice(rows, router.out, task.model.moe.experts_per_token, task.bytes()))
    steps.then(std::move(kernel));
  if (!task.work.trains()) {
    // Kernels of SGLang's biased_grouped_topk_impl and fused_topk_native (layers/moe/topk.py):
    // sigmoid, bias, two top-k, sum, zeros, scatter, copy, cast, not, fill, top-k, gather, sum,
    // quotient; without groups softmax, top-k, sum, quotient.
    constexpr std::int64_t kGrouped = 15, kPlain = 4;
    if (!is_on(task.work.kernels.router))
      small_kernels(steps, task, "router kernels",
                    (task.model.moe.groups > 1 ? kGrouped : kPlain) - 1);
    return;
  }
  const ExpertSoftware& software = expert_software(task);
  small_kernels(steps, task, "router kernels", software.router_kernels.value - 1);
  // The host waits for a copy of what was counted.
  const bool waits = waits_before_dispatch(task);
  small_kernels(steps, task, "dispatch preprocess", waits ? 1 : 0, waits);
}

// What brings tokens to the width of routed experts, and their results back: whole on every rank,
// as in Megatron-Core (moe_layer.py, fc1_latent_proj and fc2_latent_proj, core 0.16).
Linear latent_down(const LayerTask& task) {
  return {"expert latent down", task.model.hidden, task.model.moe.latent,
          task.precision(task.layer.shared), task.weights(task.layer.shared)};
}

Linear latent_up(const LayerTask& task) {
  return {"expert latent up", task.model.moe.latent, task.model.hidden,
          task.precision(task.layer.shared), task.weights(task.layer.shared)};
}

void apply(StepList& steps, const LayerTask& task, const Linear& linear) {
  if (task.model.moe.latent == 0) return;
  local_forward(steps, task.work, linear, routed_tokens(task));
}

void apply_backward(StepList& steps, const LayerTask& task, const Linear& linear) {
  if (task.model.moe.latent > 0) local_backward(steps, task.work, linear, task.work.split_tokens());
}

void route_backward(StepList& steps, const LayerTask& task) {
  issued(steps, task, GraphPart::kRouting);
  frees(steps, task, {kept::router_scores});
  small_kernels(steps, task, "router backward kernels",
                expert_software(task).router_kernels.value / 2);
  local_backward(steps, task.work, router_of(task), task.work.split_tokens());
  frees(steps, task, {kept::router_input});
}

}  // namespace

void moe_forward(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const std::size_t input = steps.cursor();
  const bool has_shared = task.model.moe.shared_intermediate > 0 && !shared_is_routed(task);
  const bool before = task.work.trains() &&
                      expert_software(task).shared_experts.value == SharedExperts::kBeforeDispatch;
  std::vector<std::size_t> shared;
  const auto add_shared = [&] {
    issued(steps, task, before ? GraphPart::kRouting : GraphPart::kOther);
    shared.push_back(shared_forward(steps, task, input));
  };
  if (has_shared && before) add_shared();
  expert_norms(steps, task);
  route_forward(steps, task);
  issued(steps, task, GraphPart::kOther);
  apply(steps, task, latent_down(task));
  dispatch(steps, task);
  if (has_shared && !before) add_shared();
  receive_dispatched(steps, task);
  experts_forward(steps, task);
  const bool latent = task.model.moe.latent > 0;
  combine(steps, task, latent ? std::vector<std::size_t>() : shared);
  if (task.model.moe.latent_norm)
    steps.then(stream("expert latent norm", KernelClass::kNormalization, routed_tokens(task),
                      task.model.moe.latent,
                      {activation_bytes(w.formats.precision), activation_bytes(w.formats.precision),
                       vector_cost::kRmsNorm}));
  apply(steps, task, latent_up(task));
  makes(steps, task, {kept::expert_sums});
  if (latent) add_results(steps, task, shared);
  if (all_reduces(task)) {
    steps.then(tensor_collective("expert output all-reduce", TransferKind::kAllReduce, w,
                                 task.model.hidden));
  } else if (w.split.tp > 1 && !w.split.sp) {
    steps.then(tensor_collective("expert output all-gather", TransferKind::kAllGather, w,
                                 task.model.hidden));
  }
}

void moe_backward(StepList& steps, const LayerTask& task) {
  issued(steps, task, GraphPart::kOther);
  const Kernel norm = norm_forward("mlp norm", task, task.work.split_tokens());
  if (task.work.recomputes(RecomputeModule::kMoe)) {
    if (task.work.recomputes(RecomputeModule::kLayernorm)) steps.then(norm);
    moe_forward(steps, task.again());
  }
  result_norms_backward(steps, task);
  apply_backward(steps, task, latent_up(task));
  frees(steps, task, {kept::expert_sums});
  combine_backward(steps, task);
  frees(steps, task, {kept::expert_outputs});
  const std::size_t gradient = experts_backward(steps, task);
  const bool behind =
      expert_software(task).weight_gradients.value == ExpertGradients::kBehindExchange;
  if (!behind) first_weight_gradient(steps, task, gradient);
  fill_backward(steps, task);
  dispatch_backward(steps, task);
  // After the exchange in issue order, so that it runs beside it.
  if (behind) first_weight_gradient(steps, task, gradient);
  if (again_alone(task, RecomputeModule::kLayernorm)) {
    steps.then(norm);
    makes(steps, task.again(), {kept::router_input});
  }
  if (task.model.moe.shared_intermediate > 0) shared_backward(steps, task);
  permute_backward(steps, task);
  apply_backward(steps, task, latent_down(task));
  route_backward(steps, task);
  input_norms_backward(steps, task);
}

}  // namespace orrery
