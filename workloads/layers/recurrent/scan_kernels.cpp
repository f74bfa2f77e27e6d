// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/recurrent/scan_kernels.h"

#include "workloads/base/real.h"

namespace orrery {
namespace {

Kernel in_blocks(Kernel kernel) {
  constexpr std::int64_t kSide = 64;
  kernel.tile = {kSide, kSide};
  return kernel;
}

}  // namespace

Kernel scan_pass(const char* name, std::int64_t rows, std::int64_t width, StreamCost cost) {
  // Registers leave two warps a scheduler (NVIDIA/TensorRT-LLM pull request 11345: an occupancy of
  // 12.5 %), too few to fill the memory's queue. How much of its rate that leaves is inferred from
  // steps of a Mamba-2 of 1.34 G parameters on A100, H200 and GB200 (state-spaces/mamba issue 904:
  // 102.5, 239.2 and 360.4 TFLOP/s by 6 FLOPs a parameter and token, 16,384 tokens a step).
  constexpr double kFewWarps = 0.3;
  Kernel kernel = window_pass(name, rows, width, cost);
  kernel.rate = kFewWarps;
  return kernel;
}

Kernel window_pass(const char* name, std::int64_t rows, std::int64_t width, StreamCost cost) {
  return stream(name, KernelClass::kScan, rows, width, cost);
}

double convolution_flops(std::int64_t taps) {
  // causal_conv1d_fn moves 2.8, 2.4 and 2.2 TB/s on B200, H200 and H100, whatever their memories
  // do, in vLLM 0.24 and SGLang 0.5.14 alike: 80 FLOPs a result of four taps at 0.7 of the lanes'
  // peak (NVIDIA AIConfigurator, 095f58a5, gdn).
  constexpr double kBeside = 68;
  return 2 * real(taps) + vector_cost::kSilu + kBeside;
}

Kernel scan_products(const char* name, ScanProducts p, double flops, double read, double written) {
  Kernel kernel =
      matrix_kernel(name, KernelClass::kScan, Kernel().precision, {p.m, p.n, p.k, p.batch});
  kernel.matrix_flops = Flops(flops);
  kernel.read = Bytes(read);
  kernel.written = Bytes(written);
  return kernel;
}

Kernel block_pass(const char* name, std::int64_t rows, std::int64_t width, StreamCost cost) {
  return in_blocks(window_pass(name, rows, width, cost));
}

Kernel block_products(const char* name, ScanProducts p, double flops, double read, double written) {
  return in_blocks(scan_products(name, p, flops, read, written));
}

}  // namespace orrery
