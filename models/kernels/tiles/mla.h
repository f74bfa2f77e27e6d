// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/device/family.h"

namespace orrery {

/// Latent attention over a prompt, keys and values expanded (DeepSeek-V2, arXiv 2405.04434): the
/// tiles of prefill.h with wider keys than values, and before them kernels that assemble queries
/// and keys and write the latents to the cache.
class MlaPrefillFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override;
  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override;
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override;
  std::optional<ResidualPoint> residual_point(const Kernel& kernel,
                                              const AcceleratorConfig& on) const override;
  /// Exponentials follow compute.special.
  std::vector<double> transferred(const std::vector<double>& values, const AcceleratorConfig& from,
                                  const AcceleratorConfig& to, Precision precision) const override;
  /// A kind of block for each row of tiles, in the order of a head; heads repeat it.
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* values) const override;
};

/// Latent attention of new tokens, absorbed: all heads of a sequence attend to one latent. Blocks
/// of 64 heads take even shares of all steps of all sequences (FlashMLA's schedule), or whole parts
/// of a context by TensorRT-LLM's rules on Blackwell (latent_blocks.h); parts of a sequence are put
/// together afterwards.
class MlaDecodeFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override;
  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override;
  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override;
  std::optional<ResidualPoint> residual_point(const Kernel& kernel,
                                              const AcceleratorConfig& on) const override;
  /// Blocks by decode_blocks.h: even shares of all steps, or parts of contexts.
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* values) const override;
};

}  // namespace orrery
