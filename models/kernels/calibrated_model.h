// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/kernels/family.h"
#include "sim/machine/calibration.h"
#include "sim/machine/kernel_model.h"

namespace orrery {

/// What a family says of a kernel: its time in closed form, and its thread blocks where it has
/// them.
struct Structure {
  KernelTime closed;
  std::optional<BlockPlan> blocks;
};

/// Kernel times from families whose parameters a calibration has fitted; classes and precisions
/// that it does not tell about run on the priors of the accelerator.
class CalibratedModel final : public KernelModel {
 public:
  /// On priors alone.
  CalibratedModel() = default;
  /// @throws config::ConfigError when the parameters are not those of its model.
  explicit CalibratedModel(const Calibration& calibration);
  CalibratedModel(const CalibratedModel&) = delete;  // entries point into the calibration
  CalibratedModel& operator=(const CalibratedModel&) = delete;

  KernelCost cost(const Kernel& kernel, const AcceleratorConfig& accelerator) const override;
  std::vector<double> draws(const Kernel& kernel, const AcceleratorConfig& accelerator,
                            std::int64_t seed) const override;
  /// A kernel by its family, with the parameters that price it.
  Structure structure(const Kernel& kernel, const AcceleratorConfig& accelerator) const;
  std::string calibration() const override { return calibration_ ? calibration_->id : ""; }

 private:
  /// A fit, and its values by the index of the parameter.
  struct Entry {
    const KernelFit* fit = nullptr;
    std::map<std::size_t, double> values;
  };

  std::string model() const { return calibration_ ? calibration_->model : "roofline"; }
  const Entry* find(const std::string& group, Precision precision) const;
  std::vector<double> values(const FamilyOf& of, const Entry* entry, const Kernel& kernel,
                             const AcceleratorConfig& accelerator) const;
  bool extrapolates(const Entry& entry, const Kernel& kernel,
                    const AcceleratorConfig& accelerator) const;
  std::vector<std::vector<double>> drawn_values(const FamilyOf& of, const Entry& entry,
                                                const std::vector<double>& values,
                                                std::int64_t seed) const;

  std::optional<Calibration> calibration_;
  std::map<std::pair<std::string, Precision>, Entry> entries_;  ///< by group
};

}  // namespace orrery
