// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/onnx/passes.h"

#include <algorithm>
#include <utility>

#include "workloads/base/real.h"

namespace orrery::onnx {
namespace {

void drop(LoweredModel& model, const std::vector<bool>& gone) {
  std::vector<Lowered> left;
  for (std::size_t i = 0; i < model.kernels.size(); ++i)
    if (!gone[i]) left.push_back(std::move(model.kernels[i]));
  model.kernels = std::move(left);
}

void fold_batch_norms(LoweredModel& model) {
  const Users users(model);
  std::vector<bool> gone(model.kernels.size(), false);
  for (std::size_t i = 0; i < model.kernels.size(); ++i) {
    const Lowered& norm = model.kernels[i];
    if (norm.op != "BatchNormalization" || norm.reads.empty()) continue;
    const ValueId input = norm.reads.front().value;
    const std::size_t maker = users.maker[input];
    if (maker == kNobody || users.kept[input] || users.readers[input].size() != 1) continue;
    Lowered& product = model.kernels[maker];
    const bool has_weights =
        product.kernel.kind == KernelClass::kConvolution || product.op == "Gemm";
    if (!has_weights || gone[maker]) continue;
    const bool constant =
        std::all_of(norm.reads.begin() + 1, norm.reads.end(),
                    [&](const ValueUse& use) { return model.values[use.value].constant; });
    if (!constant || product.writes.size() != 1) continue;
    product.writes = {norm.writes.front()};
    if (product.reads.size() == 2) {  // the shift is its bias now: the norm's last but two
      product.kernel.vector_flops += Flops(real(norm.elements));
      if (norm.reads.size() > 2) product.reads.push_back(norm.reads[2]);
    }
    gone[i] = true;
  }
  drop(model, gone);
}

void drop_unread(LoweredModel& model) {
  std::vector<bool> needed(model.values.size(), false), gone(model.kernels.size(), false);
  for (std::size_t i = 0; i < model.outputs.size(); ++i) needed[model.output(i)] = true;
  for (std::size_t i = model.kernels.size(); i-- > 0;) {
    const Lowered& lowered = model.kernels[i];
    gone[i] = std::none_of(lowered.writes.begin(), lowered.writes.end(), [&](const ValueUse& use) {
      return needed[use.value] && elements_of(model.values[use.value].dims) > 0;
    });
    if (gone[i]) continue;
    for (const ValueUse& use : lowered.reads) needed[use.value] = true;
  }
  drop(model, gone);
  // Nobody asks for second results that nobody reads.
  for (Lowered& lowered : model.kernels)
    if (lowered.writes.size() > 1)
      std::erase_if(lowered.writes, [&](const ValueUse& use) { return !needed[use.value]; });
}

/// BLAS reads operands transposed and with strides.
void read_transposed(LoweredModel& model) {
  const Users users(model);
  std::vector<bool> gone(model.kernels.size(), false);
  for (std::size_t i = 0; i < model.kernels.size(); ++i) {
    const Lowered& transpose = model.kernels[i];
    if (transpose.op != "Transpose") continue;
    const ValueId made = transpose.writes.front().value, from = transpose.reads.front().value;
    const bool products = std::all_of(
        users.readers[made].begin(), users.readers[made].end(), [&](std::size_t reader) {
          return model.kernels[reader].kernel.kind == KernelClass::kGemm;
        });
    if (!products || users.kept[made]) continue;
    for (const std::size_t reader : users.readers[made])
      for (ValueUse& use : model.kernels[reader].reads)
        if (use.value == made) use.value = from;
    gone[i] = true;
  }
  drop(model, gone);
}

}  // namespace

void simplify(LoweredModel& model) {
  fold_batch_norms(model);
  drop_unread(model);
  read_transposed(model);
}

}  // namespace orrery::onnx
