// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/library.h"
#include "sim/config/schema.h"
#include "sim/machine/accelerator_config.h"
#include "sim/machine/kernel_fits.h"

namespace orrery {

/// Rows of a table that a written rule left out (validation/calibration/row_rules.h).
struct LeftOutRows {
  std::string table;
  Precision precision = Precision::kBf16;
  std::string rule;  ///< "faster than the memory"
  std::int64_t rows = 0;
  static const config::Schema<LeftOutRows>& schema();
};

/// The machine that was measured: rates that the efficiencies of a calibration are shares of, and
/// what else predictions depend on (0: not recorded, or there is none). Another machine is
/// predicted by the same shares, and extrapolated.
struct CalibratedRates {
  std::map<Precision, FlopsPerSecond> matrix;
  BytesPerSecond memory;
  int units = 0;
  Hertz clock;
  Bytes cache;
  Watts power;  ///< the cap
  static const config::Schema<CalibratedRates>& schema();
};

/// configs/calibrations/<device>.yaml, written by `orrery calibrate`.
struct Calibration {
  std::string id;           ///< name of the calibrated device: "h200_sxm"
  std::string accelerator;  ///< the configuration it was fitted with
  std::string model;        ///< model of kernels: "tiles" or "roofline"
  std::string made_with;    ///< program version and date of the fit
  CalibratedRates rates;
  std::vector<MeasurementFile> measurements;
  std::vector<LeftOutRows> left_out;
  KernelFits fits;
  std::vector<KernelFit> written_fits;  ///< those of a file while it is read; empty afterwards
  /// The measured device at the rates that were fitted: values go from it to other devices. Absent:
  /// the library has none of that name, and values stay as they are on other devices.
  std::optional<AcceleratorConfig> device;
  config::Node device_configuration;  ///< device as configured and completed; null where not read
  static const config::Schema<Calibration>& schema();
};

/// `device` at the rates that a calibration records.
AcceleratorConfig at_fitted_rates(AcceleratorConfig device, const CalibratedRates& rates);

/// When the fits of a file are parsed.
enum class FitsRead : std::uint8_t {
  kNow,       ///< what is wrong in them is wrong in the file
  kWhenAsked  ///< a fit when it is first used, its measured ratios when they are
};

/// Reads a calibration file, and the device that it was fitted on from the library.
/// @throws config::ConfigError with what is wrong and where.
Calibration load_calibration(const std::string& path,
                             const config::Library& library = config::default_library(),
                             FitsRead fits = FitsRead::kNow);

}  // namespace orrery
