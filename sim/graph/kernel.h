// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/graph/precision.h"
#include "sim/units/units.h"

namespace orrery {

/// What a kernel is, for cost models, breakdowns and error classes.
enum class KernelClass : std::uint8_t {
  kGemm,
  kGroupedGemm,
  kAttentionPrefill,
  kAttentionDecode,
  kMlaPrefill,  ///< multi-head latent attention, keys and values expanded
  kMlaDecode,   ///< latent attention, absorbed: all heads attend to one latent
  kNormalization,
  kElementwise,
  kEmbedding,
  kSoftmax,
  kOptimizer,
  kQuantize,  ///< activations to a narrower format, scales included
  kCopy,      ///< copies by copy engines, on a stream of their own; no SM takes part
  kScan,      ///< kernels of state-space layers: chunks of scans, causal convolutions, gated norms
  kConvolution,  ///< filters over positions, as implicit products
  kSparse,  ///< kernels of sparse attention: scores of an indexer, selections, attention to those
  kLora,    ///< products with the narrow matrices of adapters, of all adapters of a batch in one
};
const char* to_string(KernelClass kind);

/// How a kernel starts behind the work before it.
enum class KernelStart : std::uint8_t {
  kAlone,   ///< once all of it has ended
  kEarly,   ///< programmatic dependent launch: its blocks are there, and set up, when it ends
  kWithin,  ///< part of the kernel or transfer before it: it has no launch of its own
};

/// What an attention kernel has beyond a matrix product; zero in others.
struct AttentionShape {
  std::int64_t sequences = 0;
  std::int64_t kv_heads = 0;  ///< heads of keys and values on this rank
  std::int64_t window = 0;    ///< earlier tokens that a query sees; 0: all
  bool wide_queries = false;  ///< 16-bit queries over an 8-bit cache
  /// New tokens over a cache: keys of each sequence, as they come, where they differ; n is their
  /// mean, rounded. Empty: n for all.
  std::vector<std::int64_t> lengths{};
  bool backward = false;  ///< the gradients of queries, keys and values
  /// Sparse attention: entries that the kernel computes for each token, whether the context has as
  /// many keys or fewer. 0: as many as it has keys.
  std::int64_t places = 0;

  bool operator==(const AttentionShape&) const = default;
};

/// How the weights of a matrix product are stored, where that differs from the precision it runs
/// in: narrower (they are widened in the main loop), or 2:4 sparse (two of every four are kept,
/// with two bits each that say which).
struct WeightFormat {
  std::int64_t bits = 0;  ///< bits of a stored element; 0: those of the precision
  bool sparse = false;    ///< 2:4 structured
  /// Widened by Marlin (arXiv 2408.11743), which takes as long as a product of wide weights that
  /// reads fewer bytes; else by the library's own kernels.
  bool marlin = false;
  /// Bits of scales and zero points that come with each element, of dense products: fits of those
  /// of experts have theirs in them.
  double scale_bits = 0;

  bool operator==(const WeightFormat&) const = default;
};

/// Bytes that each element of a matrix takes in memory, with scales where the format says them:
/// 0.5625 of dense for 16-bit elements that are 2:4 sparse.
double weight_bytes(Precision precision, WeightFormat format);

/// How rows are dealt out to the experts of a grouped product; zero in others. Tiles do not cross
/// experts, so that time depends on how many blocks of a tile's height the rows of each expert
/// fill.
struct ExpertLoad {
  static constexpr std::array<int, 6> kHeights = {16, 24, 32, 64, 128, 256};

  double active = 0;    ///< experts that get rows
  double rows = 0;      ///< token copies of all of them
  double experts = 0;   ///< experts that this rank holds, active or not
  double expected = 0;  ///< rows of an expert in balance, by which libraries choose their tiles
  std::array<double, kHeights.size()> blocks{};  ///< blocks of each height, summed over the experts
  double copies = 0;   ///< token copies that are sorted by expert before this product
  double choices = 0;  ///< tokens that are sorted times experts of the rank to sort them by

  bool operator==(const ExpertLoad&) const = default;
};

/// All active experts get the same number of rows, give or take one.
ExpertLoad even_load(double active, double rows, double experts);

/// One device kernel: what it computes and moves on one rank. Shapes follow BLAS and attention
/// usage:
///  - gemm: (m x k) * (k x n), `batch` independent ones; grouped: `batch` = active experts, m per
///  expert;
///  - copy: `batch` = copies that run at the same time, one way; bytes are those of all together;
///  - attention: m = query length, n = key length, k = head dimension, batch = sequences * query
///  heads.
/// FLOPs: a multiply-add is 2, sparse weights count as dense. Bytes: compulsory HBM traffic (each
/// operand once).
struct Kernel {
  std::string name;
  KernelClass kind = KernelClass::kElementwise;
  Precision precision = Precision::kBf16;  ///< precision of the matrix operands
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  Flops matrix_flops;  ///< FLOPs on tensor or cube cores
  Flops vector_flops;  ///< FLOPs on vector lanes
  Flops exponentials;  ///< exponentials of softmax, on special function units; one FLOP each
  Bytes read;
  Bytes written;
  Bytes host;  ///< copies: over the link to the host
  AttentionShape attention;
  WeightFormat weights;                ///< products: of the k x n matrix
  std::array<std::int64_t, 2> tile{};  ///< products: rows and columns of results that a thread
                                       ///< block makes; 0: the library chooses
  std::int64_t cluster = 0;  ///< products: blocks that are launched together and read operands for
                             ///< each other; 0: the library chooses
  ExpertLoad load;           ///< grouped products
  /// Bytes that the rank touches from one time the kernel reads weights or cached tokens to the
  /// next time that it reads the same ones, these included (reuse.h). 0: the kernel is repeated on
  /// its own, as where kernels are measured.
  Bytes reuse;
  /// Rate of the software's kernel over that of the kernels that were measured, launch apart.
  double rate = 1;
  /// Launches that it stands for. Those of grouped products run side by side; others follow each
  /// other, and each has its latency.
  std::int64_t launches = 1;
  KernelStart start = KernelStart::kAlone;
  Seconds issue;  ///< what the host takes to issue all of them; 0: a graph does
  /// The host reads what the kernel has found before it issues more.
  bool host_waits = false;

  bool operator==(const Kernel&) const = default;
};

}  // namespace orrery
