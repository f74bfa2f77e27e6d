// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sim/machine/accelerator_config.h"
#include "sim/machine/kernel_model.h"
#include "validation/calibration/block_kernels.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// The models that price the rows of measured tables.
struct KernelModels {
  std::string calibration = "auto";  ///< name or path of the kernels' calibration, auto or none
  std::string baseline;              ///< calibration to compare with, or a folder of them
  std::string fidelity = "auto";     ///< fidelity of the kernel model: auto, closed or tile
};

/// A device of a table with the models that price its rows.
struct MeasuredDevice {
  AcceleratorConfig accelerator;
  std::unique_ptr<KernelModel> model;
  std::unique_ptr<KernelModel> baseline;  ///< another calibration's; null: none
  /// Name of the device whose calibration prices this one; not set if its own calibration does.
  std::string transferred;
  bool has_engine = false;  ///< kernels of the engine have calibrations of their own
  RowSoftware software;     ///< the kernels that the engine chooses on it
};

/// The devices of a table, each with the kernels of each engine that was measured on it.
class MeasuredDevices {
 public:
  MeasuredDevices(const OperatorTable& table, const KernelModels& models)
      : table_(table), models_(models) {}

  /// @param system, engine indices of the table
  /// @return null where no accelerator has the name of the system
  const MeasuredDevice* of(std::uint32_t system, std::uint32_t engine);
  /// The accelerator of a system of the table; null where none has its name.
  const AcceleratorConfig* accelerator(const std::string& system);

 private:
  const OperatorTable& table_;
  const KernelModels& models_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::optional<MeasuredDevice>> found_;
};

}  // namespace orrery
