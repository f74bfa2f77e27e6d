// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/recurrent/scan_kernels.h"

namespace orrery {
namespace {

Kernel in_blocks(Kernel kernel) {
  constexpr std::int64_t kSide = 64;
  kernel.tile = {kSide, kSide};
  return kernel;
}

}  // namespace

Kernel scan_pass(const char* name, std::int64_t rows, std::int64_t width, StreamCost cost) {
  return stream(name, KernelClass::kScan, rows, width, cost);
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
  return in_blocks(scan_pass(name, rows, width, cost));
}

Kernel block_products(const char* name, ScanProducts p, double flops, double read, double written) {
  return in_blocks(scan_products(name, p, flops, read, written));
}

}  // namespace orrery
