// SPDX-License-Identifier: Apache-2.0
// Mixture of experts on one rank's share of the tokens: route, send every token to the ranks of its
// experts (dispatch), compute, send back, add up (combine). Routing is balanced, so that a rank
// receives as many rows as it sends, unless LayerWork::heaviest says otherwise: then this is the
// rank that receives the most, for which the others wait. Router and shared experts are whole.
//
// Where the matrices of experts are split over etp ranks, each of these works on the tokens of all
// of them, as in Megatron-Core (moe/token_dispatcher.py): with expert parallelism the rows that
// have arrived are gathered over etp, and the results reduced and scattered before they are sent
// back (alltoall dispatcher); without it tokens are gathered before they are copied to the rows of
// their experts, and reduced once the copies are added up (allgather dispatcher).
//
// Serving engines without data parallel attention do neither (LayerWork::all_reduces_experts): each
// rank routes all tokens to the experts, or parts of them, that it holds, works on its part of the
// shared experts, and an all-reduce adds up all (vLLM, layers/fused_moe/layer.py).
#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/llm/kept_tensors.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_parts.h"
#include "workloads/llm/layers.h"
#include "workloads/llm/linear.h"
#include "workloads/llm/real.h"

namespace orrery {
namespace {

bool all_reduces(const LayerTask& task) { return task.work.all_reduces_experts; }

/// Whether a part is computed again, but not with all of the experts.
bool again_alone(const LayerTask& task, RecomputeModule part) {
  return task.work.recomputes(part) && !task.work.recomputes(RecomputeModule::kMoe);
}

/// Whether tokens are gathered over etp themselves, not the rows that were made of them.
bool gathers_tokens(const LayerTask& task) {
  return task.work.etp > 1 && task.work.ep == 1 && !all_reduces(task);
}
bool gathers_rows(const LayerTask& task) {
  return task.work.etp > 1 && task.work.ep > 1 && !all_reduces(task);
}

/// Tokens that this rank routes.
std::int64_t routed_tokens(const LayerTask& task) {
  return all_reduces(task) ? task.work.tokens() : task.work.split_tokens();
}

/// Token copies that this rank's experts get, over the mean of all ranks.
double skew_of(const LayerTask& task) { return task.work.heaviest ? task.work.heaviest->skew : 1; }

/// Copies of each routed token that this rank makes.
double copies_of(const LayerTask& task) {
  const double all = real(task.model.moe.experts_per_token);
  return all_reduces(task) ? all / task.work.ep * skew_of(task) : all;
}

/// Columns of an expert on one of the ranks that share it.
std::int64_t split_width(const LayerTask& task) {
  return task.model.moe.intermediate / task.work.etp;
}

/// Tokens whose copies this rank puts into the rows of experts.
std::int64_t permuted_tokens(const LayerTask& task) {
  return routed_tokens(task) * (gathers_tokens(task) ? task.work.etp : 1);
}

/// Token copies that this rank sends out, and in balance receives.
std::int64_t sent_rows(const LayerTask& task) {
  return task.work.split_tokens() * task.model.moe.experts_per_token;
}

/// Rows of the experts' products in balance.
std::int64_t mean_expert_rows(const LayerTask& task) {
  if (!all_reduces(task)) return sent_rows(task) * task.work.etp;
  const std::int64_t copies = task.work.tokens() * task.model.moe.experts_per_token;
  return (copies + task.work.ep - 1) / task.work.ep;
}

/// Rows of its experts' products.
std::int64_t expert_rows(const LayerTask& task) {
  const std::int64_t mean = mean_expert_rows(task);
  return task.work.heaviest ? std::llround(real(mean) * skew_of(task)) : mean;
}

/// Tokens, for each expert parallel rank, that are routed to the experts of all.
double tokens_a_rank(const LayerTask& task) {
  const LayerWork& w = task.work;
  return all_reduces(task) ? real(w.tokens()) / w.ep : real(w.split_tokens() * w.etp);
}

/// Slots of its experts that some token picks.
double active_slots(const LayerTask& task) {
  const LayerWork& w = task.work;
  const double tokens = tokens_a_rank(task);
  return w.heaviest ? w.heaviest->active(tokens * w.ep)
                    : expected_active_slots(task.model.moe, w.ep, tokens);
}

/// Each expert gets its share of the rows; libraries choose tiles by the mean of all ranks.
ExpertLoad uneven_load(const LayerTask& task, const HeaviestRank& rank) {
  const double tokens = tokens_a_rank(task) * task.work.ep;
  ExpertLoad all;
  for (const EqualSlots& equal : rank.slots) {
    const double active = equal.active(tokens);
    all.experts += equal.count;
    if (active <= 0) continue;
    const ExpertLoad load = even_load(active, real(expert_rows(task)) * equal.share, equal.count);
    all.active += load.active;
    all.rows += load.rows;
    for (std::size_t i = 0; i < all.blocks.size(); ++i) all.blocks[i] += load.blocks[i];
  }
  all.expected = real(mean_expert_rows(task)) / all.experts;
  return all;
}

GroupedShape expert_shape(const LayerTask& task, std::int64_t n, std::int64_t k) {
  const LayerWork& w = task.work;
  const double active = active_slots(task);
  const double rows = real(expert_rows(task));
  const double slots = real(expert_slots(task.model.moe, w.ep));
  return {.experts = active,
          .rows = rows,
          .n = n,
          .k = k,
          .load = w.heaviest ? uneven_load(task, *w.heaviest) : even_load(active, rows, slots)};
}

GroupedShape expert_up(const LayerTask& task) {
  const std::int64_t inputs = task.model.mlp.gated ? 2 : 1;
  return expert_shape(task, inputs * split_width(task), task.model.hidden);
}

GroupedShape expert_down(const LayerTask& task) {
  return expert_shape(task, task.model.hidden, split_width(task));
}

/// Whole on every rank that works on its own tokens, split over those that work on the same.
std::int64_t shared_width(const LayerTask& task) {
  const std::int64_t whole = task.model.moe.shared_intermediate;
  return all_reduces(task) ? (whole + task.work.tp - 1) / task.work.tp : whole;
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
          unquantised(task.work.precision)};
}

/// Decoding sends each copy straight, as kernels for few tokens do; everything else sends a token
/// once to a rank.
ExpertRouting routing_of(const LayerTask& task) {
  const MoeConfig& moe = task.model.moe;
  const bool decode = task.work.phase == Phase::kDecode;
  const std::optional<HeaviestRank>& heaviest = task.work.heaviest;
  const bool in_order = !heaviest || heaviest->in_order;
  return {.experts = static_cast<int>(heaviest ? heaviest->placed : moe.experts),
          .top_k = static_cast<int>(moe.experts_per_token),
          .groups = in_order ? static_cast<int>(moe.groups) : 0,
          .top_groups = in_order ? static_cast<int>(moe.top_groups) : 0,
          .mode = decode ? ExpertRouting::Mode::kLowLatency : ExpertRouting::Mode::kNormal,
          .skew = skew_of(task),
          .hook = decode && task.work.takes_turns};
}

void exchange(StepList& steps, const std::string& name, TransferKind kind, const LayerTask& task,
              Precision precision) {
  if (task.work.ep == 1 || all_reduces(task)) return;
  LayerCollective collective;
  collective.name = name;
  collective.kind = kind;
  collective.scope = Scope::kExpert;
  collective.bytes = token_bytes(precision, task.model.hidden) * real(sent_rows(task));
  collective.routing = routing_of(task);
  steps.then(collective);
}

/// Rows that the ranks which share each expert's matrices have together.
std::int64_t shared_rows(const LayerTask& task) {
  return gathers_tokens(task) ? permuted_tokens(task) : expert_rows(task);
}

void gather(StepList& steps, const std::string& name, const LayerTask& task, Precision precision) {
  steps.then(LayerCollective{name + " all-gather", TransferKind::kAllGather, Scope::kExpertTensor,
                             token_bytes(precision, task.model.hidden) * real(shared_rows(task))});
}

void reduce(StepList& steps, const std::string& name, const LayerTask& task) {
  const double element = activation_bytes(task.work.precision);
  steps.then(LayerCollective{name + " reduce-scatter", TransferKind::kReduceScatter,
                             Scope::kExpertTensor,
                             Bytes(real(shared_rows(task) * task.model.hidden) * element)});
}

/// Tokens, or the gradients of the results, to the experts.
void dispatch(StepList& steps, const std::string& name, const LayerTask& task,
              Precision precision) {
  exchange(steps, name, TransferKind::kDispatch, task, precision);
  if (gathers_rows(task)) gather(steps, name, task, precision);
}

/// Results, or the gradients of the tokens, back and added up.
void combine(StepList& steps, const std::string& name, const LayerTask& task) {
  if (gathers_rows(task)) reduce(steps, name, task);
  exchange(steps, name, TransferKind::kCombine, task, unquantised(task.work.precision));
}

Kernel move_rows(const char* name, const LayerTask& task, StreamCost cost) {
  return stream(name, KernelClass::kElementwise, permuted_tokens(task), task.model.hidden, cost);
}

/// Beside the main path from `input`: nothing of the routed path waits for it until the results are
/// added.
std::size_t shared_forward(StepList& steps, const LayerTask& task, std::size_t input) {
  const std::int64_t rows = routed_tokens(task);
  const Linear up = shared_up(task), down = shared_down(task);
  std::size_t last =
      steps.aside(gemm(up.name, up.precision, {rows, up.out, up.in}, up.weights), {input});
  makes(steps, task, {kept::shared_input});
  last = steps.aside(activation_forward("shared expert activation", task, rows, down.in), {last});
  makes(steps, task, {kept::shared_function_input, kept::shared_down_input});
  return steps.aside(gemm(down.name, down.precision, {rows, down.out, down.in}, down.weights),
                     {last});
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

void route_forward(StepList& steps, const LayerTask& task) {
  const std::int64_t rows = routed_tokens(task);
  const double bytes = activation_bytes(task.work.precision);
  const double payload = std::min(bytes, element_bytes(task.precision(task.layer.feed)));
  const double copies = copies_of(task);
  const Linear router = router_of(task);
  steps.then(gemm(router.name, router.precision, {rows, router.out, router.in}));
  makes(steps, task, {kept::router_input, kept::router_scores});
  for (Kernel& kernel : expert_choice(rows, router.out, task.model.moe.experts_per_token, bytes))
    steps.then(std::move(kernel));
  if (gathers_tokens(task)) gather(steps, "expert tokens", task, unquantised(task.work.precision));
  steps.then(permute_tokens(permuted_tokens(task), task.model.hidden, copies, bytes, payload));
}

/// With the weights of the experts as the checkpoint stores them.
Kernel expert_product(const char* name, const LayerTask& task, const GroupedShape& shape) {
  const Precision stored = task.precision(task.layer.feed);
  const bool triton = task.work.triton_experts && stored == Precision::kFp8Block;
  Kernel kernel = grouped_gemm(name, triton ? Precision::kFp8 : stored, shape);
  kernel.weights = task.weights(task.layer.feed);
  const double saved =
      element_bytes(kernel.precision) - stored_weight_bytes(kernel.precision, kernel.weights);
  kernel.read -= Bytes(shape.experts * real(shape.n) * real(shape.k) * saved);
  return kernel;
}

void experts_forward(StepList& steps, const LayerTask& task) {
  GroupedShape up = expert_up(task);
  up.load.copies = up.rows;
  // Tokens that come here: all of the exchange, or one for each copy where those are fewer.
  const double tokens = all_reduces(task)
                            ? real(task.work.tokens())
                            : real(task.work.split_tokens() * task.work.ep * task.work.etp);
  up.load.choices = std::min(up.rows, tokens) * up.load.experts;
  steps.then(expert_product("expert up", task, up));
  makes(steps, task, {kept::expert_input});
  steps.then(activation_forward("expert activation", task, expert_rows(task), split_width(task)));
  makes(steps, task, {kept::expert_function_input, kept::expert_down_input});
  steps.then(expert_product("expert down", task, expert_down(task)));
  makes(steps, task, {kept::expert_outputs});
}

/// The copies of each token, and what the shared experts gave beside them.
void add_up(StepList& steps, const LayerTask& task, const std::vector<std::size_t>& shared) {
  const double bytes = activation_bytes(task.work.precision);
  const double copies = copies_of(task);
  const std::int64_t hidden = task.model.hidden;
  if (!gathers_tokens(task)) {
    const double shared_read = shared.empty() ? 0 : bytes;
    steps.join(combine_copies(permuted_tokens(task), hidden, copies, bytes, shared_read), shared);
    return;
  }
  steps.then(combine_copies(permuted_tokens(task), hidden, copies, bytes, 0));
  reduce(steps, "combine add", task);
  if (shared.empty()) return;
  steps.join(stream("shared expert add", KernelClass::kElementwise, task.work.split_tokens(),
                    hidden, {2 * bytes, bytes, 1}),
             shared);
}

void expert_weight_gradient(StepList& steps, const LayerTask& task, const std::string& name,
                            const GroupedShape& shape, std::size_t gradient) {
  if (task.work.lora.trains) return;  // frozen
  const GradientBuffer buffer = gradient_buffer(task.work);
  const std::size_t product = steps.for_weights(
      gradient_product(task.work,
                       grouped_weight_gradient(name, task.work.precision, shape, buffer)),
      {gradient});
  if (!buffer.apart) return;
  const auto rows = static_cast<std::int64_t>(std::ceil(shape.experts)) * shape.k;
  steps.for_weights(gradient_addition(name, rows, shape.n, buffer), {product});
}

void experts_backward(StepList& steps, const LayerTask& task) {
  if (again_alone(task, RecomputeModule::kMoeAct)) {
    steps.then(activation_forward("expert activation", task, expert_rows(task), split_width(task)));
    makes(steps, task.again(), {kept::expert_down_input});
  }
  std::size_t gradient = steps.cursor();
  steps.then(gradient_product(
      task.work, grouped_data_gradient("expert down", task.work.precision, expert_down(task))));
  expert_weight_gradient(steps, task, "expert down", expert_down(task), gradient);
  frees(steps, task, {kept::expert_down_input});
  steps.then(activation_backward("expert activation backward", task, expert_rows(task),
                                 split_width(task)));
  frees(steps, task, {kept::expert_function_input});
  gradient = steps.cursor();
  steps.then(gradient_product(
      task.work, grouped_data_gradient("expert up", task.work.precision, expert_up(task))));
  combine(steps, "dispatch backward", task);
  // After the exchange in issue order, so that it runs beside it.
  expert_weight_gradient(steps, task, "expert up", expert_up(task), gradient);
  frees(steps, task, {kept::expert_input});
}

}  // namespace

void moe_forward(StepList& steps, const LayerTask& task) {
  const LayerWork& w = task.work;
  const std::size_t input = steps.cursor();
  route_forward(steps, task);
  // In the format of the experts' matrices.
  dispatch(steps, "dispatch", task, task.precision(task.layer.feed));
  std::vector<std::size_t> shared;
  if (task.model.moe.shared_intermediate > 0) {
    shared.push_back(shared_forward(steps, task, input));
  }
  experts_forward(steps, task);
  combine(steps, "combine", task);
  add_up(steps, task, shared);
  if (all_reduces(task)) {
    steps.then(tensor_collective("expert output all-reduce", TransferKind::kAllReduce, w,
                                 task.model.hidden));
  } else if (w.tp > 1 && !w.sp) {
    steps.then(tensor_collective("expert output all-gather", TransferKind::kAllGather, w,
                                 task.model.hidden));
  }
}

void moe_backward(StepList& steps, const LayerTask& task) {
  const double bytes = activation_bytes(task.work.precision);
  const double copies = real(task.model.moe.experts_per_token);
  const Kernel norm = norm_forward("mlp norm", task, task.work.split_tokens());
  if (task.work.recomputes(RecomputeModule::kMoe)) {
    if (task.work.recomputes(RecomputeModule::kLayernorm)) steps.then(norm);
    moe_forward(steps, task.again());
  }
  if (gathers_tokens(task))
    gather(steps, "combine add backward", task, unquantised(task.work.precision));
  // Gradients of the gates need the experts' outputs.
  steps.then(move_rows("combine add backward", task,
                       {bytes + copies * bytes, copies * bytes, 2 * copies}));
  frees(steps, task, {kept::expert_outputs});
  dispatch(steps, "combine backward", task, unquantised(task.work.precision));
  experts_backward(steps, task);
  if (again_alone(task, RecomputeModule::kLayernorm)) {
    steps.then(norm);
    makes(steps, task.again(), {kept::router_input});
  }
  if (task.model.moe.shared_intermediate > 0) shared_backward(steps, task);
  steps.then(move_rows("permute backward", task, {copies * bytes, bytes, copies}));
  frees(steps, task, {kept::router_scores});
  if (gathers_tokens(task)) reduce(steps, "permute backward", task);
  local_backward(steps, task.work, router_of(task), task.work.split_tokens());
  frees(steps, task, {kept::router_input});
}

}  // namespace orrery
