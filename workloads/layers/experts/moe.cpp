// SPDX-License-Identifier: Apache-2.0
// Mixture of experts on one rank's share of the tokens: route, send every token to the ranks of its
// experts (token_dispatch.h), compute (experts.h), send back, add up. Routing is balanced, so that
// a rank receives as many rows as it sends, unless RankWork::heaviest says otherwise: then this is
// the rank that receives the most, for which the others wait. Router and shared experts are whole
// on every rank (each works on its own tokens).
//
// Inference without data parallel attention does not send tokens (RankSplit::all_reduces_experts).
// Each rank has all tokens. It computes what its experts, or its parts of experts, and its part of
// the shared experts give. An all-reduce adds up the results of the ranks (vLLM,
// model_executor/layers/fused_moe/layer.py).
#include <memory>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/experts/token_dispatch.h"
#include "workloads/layers/parts/expert_rows.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/software/engine_switches.h"
#include "workloads/software/training_software.h"

namespace orrery {
namespace {

const KernelSwitch kRouter{
    "router", true,
    "compute expert choices and weights from scores in one kernel (SGLang's moe_fused_gate, "
    "TensorRT-LLM's noAuxTc, vLLM's grouped_topk), not in one for each operation"};

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

// Tensors that are kept. The router is not quantised.

Tensor router_input(const LayerTask& task) {
  return kept::of_modules("router input", task,
                          real(task.work.split_tokens()) * real(task.model.hidden) *
                              (task.work.lora.trains ? 0 : task.bytes()),
                          {RecomputeModule::kLayernorm});
}

Tensor router_scores(const LayerTask& task) {
  return kept::of_modules(
      "router scores", task,
      real(task.work.split_tokens()) * real(task.model.moe.experts) * task.bytes(),
      {RecomputeModule::kMoe});
}

/// Results of routed experts, and of the MLP beside them, in front of norms of their own.
Tensor expert_norm_inputs(const LayerTask& task) {
  const double results = task.model.moe.norms > 0 ? 2 : 0;
  return kept::of_modules(
      "expert norm inputs", task,
      results * real(task.work.split_tokens() * task.model.hidden) * task.bytes(),
      {RecomputeModule::kMoe});
}

/// Elements in front of the function of shared experts and behind it.
double shared_elements(const LayerTask& task) {
  return real(task.work.split_tokens()) * real(task.model.moe.shared_intermediate);
}

/// What shared experts read where it is not router_input: a narrow copy, or behind another norm.
Tensor shared_input(const LayerTask& task) {
  const bool apart = task.work.formats.narrow_inputs || task.model.moe.norms > 0;
  const bool copied = apart && task.model.moe.shared_intermediate > 0;
  return kept::of_modules("shared expert input", task,
                          real(task.work.split_tokens()) * real(task.model.hidden) *
                              (copied ? kept::input_bytes(task.work) : 0),
                          {RecomputeModule::kMoe, RecomputeModule::kSharedExperts});
}

Tensor shared_function_input(const LayerTask& task) {
  return kept::of_modules("shared function input", task,
                          shared_elements(task) * kept::function_columns(task) * task.bytes(),
                          {RecomputeModule::kMoe, RecomputeModule::kSharedExperts});
}

Tensor shared_down_input(const LayerTask& task) {
  return kept::of_modules("shared down input", task,
                          shared_elements(task) * kept::input_bytes(task.work),
                          {RecomputeModule::kMoe, RecomputeModule::kSharedExperts});
}

/// Where experts have a width of their own: what brings their sums back to that of the model reads.
Tensor expert_sums(const LayerTask& task) {
  return kept::of_modules(
      "expert sums", task,
      real(task.work.split_tokens()) * real(task.model.moe.latent) * kept::input_bytes(task.work),
      {RecomputeModule::kMoe});
}

std::vector<LayerOp> shared_ops(const LayerTask& task) {
  const std::int64_t rows = routed_tokens(task);
  const Linear down = shared_down(task);
  LayerOp up = local_op(shared_up(task), rows);
  up.keeps = {shared_input};
  up.gradient = [=, product = up.gradient](StepList& steps, const LayerTask& of) {
    product(steps, of);
    uses(steps, of, {router_input});
  };
  return {std::move(up),
          {kernels({activation_forward("shared expert activation", task, rows, down.in)}),
           kernels({activation_backward("shared expert activation backward", task, rows, down.in)}),
           {shared_function_input},
           {shared_down_input}},
          local_op(down, rows, {shared_down_input})};
}

/// Beside the main path from its input: nothing of the routed path waits for it until the results
/// are added.
void shared_forward(StepList& steps, const LayerTask& task, ExpertSteps& pass) {
  // Where every rank has a part of all experts, vLLM runs the shared one on a stream of its own
  // (layers/fused_moe/shared_fused_moe.py), so that no kernel of its quantises on the way.
  RankWork work = task.work;
  if (all_reduces(task)) {
    work.kernels.set(kQuantFusion, true);
    work.kernels.set(kBlockQuantFusion, true);
  }
  const LayerTask shared{task.model, task.layer, work, task.forward};
  const std::size_t main = steps.cursor();
  steps.move_to(pass.input);
  run_forward(steps, shared, shared_ops(shared));
  pass.shared = {steps.cursor()};
  steps.move_to(main);
}

void shared_backward(StepList& steps, const LayerTask& task) {
  if (!task.work.recomputes(RecomputeModule::kMoe))
    norm_again(steps, task, "mlp norm", router_input);
  if (task.model.moe.shared_intermediate == 0) return;
  const std::vector<LayerOp> ops = shared_ops(task);
  if (again_alone(task, RecomputeModule::kSharedExperts)) run_forward(steps, task.again(), ops);
  run_backward(steps, task, ops);
}

/// Gradients of norms of experts, half of all.
LayerOp::Emit norms_backward(const LayerTask& task, const char* name, PastBlock past) {
  return [=, norms = task.model.moe.norms / 2](StepList& steps, const LayerTask& of) {
    for (std::int64_t i = 0; i < norms; ++i)
      norm_backward(steps, name, of, of.work.split_tokens(), past);
  };
}

/// Norms of a dense MLP beside experts and of these: of what each of them gives, and of what router
/// and experts read, which is in front of the MLP's norm. Gradients of the latter are added to that
/// of the MLP's norm, which reads what they read.
LayerOp expert_norms(const LayerTask& task) {
  const std::int64_t norms = task.model.moe.norms;
  if (norms == 0) return {};
  Kernel kernel =
      rms_norm_of("expert norms", routed_tokens(task) * norms, task.model.hidden, task.bytes());
  kernel.launches = norms;
  return {kernels({std::move(kernel)}),
          norms_backward(task, "expert input norm backward", PastBlock::kGradient),
          {},
          {expert_norm_inputs}};
}

/// Kernels of a training step that score, choose and count besides the one that chooses, and those
/// that prepare the dispatch: of some values a token and expert at most, so that each takes as long
/// as its latency.
void small_kernels(StepList& steps, const LayerTask& task, const char* name, std::int64_t kernels,
                   bool host_waits = false) {
  if (kernels == 0) return;
  Kernel kernel =
      elementwise(name, local_experts(task), task.work.split.ep, {sizeof(float), sizeof(float), 1});
  kernel.launches = kernels;
  kernel.host_waits = host_waits;
  steps.then(std::move(kernel));
}

void route_forward(StepList& steps, const LayerTask& task) {
  const std::int64_t rows = routed_tokens(task);
  const Linear router = router_of(task);
  steps.then(gemm(router.name, router.precision, {rows, router.out, router.in}));
  makes(steps, task, {router_input, router_scores});
  for (Kernel& kernel :
       expert_choice(rows, router.out, task.model.moe.experts_per_token, task.bytes()))
    steps.then(std::move(kernel));
  if (!task.work.trains()) {
    // Kernels of SGLang's biased_grouped_topk_impl and fused_topk_native (layers/moe/topk.py):
    // sigmoid, bias, two top-k, sum, zeros, scatter, copy, cast, not, fill, top-k, gather, sum,
    // quotient; without groups softmax, top-k, sum, quotient.
    constexpr std::int64_t kGrouped = 15, kPlain = 4;
    if (!task.work.kernels.on(kRouter))
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

void route_backward(StepList& steps, const LayerTask& task) {
  frees(steps, task, {router_scores});
  small_kernels(steps, task, "router backward kernels",
                expert_software(task).router_kernels.value / 2);
  local_backward(steps, task.work, router_of(task), task.work.split_tokens());
  frees(steps, task, {router_input});
}

/// The sum of experts of all ranks, or the tokens of all.
void gather_sums(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  if (all_reduces(task))
    steps.then(tensor_collective("expert output all-reduce", TransferKind::kAllReduce, w,
                                 task.model.hidden));
  else if (w.split.tp > 1 && !w.split.sp)
    steps.then(tensor_collective("expert output all-gather", TransferKind::kAllGather, w,
                                 task.model.hidden));
}

/// From sums in the width of routed experts to that of the model.
std::vector<LayerOp> widen_sums(const LayerTask& task) {
  std::vector<LayerOp> all;
  if (task.model.moe.latent_norm)
    all.push_back({kernels({rms_norm_of("expert latent norm", routed_tokens(task),
                                        task.model.moe.latent, task.bytes())})});
  all.push_back(local_op(latent_up(task), routed_tokens(task)));
  all.back().keeps = {expert_sums};
  return all;
}

}  // namespace

ExpertWeights moe_weights(const LayerTask& task) {
  const MoeConfig& m = task.model.moe;
  const std::int64_t hidden = task.model.hidden, columns = task.model.expert_columns();
  const Bias bias = m.expert_bias ? Bias::kPassedOn : Bias::kNone;
  Linear router = router_of(task);
  router.out = router.sixteen_bit = m.experts;
  Linear up{"expert up", columns, (task.model.mlp.gated ? 2 : 1) * split_width(task)};
  Linear down{"expert down", split_width(task), columns};
  up.split = MatrixSplit::kColumns;
  down.split = MatrixSplit::kRows;
  up.bias = down.bias = bias;
  ExpertWeights all{{{router}}, {{up, down}}};
  std::vector<Linear>& whole = all.whole.matrices;
  if (m.shared_intermediate > 0) whole.insert(whole.end(), {shared_up(task), shared_down(task)});
  if (m.shared_gate) whole.push_back({"shared gate", hidden, 1});
  if (m.latent > 0) whole.insert(whole.end(), {latent_down(task), latent_up(task)});
  const bool balanced = m.router_bias && !task.layer.hashed;
  all.whole.whole_vectors =
      (balanced ? m.experts : 0) + m.norms * hidden + (m.latent_norm ? m.latent : 0);
  return all;
}

std::vector<LayerOp> moe_ops(const LayerTask& task) {
  const bool latent = task.model.moe.latent > 0;
  const bool has_shared = task.model.moe.shared_intermediate > 0 && !shared_is_routed(task);
  const bool before = has_shared && task.work.trains() &&
                      expert_software(task).shared_experts.value == SharedExperts::kBeforeDispatch;
  const auto pass = std::make_shared<ExpertSteps>();
  const auto shared = [pass](StepList& steps, const LayerTask& of) {
    shared_forward(steps, of, *pass);
  };
  const auto begin = [pass](StepList& steps, const LayerTask& /*task*/) {
    *pass = {.input = steps.cursor()};
  };
  std::vector<LayerOp> all;
  const auto add = [&](std::vector<LayerOp> ops) {
    append(all, GraphPart::kOther, std::move(ops));
  };
  append(all, GraphPart::kRouting,
         {{begin},
          {before ? shared : LayerOp::Emit()},
          expert_norms(task),
          {route_forward, route_backward}});
  if (latent) add({local_op(latent_down(task), routed_tokens(task))});
  add(permute_ops(task));
  add({{{}, shared_backward}, first_weight_gradient(task, ExpertGradients::kBehindExchange, pass)});
  add(dispatch_ops(task));
  add({{has_shared && !before ? shared : LayerOp::Emit()}, {receive_dispatched}});
  add(expert_ops(task, pass));
  add(combine_ops(task, latent ? nullptr : pass));
  if (latent) {
    add(widen_sums(task));
    add({add_shared(pass)});
  }
  add({{{},
        norms_backward(task, "expert norm backward", PastBlock::kNothing),
        {},
        {},
        {expert_norm_inputs}},
       {gather_sums}});
  add({again_op(task, RecomputeModule::kMoe, all)});
  return all;
}

}  // namespace orrery
