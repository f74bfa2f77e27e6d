// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/host_device.h"
#include "device/number_formats.h"

/// wgmma (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"): D[64 x
/// N]
/// += A[64 x 32 bytes] B[N x 32 bytes]^T with D in registers, in the order of device/swizzle.h.
namespace orrery::measure {

#ifdef ORRERY_HOPPER

/// Orders accesses to accumulators and A registers before the following wgmma.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most `kPending` committed groups of this warpgroup are in flight.
template <int kPending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// ss: A and B by descriptor; rs: A from registers. Always accumulates.
template <Format kFormat, int kN>
struct Wgmma;

// The operand lists of the assembler text, by number of accumulators. Text cannot be computed, so
// they are spelled out: registers R<n>, and the constraints D<n>(first) of as many accumulators.
#define ORRERY_R4 "%0, %1, %2, %3"
#define ORRERY_R8 ORRERY_R4 ", %4, %5, %6, %7"
#define ORRERY_R16 ORRERY_R8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define ORRERY_R32 \
  ORRERY_R16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ORRERY_R48 \
  ORRERY_R32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define ORRERY_R64 \
  ORRERY_R48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define ORRERY_R96                                                                   \
  ORRERY_R64                                                                         \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define ORRERY_R128                                                                              \
  ORRERY_R96                                                                                     \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
  "%127"
#define ORRERY_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ORRERY_D8(i) ORRERY_D4(i), ORRERY_D4(i + 4)
#define ORRERY_D16(i) ORRERY_D8(i), ORRERY_D8(i + 8)
#define ORRERY_D32(i) ORRERY_D16(i), ORRERY_D16(i + 16)
#define ORRERY_D48(i) ORRERY_D32(i), ORRERY_D16(i + 32)
#define ORRERY_D64(i) ORRERY_D32(i), ORRERY_D32(i + 32)
#define ORRERY_D96(i) ORRERY_D64(i), ORRERY_D32(i + 64)
#define ORRERY_D128(i) ORRERY_D64(i), ORRERY_D64(i + 64)

// `a` to `f` are the operand numbers after the accumulators. bf16 alone has transpose immediates:
// of both operands when A is in shared memory, of B when it is in registers; 0 is K-major.
#define ORRERY_WGMMA(FORMAT, N, SHAPE, REGISTERS, TAIL_SS, TAIL_RS, a, b, c, e, f)          \
  template <>                                                                               \
  struct Wgmma<FORMAT, N> {                                                                 \
    static __device__ inline void ss(float (&d)[N / 2], std::uint64_t x, std::uint64_t y) { \
      asm volatile(                                                                         \
          "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"                                        \
          "wgmma.mma_async.sync.aligned.m64n" #N SHAPE " {" ORRERY_R##REGISTERS             \
          "}, %" #a ", %" #b ", p, 1, 1" TAIL_SS ";\n}\n"                                   \
          : ORRERY_D##REGISTERS(0)                                                          \
          : "l"(x), "l"(y));                                                                \
    }                                                                                       \
    static __device__ inline void rs(float (&d)[N / 2], const std::uint32_t (&x)[4],        \
                                     std::uint64_t y) {                                     \
      asm volatile(                                                                         \
          "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"                                        \
          "wgmma.mma_async.sync.aligned.m64n" #N SHAPE " {" ORRERY_R##REGISTERS             \
          "}, {%" #a ", %" #b ", %" #c ", %" #e "}, %" #f ", p, 1, 1" TAIL_RS ";\n}\n"      \
          : ORRERY_D##REGISTERS(0)                                                          \
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y));                            \
    }                                                                                       \
  };

#define ORRERY_WGMMA_N(N, R, a, b, c, e, f)                                              \
  ORRERY_WGMMA(Format::kBf16, N, "k16.f32.bf16.bf16", R, ", 0, 0", ", 0", a, b, c, e, f) \
  ORRERY_WGMMA(Format::kE4m3, N, "k32.f32.e4m3.e4m3", R, "", "", a, b, c, e, f)          \
  ORRERY_WGMMA(Format::kTf32, N, "k8.f32.tf32.tf32", R, "", "", a, b, c, e, f)

ORRERY_WGMMA_N(8, 4, 4, 5, 6, 7, 8)
ORRERY_WGMMA_N(16, 8, 8, 9, 10, 11, 12)
ORRERY_WGMMA_N(32, 16, 16, 17, 18, 19, 20)
ORRERY_WGMMA_N(64, 32, 32, 33, 34, 35, 36)
ORRERY_WGMMA_N(96, 48, 48, 49, 50, 51, 52)
ORRERY_WGMMA_N(128, 64, 64, 65, 66, 67, 68)
ORRERY_WGMMA_N(192, 96, 96, 97, 98, 99, 100)
ORRERY_WGMMA_N(256, 128, 128, 129, 130, 131, 132)

#endif

}  // namespace orrery::measure
