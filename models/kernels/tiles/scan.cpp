// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/kernels/device/cache_parts.h"
#include "models/kernels/device/family.h"
#include "models/kernels/device/unit_work.h"
#include "models/kernels/tiles/matrix_product.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

enum Parameter : std::size_t {
  kLaunch,            ///< us of the launch
  kMatrixEfficiency,  ///< share of the matrix peak
  kVectorEfficiency,  ///< share of the vector peak, and of that of special functions
  kMemoryEfficiency,  ///< share of the memory bandwidth of kernels with products
  kStreamEfficiency,  ///< share of the memory bandwidth of the others
  kFusedEfficiency,   ///< share of the matrix peak of a kernel that does all of a chunk
  kFusedBlock,        ///< us of a thread block of such a kernel beside its chunks
  kBlock,             ///< us of a block of small kernels until it stores its first results
};

constexpr double kTile = 64;         ///< rows and columns of results of a thread block
constexpr double kResident = 2;      ///< blocks of a unit at a time
constexpr double kOperandBytes = 2;  ///< bytes of an element of what products multiply

/// Share of the memory's rate that Triton's kernels with products keep busy: chunk_gated_delta_rule
/// on an H100, of two sequences of 4,096 tokens with 8 heads less what two scans take
/// (flashinfer-ai/flashinfer pull request 3866, column FLA/Triton), 1.87 of 3.35 TB/s.
constexpr double kBusy = 0.7;
/// FLOP/clk of a unit that warps feed with operands as they were loaded: 64 tokens of a scan of
/// states take a block 1.17 us on an H100 (the former: one sequence of 8,192 tokens against two of
/// 4,096).
constexpr double kFedLoaded = 1000;
/// Bytes that a unit has under way a clock: chunks of 2,048 heads and sequences of 4,096 tokens
/// take 13.8 ms for 42 GB on a B200 (SGLang 0.5.14; NVIDIA AIConfigurator, 095f58a5, gdn), 3.05
/// TB/s. H100 and H200 reach the share of their memories that stands above.
constexpr double kUnderWay = 10.7;
/// us from a block's loads to its first results, beside the launch: updates of 4 states of 128 x
/// 128 take 4.4 us on H100 and B200, convolutions of one token 2.4 us (vLLM 0.24; the same table).
constexpr double kBlockUs = 2;
/// Where decays scale operands in registers in front of each product, matrix units run no faster
/// than warps feed them: by unit and clock the same from Ampere to Blackwell. 76 to 111 TFLOP/s on
/// an H100, 0.15 to 0.22 of 2,048 FLOP/clk: chunk scans of 65,536 tokens, 80 heads of 64 and chunks
/// of 256 in TileLang on an H800 take 1.278 ms (tile-ai/tilelang be9c08f benchmark/mamba2), on an
/// H100 6.98 ms eight times that (its issue 707), and Triton 1.77 times those (recalled: arXiv
/// 2504.17577).
constexpr double kFedScaled = 0.19 * 2048;
/// Products of Mamba-2 keep this much of the memory busy (scan_kernels.cpp).
constexpr double kFewWarps = 0.3;
/// FLOP/clk of a unit in a kernel that does all of a chunk, one head's block a unit at a time: a
/// chunk of 64 tokens, 128 columns of keys and of values takes 3.2 us on an H200 and 2.5 us on a
/// B200, and a block some 10 us beside its chunks (vLLM 0.24, FlashInfer's kernel; NVIDIA
/// AIConfigurator, 095f58a5, gdn).
constexpr double kFedFused = 2000;
constexpr double kFusedBlockUs = 10;

double tiles(std::int64_t size) { return std::ceil(static_cast<double>(size) / kTile); }

/// Whether the kernel says its tile, or only the tokens of a chunk: see ScanFamily.
bool is_small(const Kernel& kernel) { return kernel.tile[0] > 0; }
bool is_fused(const Kernel& kernel) { return kernel.tile[0] > 0 && kernel.tile[1] == 0; }

/// Whether decays scale operands in front of products: of Mamba-2, and of small kernels that
/// compute one for each pair of tokens.
bool scales_operands(const Kernel& kernel) {
  return !is_small(kernel) ||
         kernel.exponentials.base() > static_cast<double>(kernel.batch * kernel.k);
}

double units_of(const AcceleratorConfig& accelerator) {
  return static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
}

/// Whether the kernel reads and writes states, which other layers' have displaced from the L2
/// since.
bool is_update(const Kernel& kernel) {
  return is_small(kernel) && kernel.matrix_flops.base() == 0 && kernel.exponentials.base() > 0;
}

/// us that memory and L2 take at a share of the memory's rate: the kernel before has left in the L2
/// what fits there.
double streaming_us(const Kernel& kernel, const AcceleratorConfig& accelerator, double share) {
  const double bytes = (kernel.read + kernel.written).base();
  if (!accelerator.cache || !is_small(kernel) || is_update(kernel))
    return bytes / (memory_rate(accelerator) * share);
  const double kept = accelerator.cache->capacity.value.base() / accelerator.dies;
  return std::max(std::max(0.0, bytes - kept) / (memory_rate(accelerator) * share),
                  bytes / cache_rate(accelerator));
}

