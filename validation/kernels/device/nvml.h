// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "host/measurement.h"

namespace orrery::measure {

/// Readings of one GPU from NVIDIA's management library, which comes with the driver and is loaded
/// at run time with declarations of our own: its header need not be installed. It only reads. Where
/// the library is missing, or the driver does not answer, numbers are NaN and texts empty.
class Nvml {
 public:
  /// @param pci_bus_id as cudaDeviceGetPCIBusId gives it: the two libraries count GPUs differently
  explicit Nvml(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// SM clock, power of this moment (a one-second mean on older drivers), temperature.
  DeviceState state() const;

  std::string driver_version() const;
  std::string ecc() const;  ///< "on" or "off"
  double max_sm_clock_mhz() const;
  double max_memory_clock_mhz() const;
  double memory_clock_mhz() const;
  double power_cap_w() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace orrery::measure
