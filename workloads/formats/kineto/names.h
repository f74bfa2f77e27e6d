// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/graph/kernel.h"
#include "workloads/formats/kineto/event.h"

namespace orrery::kineto {

/// What the name of a kernel tells.
struct NameFacts {
  KernelClass kind = KernelClass::kElementwise;
  bool classified = false;  ///< else `kind` means nothing
  bool product = false;     ///< does the arithmetic of a matrix product or convolution
  bool attention() const {
    return classified &&
           (kind == KernelClass::kAttentionPrefill || kind == KernelClass::kAttentionDecode);
  }
  bool collective = false;  ///< NCCL or RCCL
  bool tf32 = false;        ///< 32-bit operands on tensor cores
};

std::string in_small_letters(std::string_view text);

/// Knows the kernels of cuBLAS, cuDNN, CUTLASS, rocBLAS, Tensile, MIOpen, FlashAttention, PyTorch,
/// Triton, FBGEMM by what their names contain.
NameFacts facts_of(std::string_view kernel);

/// The product that an operator of PyTorch computes, by the sizes of its operands: mm, addmm, bmm,
/// baddbmm, linear, convolutions, attention forward. Nothing where it is none or the trace has no
/// sizes.
std::optional<Kernel> product_of(const Event& event);

/// A copy or fill of so many bytes, by the name that CUPTI gives it ("Memcpy HtoD (Pageable ->
/// Device)").
Kernel copy_of(std::string_view name, std::int64_t bytes);

}  // namespace orrery::kineto
