// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "sim/config/declared.h"

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

/// A switch of the kernels of serving engines. Who declares one adds its key to `engine.kernels`: a
/// file that chooses kernels declares the switches that it reads.
class KernelSwitch {
 public:
  /// @param otherwise for engines of which no version is known
  /// @throws std::logic_error if there are too many, or the keys of engines are made already
  KernelSwitch(const char* key, bool otherwise, const char* help);
  KernelSwitch(const KernelSwitch&) = delete;
  KernelSwitch& operator=(const KernelSwitch&) = delete;

 private:
  friend struct KernelRules;
  const char* key_;
  bool otherwise_;
  const char* help_;
  std::size_t index_;
};

/// Kernels of a serving engine.
struct KernelRules {
  static constexpr std::size_t kMostSwitches = 32;
  std::array<EngineSwitch, kMostSwitches> switches = {};  ///< values of all switches
  /// Where products have fp8 with scales of blocks and tensor cores do not scale blocks.
  ExpertKernels experts = ExpertKernels::kMeasured;

  bool on(const KernelSwitch& which) const;
  /// @throws std::out_of_range for a key that no file has declared
  bool on(std::string_view key) const;
  void set(const KernelSwitch& which, bool on);
  void set(std::string_view key, bool on);
  bool operator==(const KernelRules&) const = default;
  static const config::Schema<KernelRules>& schema();
};

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
