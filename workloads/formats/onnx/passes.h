// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "workloads/formats/onnx/lowered.h"

namespace orrery::onnx {

inline constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

/// Which kernels make and read each value, by its number.
struct Users {
  explicit Users(const LoweredModel& model)
      : maker(model.values.size(), kNobody),
        readers(model.values.size()),
        kept(model.values.size(), false) {
    for (std::size_t i = 0; i < model.kernels.size(); ++i) {
      for (const ValueUse& use : model.kernels[i].writes) maker[use.value] = i;
      for (const ValueUse& use : model.kernels[i].reads) readers[use.value].push_back(i);
    }
    for (std::size_t i = 0; i < model.outputs.size(); ++i) kept[model.output(i)] = true;
  }
  std::vector<std::size_t> maker;
  std::vector<std::vector<std::size_t>> readers;
  std::vector<bool> kept;  ///< results of the model
};

/// What every runtime does to a model before it runs: batch norms go into the weights of the
/// convolution or product before them (a bias is left), what nobody reads is not computed, and
/// products read transposed operands where they stand.
void simplify(LoweredModel& model);

/// Kernels that go over the same elements become one, as compilers of graphs do it (XLA's loop
/// fusion, TorchInductor, TensorRT's pointwise fusion): functions of each element, sums over rows
/// with what is done to them and to the elements of their rows, and slices and concatenations among
/// these. What lies between them does not leave the chip; an input of several is read once. What
/// would have to wait for itself stays apart.
void group_elements(LoweredModel& model);

}  // namespace orrery::onnx