/// Share of the memory's rate that units of warps ask for; elsewhere memories deliver unasked.
double under_way(const AcceleratorConfig& accelerator) {
  const bool warps = accelerator.core && accelerator.core->max_warps.value > 0;
  const double asked = kUnderWay * static_cast<double>(accelerator.compute.units.value) *
                       accelerator.compute.clock.value.base();
  return warps ? asked / accelerator.memory.bandwidth.value.base() : 1;
}

/// What blocks in whole numbers take over what their work alone would: fewer than there are units
/// have one each to themselves, more run in waves of two a unit.
double wave_loss(double blocks, const AcceleratorConfig& accelerator) {
  const double units = units_of(accelerator);
  if (blocks <= 0) return 1;
  if (blocks <= units) return units / blocks;
  const double waves = blocks / (units * kResident);
  return std::ceil(waves) / waves;
}

/// Kernels of recurrent layers by the tiles of their published Triton implementations: a roofline
/// over thread blocks that each make a tile of 64 x 64 results. In a block products follow the
/// exponentials of decays, for a loop needs the ones to scale the operands of the others; tiles
/// load their operands through the L2. Kernels without products stream rows, or are recurrences
/// (models/kernels/device/unit_work.h).
///
/// Kernels that say their tile are those of flash-linear-attention: small ones, whose products take
/// operands as they were loaded. Those that say the tokens of a chunk alone do all of a chunk in
/// one thread block for each head, chunk after chunk, one block a unit. Those that leave it to the
/// library are Mamba-2's (state-spaces/mamba 2.2, mamba_ssm/ops/triton/ssd_*.py, 32 x 32 to
/// 128 x 256): decays scale operands in registers in front of each product, and registers leave few
/// warps.
class ScanFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
    static const std::vector<ParameterInfo> table = {
        {"launch", "us", 0.1, 1000},           {"matrix_efficiency", "1", 0.02, 1.5},
        {"vector_efficiency", "1", 0.02, 1.5}, {"memory_efficiency", "1", 0.05, 1},
        {"stream_efficiency", "1", 0.05, 1},   {"fused_efficiency", "1", 0.02, 1},
        {"fused_block", "us", 0.1, 100},       {"block", "us", 0.01, 20},
    };
    return table;
  }

  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override {
    const KernelConfig& model = accelerator.kernel;
    const Fact<double>* matrix = find_precision(model.matrix_efficiency, precision);
    const double most = matrix ? matrix->value : 1;
    const auto unit = accelerator.compute.matrix_per_clock.find(precision);
    const auto fed = [&](double per_clock) {
      const bool known =
          unit != accelerator.compute.matrix_per_clock.end() && unit->second.value > 0;
      return known ? std::min(most, per_clock / unit->second.value) : most;
    };
    return {model.launch.value.base() * kMicro,
            fed(kFedLoaded),
            model.vector_efficiency.value,
            std::min(kBusy * model.memory_efficiency.value, under_way(accelerator)),
            model.memory_efficiency.value,
            fed(kFedFused),
            kFusedBlockUs,
            kBlockUs};
  }

  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* v) const override {
    const double bytes = (kernel.read + kernel.written).base();
    const double vector = vector_us(kernel, accelerator) / v[kVectorEfficiency];
    KernelTime time;
    time.launch_us = v[kLaunch];
    const double start = v[kLaunch] + (is_small(kernel) ? v[kBlock] : 0);
    if (kernel.matrix_flops.base() == 0) {
      const double computed =
          is_recurrence(kernel) ? recurrence_us(kernel, accelerator, vector) : vector;
      const double memory = streaming_us(kernel, accelerator, v[kStreamEfficiency]);
      time.total_us = start + std::max(memory, computed);
      return time;
    }
    // One share of the memory is fitted, to rows of either kind: what lies between them stays.
    const double busy = v[kMemoryEfficiency] * (is_small(kernel) ? 1 : kFewWarps / kBusy);
    const double memory = streaming_us(kernel, accelerator, busy);
    if (is_fused(kernel)) {
      const double waves = std::ceil(static_cast<double>(kernel.batch) / units_of(accelerator));
      const double peak = (kernel.matrix_flops / matrix_peak(accelerator, kernel)).base() * kMicro *
                          units_of(accelerator);
      const double of_block = peak / (v[kFusedEfficiency] * static_cast<double>(kernel.batch));
      time.cache_bytes = bytes;
      time.total_us = v[kLaunch] + std::max(memory, waves * (v[kFusedBlock] + of_block));
      return time;
    }
    const double matrix =
        (kernel.matrix_flops / matrix_peak(accelerator, kernel)).base() * kMicro /
        (v[kMatrixEfficiency] * (scales_operands(kernel) ? kFedScaled / kFedLoaded : 1));
    const double blocks = static_cast<double>(kernel.batch) * tiles(kernel.m) * tiles(kernel.n);
    const double loaded = blocks * 2 * kTile * static_cast<double>(kernel.k) * kOperandBytes;
    const double cache = accelerator.cache ? loaded / cache_rate(accelerator) : 0;
    const double computed = (matrix + vector) * wave_loss(blocks, accelerator);
    time.loaded_bytes = loaded;
    time.cache_bytes = std::max(bytes, loaded);
    time.total_us = start + std::max({computed, memory, cache});
    return time;
  }
};

const RegisterTileFamily<ScanFamily> registered_scan_tiles(
    KernelClass::kScan, "scans of state-space layers by tiles of chunks");

}  // namespace
}  // namespace orrery
