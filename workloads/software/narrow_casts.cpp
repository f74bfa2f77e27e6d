// SPDX-License-Identifier: Apache-2.0
#include "workloads/software/narrow_casts.h"

#include <array>

#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

Kernel pass(const NarrowOperand& operand, const char* what, const StreamCost& cost) {
  return elementwise(operand.name + what, operand.rows, operand.width, cost);
}

/// Rate of MXFP8 casts along both ways over that of kernels that read and write as much:
/// Transformer Engine's take 52.3 us for 8,192 x 8,192 on a B200 (column B200 of
/// ROCm/TransformerEngine pull request 598, 2026), 46.3 us here; along rows alone 34.8 us, as here.
constexpr double kBothWays = 0.885;

constexpr double kMxBlock = 32, kNvfp4Block = 16;  ///< values that share a scale of a byte

/// Scales of blocks a value; 0: products take scales as casts write them.
double scales_a_value(const TrainingSoftware& software, Precision precision) {
  if (precision == Precision::kNvfp4) return 1 / kNvfp4Block;
  const bool blocks = software.scaling(precision) == NarrowScaling::kBlocks;
  return precision == Precision::kFp8 && blocks ? 1 / kMxBlock : 0;
}

/// Scales of one byte, of both copies and of the matrix that one of them is multiplied with now:
/// a kernel each (Transformer Engine, common/gemm: swizzled before cuBLASLt reads them).
Kernel ordered_scales(const TrainingSoftware& software, const NarrowOperand& operand,
                      double a_value) {
  const double copies = 2;
  Kernel kernel = pass(operand, " scale order", {copies * a_value, copies * a_value, 0});
  kernel.launches = static_cast<std::int64_t>(copies);
  if (operand.weights > 0) {
    kernel.read += Bytes(operand.weights * a_value);
    kernel.written += Bytes(operand.weights * a_value);
    ++kernel.launches;
  }
  kernel.rate = software.nvfp4_cast_rate.value;
  return kernel;
}

}  // namespace

std::optional<Kernel> largest_value(const TrainingSoftware& software,
                                    const NarrowOperand& operand) {
  const bool of_tensor = software.scaling(operand.precision) == NarrowScaling::kCurrent ||
                         operand.precision == Precision::kNvfp4;
  if (!of_tensor) return std::nullopt;
  return pass(operand, " largest", {operand.wide, 0, 1});
}

std::vector<Kernel> narrow_casts(const TrainingSoftware& software, const NarrowOperand& operand) {
  const double wide = operand.wide, narrow = element_bytes(operand.precision);
  const HadamardCast transform =
      operand.precision == Precision::kNvfp4 ? software.hadamard_cast.value : HadamardCast::kNone;
  std::vector<Kernel> kernels;
  kernels.reserve(3);
  if (operand.made) {
    kernels.push_back(pass(operand, " transpose", {narrow, narrow, 0}));
  } else if (transform == HadamardCast::kApart) {
    kernels.push_back(pass(operand, " cast", {wide, narrow, 1}));
    kernels.push_back(pass(operand, " transformed cast", {wide, narrow, 1}));
  } else {
    kernels.push_back(pass(operand, " cast", {wide, 2 * narrow, 2}));
  }
  if (transform != HadamardCast::kNone) kernels.back().rate = software.nvfp4_cast_rate.value;
  const double scales = scales_a_value(software, operand.precision);
  if (scales > 0 && operand.precision == Precision::kFp8) kernels.back().rate = kBothWays;
  if (scales > 0 && software.scale_order.value == Fusion::kApart)
    kernels.push_back(ordered_scales(software, operand, scales));
  return kernels;
}

bool is_narrow_cast(std::string_view kernel) {
  constexpr std::array kPasses = {" largest",     " transformed cast",     " cast", " transpose",
                                  " scale order", " gathered scale order", " order"};
  for (const std::string_view pass : kPasses) {
    if (!kernel.ends_with(pass)) continue;
    const std::string_view operand = kernel.substr(0, kernel.size() - pass.size());
    if (operand.ends_with(" input") || operand.ends_with(" gradient")) return true;
  }
  return false;
}

std::vector<Kernel> gathered_order(const NarrowOperand& operand) {
  if (operand.precision != Precision::kNvfp4) return {};
  const double narrow = element_bytes(operand.precision), scales = 1 / kNvfp4Block;
  return {pass(operand, " order", {narrow, narrow, 0}),
          pass(operand, " gathered scale order", {scales, scales, 0})};
}

}  // namespace orrery
