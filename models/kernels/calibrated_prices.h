// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of CalibratedModel, for its own files.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/kernels/calibrated_model.h"
#include "models/kernels/residual_table.h"
#include "sim/graph/kernel.h"
#include "sim/machine/precision_names.h"

namespace orrery {

/// Costs that are kept, by the hash of the kernel.
inline constexpr std::size_t kMemoPlaces = 1024;
inline constexpr std::size_t kPricedPrecisions = std::size(config::EnumNames<Precision>::values);

/// What predicts kernels of one class and precision on one accelerator.
struct CalibratedModel::Slot {
  bool ready = false;
  FamilyOf of;
  std::optional<Entry> entry;  ///< none: priors alone
  std::vector<double> values;
  const ShapeRange* shapes = nullptr;  ///< ratios that were fitted; null: none
  bool narrow = false;                 ///< fitted to weights of fewer bits than operands
  bool other_rates = false;            ///< than the parameters were fitted with
  std::vector<double> shaken;          ///< parameters, a sibling's changed; empty: there are none
  double fitted_cache = 0;             ///< bytes/us of the L2 that fits have in them
  ResidualTable residuals;
  /// Parameters drawn with the last seed, which is that of all points of a sweep.
  mutable std::optional<std::int64_t> seed;
  mutable std::vector<std::vector<double>> drawn;
};

struct CalibratedModel::Device {
  struct Kept {
    Kernel kernel;
    KernelCost cost;
    bool used = false;
  };

  DeviceNumbers numbers{};
  /// With as many units as were fitted, where there are more, or with twice the units but no more
  /// than that, where there are fewer; null: else.
  std::shared_ptr<Device> other;
  AcceleratorConfig other_units;
  bool fewer = false;  ///< the other one has
  /// Slots of a class: for weights as wide as what they are computed in, of less than 8 bits, and
  /// of 8.
  std::vector<Slot> slots = std::vector<Slot>(kernel_classes().size() * 3 * kPricedPrecisions);
  std::vector<Kept> memo = std::vector<Kept>(kMemoPlaces);
};

struct CalibratedModel::Prediction {
  KernelTime time;
  double by_parameters_us = 0;  ///< us that the parameters alone give, without measured ratios
  bool fitted = false, extrapolated = false;
};

/// Prices on one device, whose tables they share with others on the same one.
class CalibratedModel::Prices final : public CalibratedPrices {
 public:
  Prices(const CalibratedModel& model, const AcceleratorConfig& accelerator,
         std::shared_ptr<Device> device)
      : model_(model), accelerator_(accelerator), device_(std::move(device)) {}

  KernelCost cost(const Kernel& kernel) override;
  /// No draw is faster than the rates of the device allow.
  std::vector<double> draws(const Kernel& kernel, std::int64_t seed) override;
  KernelStructure structure(const Kernel& kernel) override;

 private:
  std::vector<double> unbounded_draws(const Kernel& kernel, std::int64_t seed) const;
  double clock_of_work(const Kernel& kernel, const KernelCost& cost);

  const CalibratedModel& model_;
  const AcceleratorConfig& accelerator_;
  std::shared_ptr<Device> device_;
  /// The device at the clock as sold, where a what-if raised it; absent until a kernel is priced.
  std::optional<AcceleratorConfig> slower_;
  std::unique_ptr<CalibratedPrices> at_clock_as_sold_;
};

/// The same kernel over half of its sequences, of its cached tokens (new tokens over a cache) and
/// of its rows (products, those of experts too, which stay active), a quarter, an eighth, ..., in
/// all combinations: what can take no longer. None for kernels whose size is something else, and
/// for caches of unequal lengths.
std::vector<Kernel> smaller_kernels(const Kernel& kernel);

}  // namespace orrery
