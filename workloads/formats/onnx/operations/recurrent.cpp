// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: a product of all inputs, then one step after the other.
#include <fmt/core.h>

#include <utility>

#include "workloads/base/real.h"
#include "workloads/formats/onnx/operations/products.h"
#include "workloads/ops/kernels.h"

namespace orrery::onnx {
namespace {

constexpr std::int64_t kMostSteps = 100'000;

/// X (length x batch x width), W (directions x gates * hidden x width), R (directions x gates *
/// hidden x hidden). Each step reads R again.
void recurrent(Operation& op, std::size_t states) {
  const Dims x = op.in(0).dims, w = op.in(1).dims, r = op.in(2).dims;
  if (x.size() != 3 || w.size() != 3 || r.size() != 3 || w[2] != x[2] || w[1] != r[1] || r[2] < 1)
    op.refuse(
        fmt::format("an input of {} and weights of {} and {}", text_of(x), text_of(w), text_of(r)));
  const bool batch_first = op.integer("layout") != 0;
  const std::int64_t length = x[batch_first ? 1 : 0], batch = x[batch_first ? 0 : 1];
  const std::int64_t directions = w[0], hidden = r[2];
  if (length > kMostSteps) op.refuse("it has more than 100,000 steps");
  const DataType type = op.in(0).type;
  const Dims all = batch_first ? Dims{batch, length, directions, hidden}
                               : Dims{length, directions, batch, hidden};
  const Dims last = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  op.result(0, all, type);
  for (std::size_t i = 1; i <= states; ++i) op.result(i, last, type);
  const std::size_t projected = states + 1;
  op.result(projected, {directions, length, batch, w[1]}, type);
  Lowered& projection = multiply_kernel(op, {directions, length * batch, w[1], w[2]}, 0, 1);
  projection.reads.resize(2);
  projection.writes = {op.use_of_result(projected)};
  const Bytes inputs = op.use_of_result(projected).bytes / std::max(1.0, real(length));
  const Bytes state = op.use_of_result(1).bytes;
  for (std::int64_t step = 0; step < length; ++step) {
    const std::size_t made = projected + 1 + static_cast<std::size_t>(step);
    op.result(made, last, type);
    Lowered& lowered = multiply_kernel(op, {directions, batch, w[1], hidden}, 2, 2);
    lowered.kernel.vector_flops = Flops(real(directions * batch) * real(w[1]) * vector_cost::kSilu);
    lowered.reads = {op.use(2), {op.use_of_result(projected).value, inputs}};
    if (step > 0)
      lowered.reads.insert(lowered.reads.begin(), {op.use_of_result(made - 1).value, state});
    lowered.writes = {op.use_of_result(made)};
  }
  if (length == 0) return;
  Lowered& end = op.kernels.back();  // the last step leaves all results behind
  for (std::size_t i = 0; i <= states; ++i)
    end.writes.push_back({op.use_of_result(i).value, Bytes()});
}

const RegisterRules kRecurrent("a recurrent layer",
                               {
                                   {[](Operation& op) { recurrent(op, 2); }, {"LSTM"}},
                                   {[](Operation& op) { recurrent(op, 1); }, {"GRU", "RNN"}},
                               });

}  // namespace
}  // namespace orrery::onnx
