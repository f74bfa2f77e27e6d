// SPDX-License-Identifier: Apache-2.0
// Tensors of frozen matrices that are stored in few bits.
#include <algorithm>
#include <vector>

#include "workloads/base/real.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/linear.h"

namespace orrery {
namespace {

/// Elements of each dense matrix of a layer. GPTQ has gate and up apart, as Hugging Face models do.
std::vector<double> frozen_matrices(const LayerTask& task) {
  std::vector<double> matrices;
  const auto add = [&](const Linear& linear) {
    const bool pair = task.work.lora.frozen == FrozenFormat::kGptq &&
                      linear.adapted->module == LoraModule::kGateUpProj && task.model.mlp.gated;
    for (int i = 0; i < (pair ? 2 : 1); ++i)
      matrices.push_back(real(linear.in * linear.out) / (pair ? 2 : 1));
  };
  for (const Linear& linear : adapted_linears(task)) add(linear);
  return matrices;
}

}  // namespace

Bytes widening_bytes(const LayerTask& task) {
  const RankWork& w = task.work;
  if (!w.lora.trains || w.lora.frozen == FrozenFormat::kAsTrained) return {};
  double largest = 0;
  for (const double elements : frozen_matrices(task)) largest = std::max(largest, elements);
  // GPTQ shifts packed words to an int32 for each value and narrows that to a byte.
  const bool shifts = w.lora.frozen == FrozenFormat::kGptq;
  return Bytes(largest * (shifts ? 4 + 1 : training_bytes(w.formats.precision)));
}

namespace kept {

Tensor widened_weights(const LayerTask& task) {
  double elements = 0;
  if (task.work.lora.trains && task.work.lora.frozen == FrozenFormat::kGptq)
    for (const double matrix : frozen_matrices(task)) elements += matrix;
  return of_layer("widened weights", task, elements * task.bytes());
}

}  // namespace kept
}  // namespace orrery
