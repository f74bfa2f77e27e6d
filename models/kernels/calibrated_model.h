// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/kernels/device/family.h"
#include "models/kernels/same_machine.h"
#include "sim/machine/calibration.h"
#include "sim/machine/kernel_model.h"

namespace orrery {

/// What a family says of a kernel: its time in closed form, and its thread blocks where it has
/// them.
struct KernelStructure {
  KernelTime closed;
  std::optional<BlockPlan> blocks;
};

/// Prices that also tell how a kernel is made.
class CalibratedPrices : public KernelPrices {
 public:
  /// A kernel by its family, with the parameters that price it.
  virtual KernelStructure structure(const Kernel& kernel) = 0;
};

/// Kernel times from families whose parameters a calibration has fitted, transferred by data sheet
/// where the accelerator is another one, times the ratio that the calibration's measured ratios
/// give near the measured shapes (residual_table.h); classes and precisions that it does not tell
/// about run on the priors of the accelerator.
///
/// What does not change from kernel to kernel of one accelerator is worked out once for the last
/// accelerators, and the costs of the last kernels are kept, for all prices that the model gives:
/// they serve one thread at a time.
class CalibratedModel final : public KernelModel {
 public:
  /// On priors alone.
  CalibratedModel();
  /// @throws config::ConfigError when the parameters are not those of its model; of a fit that has
  /// not been read, when it is first used.
  explicit CalibratedModel(std::shared_ptr<const Calibration> calibration);
  explicit CalibratedModel(const Calibration& calibration);
  CalibratedModel(const CalibratedModel&) = delete;  // slots point into the calibration
  CalibratedModel& operator=(const CalibratedModel&) = delete;
  ~CalibratedModel() override;

  std::unique_ptr<KernelPrices> on(const AcceleratorConfig& accelerator) const override;
  /// The same, with the structure of kernels.
  std::unique_ptr<CalibratedPrices> bound(const AcceleratorConfig& accelerator) const;
  /// A single kernel by its family; who asks for several keeps bound().
  KernelStructure structure(const Kernel& kernel, const AcceleratorConfig& accelerator) const;
  std::string calibration() const override { return calibration_ ? calibration_->id : ""; }

 private:
  /// What a fit says of a group: values by the index of the parameter.
  struct Entry {
    const KernelFit* fit = nullptr;
    std::map<std::size_t, double> values;
  };
  struct Slot;
  struct Device;
  class Devices;
  struct Prediction;
  class Prices;

  std::string model() const { return calibration_ ? calibration_->model : "roofline"; }
  /// Reads the fit, if nobody has.
  /// @throws config::ConfigError for parameters that the model has not
  Entry entry(const KernelFit& fit, const std::string& group) const;
  /// @param of its group becomes the one that was found
  std::optional<Entry> find(FamilyOf& of, Precision precision) const;
  std::vector<double> values(const FamilyOf& of, const std::optional<Entry>& entry,
                             Precision precision, const AcceleratorConfig& accelerator) const;
  bool other_rates(Precision precision, const AcceleratorConfig& accelerator) const;
  void fill(Slot& slot, const Kernel& kernel, const AcceleratorConfig& accelerator) const;
  std::shared_ptr<Device> make_device(const DeviceNumbers& numbers,
                                      const AcceleratorConfig& accelerator) const;
  const Slot& slot(Device& device, const Kernel& kernel,
                   const AcceleratorConfig& accelerator) const;
  static Prediction predict(const Slot& slot, const Kernel& kernel,
                            const AcceleratorConfig& accelerator);
  /// Times of a table repeat within some percent, those of short kernels on Blackwell within a
  /// tenth, and ratios have that in them. As a step must not get faster by more sequences or
  /// tokens, none of its kernels takes less than a smaller one of its kind.
  static double longest_smaller_us(const Slot& slot, const Kernel& kernel,
                                   const AcceleratorConfig& accelerator);
  /// On all units, or on as many as were fitted: a library may leave some alone. On fewer than
  /// were fitted no kernel takes less than on twice as many, which have more ways to split it.
  Prediction fastest(Device& on, const Kernel& kernel, const AcceleratorConfig& accelerator) const;
  KernelCost priced(Device& on, const Kernel& kernel, const AcceleratorConfig& accelerator) const;
  std::vector<std::vector<double>> drawn_values(const Slot& slot, std::int64_t seed) const;

  std::shared_ptr<const Calibration> calibration_;  ///< null: none
  /// Number of the fit by group and precision.
  std::map<std::pair<std::string, Precision>, std::size_t> fits_;
  std::unique_ptr<Devices> devices_;
};

}  // namespace orrery
