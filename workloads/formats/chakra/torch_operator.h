// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/kernel.h"
#include "workloads/formats/node_tensors.h"

namespace orrery {

/// What a Chakra node says of the tensors of an operator (IOInfo), as PyTorch's execution trace
/// observer prints them: values such as "[[6, 7, 0, 65536, 4, 'cuda:0'], 1.0]" (tensor, storage,
/// offset, elements, bytes of an element, device), shapes "[[256, 256], []]" and types
/// "['Tensor(float)', 'Double']". https://github.com/pytorch/pytorch,
/// torch/csrc/profiler/standalone/execution_trace_observer.cpp.
struct TensorTexts {
  std::string_view values, shapes, types;
};

/// An operator of PyTorch by its tensors.
struct TorchOperator {
  std::vector<StorageUse> reads, writes;  ///< memory, each once
  /// What it computes and moves, if a rule knows the operator and its tensors have shapes and
  /// types.
  std::optional<Kernel> kernel;
};

/// "aten::mul" of "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"; of what is none, "".
std::string_view operator_of_schema(std::string_view schema);

/// The operator that a name and its tensors make: products (mm, bmm, matmul, addmm, baddbmm,
/// linear), convolutions, attention, softmax, norms and elementwise functions have rules, in place
/// or not. Nothing where the texts have no tensor with its memory.
std::optional<TorchOperator> torch_operator(std::string_view name, const TensorTexts& inputs,
                                            const TensorTexts& outputs);

}  // namespace orrery
