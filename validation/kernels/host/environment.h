// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "host/measurement.h"

namespace orrery::measure {

/// What is worth knowing about the GPU when its numbers are read years later. NaN and empty text
/// stand for what the driver does not tell.
struct DeviceReport {
  DeviceInfo device;
  std::string system;
  std::string uuid, driver, cuda_driver, cuda_runtime;
  std::string ecc;  ///< "on", "off", or empty
  double max_sm_clock_mhz = 0, max_memory_clock_mhz = 0, memory_clock_mhz = 0, power_cap_w = 0;
  DeviceState state;
};

enum class Status { kOk, kFailed, kSkipped };

/// How one measurement ended.
struct Outcome {
  int number = 0;
  std::string name;
  Status status = Status::kOk;
  std::string reason;  ///< reason of a failure or a skip, or a remark; empty for none
  std::int64_t rows = 0;
  double seconds = 0;
};

/// The run as a whole.
struct RunInfo {
  std::string version, date, command_line;
  Depth depth = Depth::kQuick;
  std::uint64_t seed = 0;
};

/// The `device:` section of environment.yaml.
std::string device_yaml(const DeviceReport& report);

/// environment.yaml: the run, the device's section as given, and every measurement so far.
std::string environment_yaml(const RunInfo& run, const std::string& device_section,
                             const std::vector<Outcome>& outcomes);

/// A moment such as "2026-01-31T12:00:00Z".
std::string utc(std::chrono::system_clock::time_point moment);

}  // namespace orrery::measure
