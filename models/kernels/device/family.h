// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/kernels/device/block_schedule.h"
#include "sim/graph/costs.h"
#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Name, unit ("1", "us") and physical limits of a parameter.
struct ParameterInfo {
  const char* name;
  const char* unit;
  double lower, upper;
  bool fitted = true;  ///< false: by the data sheet of the device that was fitted
  /// A rule of the library that made the kernels, as a number: a fit takes the one of these that
  /// its rows bear out. Empty: a quantity.
  std::vector<double> choices = {};
};

/// What a family says of one kernel.
struct KernelTime {
  double total_us = 0;
  double launch_us = 0;  ///< the part of it that is launch overhead
  double clock = 1;      ///< clock of the units over the boost clock, by the throttle of the family
  double cache_bytes = 0;   ///< bytes that the L2 gives the units; 0: what the memory moves
  double loaded_bytes = 0;  ///< bytes that tiles load through the L2, what they share counted once
  double computed = 1;      ///< products and exponentials of whole tiles over those that count
  /// Time that systolic arrays are taken, with what their rows and columns leave idle.
  double arrays_us = 0;
  /// Bytes from and to the memory; none: all that the kernel reads and writes.
  std::optional<double> memory_bytes = {};
};

/// Where a kernel stands among those whose errors resemble its own: coordinates in which distance
/// is Euclidean, and about 1 is how far errors stay alike. Kernels of different parts (other code
/// paths of a library) tell nothing about each other.
struct ResidualPoint {
  int part = 0;
  std::array<double, 6> at{};
};

/// The time of kernels as a function of a few parameters, the same function on every device: what a
/// calibration fits, and a kernel model evaluates.
class KernelFamily {
 public:
  virtual ~KernelFamily() = default;

  virtual const std::vector<ParameterInfo>& parameters() const = 0;
  /// Values without any measurement, in the order of parameters().
  virtual std::vector<double> priors(const AcceleratorConfig& accelerator,
                                     Precision precision) const = 0;
  /// @param values in the order of parameters()
  /// @throws config::ConfigError when the accelerator has no rate for the kernel's precision.
  virtual KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                          const double* values) const = 0;
  /// The values on a device that nobody measured, from those fitted on another one and what the
  /// data sheets of both say. Rules belong to a family and are few; they were chosen with the
  /// development rows of the devices they are reported on in view, so their errors are no blind
  /// test. As they are where a family has no rule, and where the devices do not differ.
  virtual std::vector<double> transferred(const std::vector<double>& values,
                                          const AcceleratorConfig& /*from*/,
                                          const AcceleratorConfig& /*to*/, Precision) const {
    return values;
  }
  /// Nothing where a family has no residual table.
  /// @param values as for time()
  virtual std::optional<ResidualPoint> residual_point(const Kernel& /*kernel*/,
                                                      const AcceleratorConfig& /*on*/,
                                                      const double* /*values*/) const {
    return std::nullopt;
  }
  /// The thread blocks of a kernel, with the same parameters; nothing where a family has the closed
  /// form only. For long kernels of full waves both take the same time.
  /// @throws config::ConfigError as time()
  virtual std::optional<BlockPlan> blocks(const Kernel& /*kernel*/,
                                          const AcceleratorConfig& /*accelerator*/,
                                          const double* /*values*/) const {
    return std::nullopt;
  }
};

/// Index of a parameter by its name; the number of parameters where there is none.
std::size_t parameter_index(const KernelFamily& family, const std::string& name);

/// A family whose tiles are modelled, by the class of kernels that it is of.
struct TileFamily {
  std::string help;  ///< what of these kernels is modelled, in one line
  const KernelFamily* family = nullptr;
};
const std::map<KernelClass, TileFamily>& tile_families();

/// @throws std::logic_error for a class that has one
void add_tile_family(KernelClass kind, std::string help, const KernelFamily& family);

/// A file adds its family with one such object, which owns it.
template <class Family>
struct RegisterTileFamily {
  RegisterTileFamily(KernelClass kind, const char* help) { add_tile_family(kind, help, family); }
  Family family;
};

/// A family and the name under which classes of kernels share its parameters: the prefix of
/// parameters in a calibration ("gemm.launch").
struct FamilyOf {
  const KernelFamily* family = nullptr;
  std::string group;
};

/// What predicts a class of kernels in a model: "roofline" has one family for all classes, "tiles"
/// has families of its own where tiles are modelled and the roofline elsewhere.
/// @throws config::ConfigError for an unknown model.
FamilyOf family_of(const std::string& model, KernelClass kind);
/// Products of weights that are stored narrower than they are computed in have parameters of their
/// own, in a group named after the bits of a weight: "grouped_gemm_w4".
FamilyOf family_of(const std::string& model, const Kernel& kernel);
/// The group that stands in where a calibration does not have one: "grouped_gemm".
std::string wide_group(const std::string& group);

}  // namespace orrery
