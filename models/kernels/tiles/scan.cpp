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
  kMemoryEfficiency,  ///< share of the memory bandwidth
};

constexpr double kTile = 64;         ///< rows and columns of results of a thread block
constexpr double kResident = 2;      ///< blocks of a unit at a time
constexpr double kOperandBytes = 2;  ///< bytes of an element of what products multiply

/// Share of the memory's rate that Triton's kernels keep busy: chunk_gated_delta_rule on an H100,
/// of two sequences of 4,096 tokens with 8 heads less what two scans take (flashinfer-ai/flashinfer
/// pull request 3866, column FLA/Triton), 1.87 of 3.35 TB/s; 2.59 of 4.8 TB/s between 128 and 1,024
/// sequences of state updates on an H200 (vllm-project/vllm pull request 31722, TP=4).
constexpr double kBusy = 0.7;
/// FLOP/clk of a unit that warps feed with operands as they were loaded: 64 tokens of a scan of
/// states take a block 1.17 us on an H100 (the former: one sequence of 8,192 tokens against two of
/// 4,096).
constexpr double kFedLoaded = 1000;
/// Where decays scale operands in registers in front of each product, matrix units run no faster
/// than warps feed them: by unit and clock the same from Ampere to Blackwell. 76 to 111 TFLOP/s on
/// an H100, 0.15 to 0.22 of 2,048 FLOP/clk: chunk scans of 65,536 tokens, 80 heads of 64 and chunks
/// of 256 in TileLang on an H800 take 1.278 ms (tile-ai/tilelang be9c08f benchmark/mamba2), on an
/// H100 6.98 ms eight times that (its issue 707), and Triton 1.77 times those (recalled: arXiv
/// 2504.17577).
constexpr double kFedScaled = 0.19 * 2048;
/// Registers leave two warps a scheduler (NVIDIA/TensorRT-LLM pull request 11345: an occupancy of
/// 12.5 %), too few to fill the memory's queue. How much of its rate that leaves is inferred from
/// steps of a Mamba-2 of 1.34 G parameters on A100, H200 and GB200 (state-spaces/mamba issue 904:
/// 102.5, 239.2 and 360.4 TFLOP/s by 6 FLOPs a parameter and token, 16,384 tokens a step).
constexpr double kFewWarps = 0.3;

double tiles(std::int64_t size) { return std::ceil(static_cast<double>(size) / kTile); }

/// Whether the kernel says its tile: see ScanFamily.
bool is_small(const Kernel& kernel) { return kernel.tile[0] > 0; }

/// What blocks in whole numbers take over what their work alone would: fewer than there are units
/// have one each to themselves, more run in waves of two a unit.
double wave_loss(double blocks, const AcceleratorConfig& accelerator) {
  const double units = static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
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
/// operands as they were loaded. Those that leave it to the library are Mamba-2's
/// (state-spaces/mamba 2.2, mamba_ssm/ops/triton/ssd_*.py, 32 x 32 to 128 x 256): decays scale
/// operands in registers in front of each product, and registers leave few warps. No table has been
/// measured: parameters are estimates, but for what published times say (priors).
class ScanFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
    static const std::vector<ParameterInfo> table = {
        {"launch", "us", 0.1, 1000},
        {"matrix_efficiency", "1", 0.02, 1.5},
        {"vector_efficiency", "1", 0.02, 1.5},
        {"memory_efficiency", "1", 0.05, 1},
    };
    return table;
  }

  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override {
    const KernelConfig& model = accelerator.kernel;
    const Fact<double>* matrix = find_precision(model.matrix_efficiency, precision);
    double efficiency = matrix ? matrix->value : 1;
    const auto unit = accelerator.compute.matrix_per_clock.find(precision);
    if (unit != accelerator.compute.matrix_per_clock.end() && unit->second.value > 0)
      efficiency = std::min(efficiency, kFedLoaded / unit->second.value);
    return {model.launch.value.base() * kMicro, efficiency, model.vector_efficiency.value,
            kBusy * model.memory_efficiency.value};
  }

  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* v) const override {
    const double bytes = (kernel.read + kernel.written).base();
    // One share of the memory is fitted, to rows of either kind: what lies between them stays.
    const double busy = v[kMemoryEfficiency] * (is_small(kernel) ? 1 : kFewWarps / kBusy);
    const double memory = bytes / (memory_rate(accelerator) * busy);
    const double vector = vector_us(kernel, accelerator) / v[kVectorEfficiency];
    KernelTime time;
    time.launch_us = v[kLaunch];
    if (kernel.matrix_flops.base() == 0) {
      const double computed =
          is_recurrence(kernel) ? recurrence_us(kernel, accelerator, vector) : vector;
      time.total_us = v[kLaunch] + std::max(memory, computed);
      return time;
    }
    const double matrix = (kernel.matrix_flops / matrix_peak(accelerator, kernel)).base() * kMicro /
                          (v[kMatrixEfficiency] * (is_small(kernel) ? 1 : kFedScaled / kFedLoaded));
    const double blocks = static_cast<double>(kernel.batch) * tiles(kernel.m) * tiles(kernel.n);
    const double loaded = blocks * 2 * kTile * static_cast<double>(kernel.k) * kOperandBytes;
    const double cache = accelerator.cache ? loaded / cache_rate(accelerator) : 0;
    const double computed = (matrix + vector) * wave_loss(blocks, accelerator);
    time.loaded_bytes = loaded;
    time.cache_bytes = std::max(bytes, loaded);
    time.total_us = v[kLaunch] + std::max({computed, memory, cache});
    return time;
  }
};

const RegisterTileFamily<ScanFamily> registered_scan_tiles(
    KernelClass::kScan, "scans of state-space layers by tiles of chunks");

}  // namespace
}  // namespace orrery
