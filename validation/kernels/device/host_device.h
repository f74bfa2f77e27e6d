// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks functions that host code, unit tests and kernels share: plain C++ for a host compiler.
#ifdef __CUDACC__
#define ORRERY_HD __host__ __device__
#else
#define ORRERY_HD
#endif

/// Set while compiling for sm_90a, the only target with wgmma; the kernels that use Hopper's
/// instructions are empty elsewhere and are not launched there.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define ORRERY_HOPPER 1
#endif
