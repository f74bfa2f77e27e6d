// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sim/units/units.h"

namespace orrery {

/// Number formats of matrix operands. `fp8_block` is FP8 with one scale per 1x128 or 128x128 block.
enum class Precision : std::uint8_t { kFp32, kTf32, kBf16, kFp16, kFp8, kFp8Block, kNvfp4, kInt8 };

/// Bytes of one element (0.5 for nvfp4; scales of block formats are not counted).
double element_bytes(Precision precision);
/// The name used in YAML and results: "bf16", "fp8_block", ...
const char* to_string(Precision precision);

/// What a kernel is, for cost models, breakdowns and error classes.
enum class KernelClass : std::uint8_t {
  kGemm,
  kGroupedGemm,
  kAttentionPrefill,
  kAttentionDecode,
  kMlaPrefill,  ///< multi-head latent attention, keys and values expanded
  kMlaDecode,   ///< the same, absorbed: all heads attend to one latent
  kNormalization,
  kElementwise,
  kEmbedding,
  kSoftmax,
  kOptimizer,
  kQuantize,  ///< activations to a narrower format, scales included
  kCopy,      ///< by a copy engine, on a stream of its own; no SM takes part
};
const char* to_string(KernelClass kind);

/// What an attention kernel has beyond a matrix product; zero in others.
struct AttentionShape {
  std::int64_t sequences = 0;
  std::int64_t kv_heads = 0;  ///< heads of keys and values on this rank
  std::int64_t window = 0;    ///< earlier tokens that a query sees; 0: all
  bool wide_queries = false;  ///< 16-bit queries over an 8-bit cache

  bool operator==(const AttentionShape&) const = default;
};

/// How the second operand of a product is stored where that differs from `precision`: weights of
/// `bits` (0: as the precision says) that are widened on the way in, and 2:4 structured sparsity.
struct WeightFormat {
  std::int64_t bits = 0;
  bool sparse = false;

  bool operator==(const WeightFormat&) const = default;
};

/// One device kernel: what it computes and moves on one rank. Shapes follow BLAS and attention
/// usage:
///  - gemm: (m x k) * (k x n), `batch` independent ones; grouped: `batch` = active experts, m per
///  expert;
///  - attention: m = query length, n = key length, k = head dimension, batch = sequences * query
///  heads.
/// FLOPs count a multiply-add as 2 (of sparse weights as if they were dense). Bytes are compulsory
/// HBM traffic (each operand once).
struct Kernel {
  std::string name;
  KernelClass kind = KernelClass::kElementwise;
  Precision precision = Precision::kBf16;  ///< of the matrix operands
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  Flops matrix_flops;  ///< on tensor or cube cores
  Flops vector_flops;  ///< on vector lanes
  Bytes read;
  Bytes written;
  Bytes host;  ///< copies: over the link to the host
  AttentionShape attention;
  WeightFormat weights;
  std::array<std::int64_t, 2> tile{};  ///< rows and columns of a thread block's; 0: the library's

  bool operator==(const Kernel&) const = default;
};

}  // namespace orrery
