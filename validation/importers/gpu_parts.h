// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/units/units.h"

namespace orrery {

/// An accelerator by its PCI identity.
struct GpuPart {
  std::uint16_t vendor = 0, device = 0;
  const char* name = "";
  const char* system = nullptr;       ///< system of the library that has it; null: none
  const char* accelerator = nullptr;  ///< where it is another one than that of the system
};

/// The part of a PCI identity, as the PCI ID Repository names it (pci-ids.ucw.cz, read 2026); null
/// for those that are not known.
const GpuPart* find_gpu_part(std::uint16_t vendor, std::uint16_t device);

/// The system that GPUs of a compute capability are sold in first, where a file tells no more; null
/// where the library has none.
const char* usual_system(int sm);

/// One NVLink of a compute capability (90 is 9.0), one way, at its line rate (NVIDIA's NVLink page,
/// data sheets of A40 and RTX A6000); nothing for unknown ones.
std::optional<BytesPerSecond> nvlink_rate(int sm);
/// One Infinity Fabric link of an architecture (gfx942), one way (AMD's CDNA white papers).
std::optional<BytesPerSecond> xgmi_rate(std::string_view architecture);

/// Systems of the library that have this accelerator, parted by commas; empty: none.
std::string systems_of_accelerator(const std::string& accelerator);
/// @throws config::ConfigError when `name` is no system of the library; paths are taken as they are
void require_system(const std::string& name);

}  // namespace orrery
