// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "sim/config/schema.h"

namespace orrery {

/// A switch of an engine: its version decides (auto), or the user does.
enum class EngineSwitch : std::uint8_t { kAuto, kOn, kOff };

/// Kernels that run the products of experts.
enum class ExpertKernels : std::uint8_t {
  kMeasured,  ///< the kernels whose times were measured
  kTriton,    ///< Triton's fused_moe, which scales its sums: priced as products of fp8
  kDeepGemm,  ///< DeepGEMM: priced as dense products of its kernel, an expert behind the other
  kMarlin,    ///< Marlin's, which widen weights (WeightFormat::marlin)
};

/// Kernels of a serving engine. Each switch has the same name in configurations and in layers.
/// Defaults are those of an engine of which no version is known.
struct KernelRules {
  EngineSwitch router = EngineSwitch::kOn;           ///< one kernel chooses experts
  EngineSwitch allreduce_norm = EngineSwitch::kOff;  ///< all-reduces add the residual and norm
  EngineSwitch pdl = EngineSwitch::kOff;             ///< programmatic dependent launch
  /// Kernels before a product quantise its input. Off: kernels of their own do; of dense products
  /// alone, measured times of experts have it in them.
  EngineSwitch quant_fusion = EngineSwitch::kOn;
  /// Where products have fp8 with scales of blocks and tensor cores do not scale blocks.
  ExpertKernels experts = ExpertKernels::kMeasured;
  /// Where ranks add up experts of all tokens, the shared one is one more of the routed ones.
  EngineSwitch shares_as_routed = EngineSwitch::kOff;
  /// Two batches of decodes take turns by stages of a layer. Off: by exchanges.
  EngineSwitch decodes_by_stages = EngineSwitch::kOn;
  /// Each operation of a graph has a kernel: norms and their weights, residuals, matrices that
  /// others join, rotations, writes to the cache, scores, softmax and values.
  EngineSwitch operators_apart = EngineSwitch::kOff;
  /// Kernels of their own quantise the input of each product whose weights are narrow.
  EngineSwitch quantises_widened = EngineSwitch::kOff;
  /// Heads of decodes read keys and values each for itself, also those that others share.
  EngineSwitch decodes_by_head = EngineSwitch::kOff;

  bool operator==(const KernelRules&) const = default;
  static const config::Schema<KernelRules>& schema();
};

inline bool is_on(EngineSwitch value) { return value == EngineSwitch::kOn; }

namespace config {

template <>
struct EnumNames<EngineSwitch> {
  static constexpr std::pair<EngineSwitch, const char*> values[] = {{EngineSwitch::kAuto, "auto"},
                                                                    {EngineSwitch::kOn, "on"},
                                                                    {EngineSwitch::kOff, "off"},
                                                                    {EngineSwitch::kOn, "true"},
                                                                    {EngineSwitch::kOff, "false"}};
};

/// SGLang calls the kernels that were measured cutlass.
template <>
struct EnumNames<ExpertKernels> {
  static constexpr std::pair<ExpertKernels, const char*> values[] = {
      {ExpertKernels::kMeasured, "measured"},  {ExpertKernels::kTriton, "triton"},
      {ExpertKernels::kDeepGemm, "deep_gemm"}, {ExpertKernels::kMarlin, "marlin"},
      {ExpertKernels::kMeasured, "auto"},      {ExpertKernels::kMeasured, "cutlass"}};
};

}  // namespace config

}  // namespace orrery
