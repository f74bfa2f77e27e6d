// SPDX-License-Identifier: Apache-2.0
#include "device/device_info.h"

#include <array>
#include <cstdio>
#include <stdexcept>

#include "device/nvml.h"
#include "device/timing.cuh"
#include "host/names.h"

namespace orrery::measure {
namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  ORRERY_CUDA(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

/// GPUs of this machine that `index` reads directly.
int peers_of(int index, int devices) {
  int peers = 0;
  for (int other = 0; other < devices; ++other) {
    int can = 0;
    if (other != index) ORRERY_CUDA(cudaDeviceCanAccessPeer(&can, index, other));
    peers += can;
  }
  return peers;
}

DeviceInfo read_device(int index) {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
  if (index >= devices) {
    throw std::runtime_error("there is no GPU " + std::to_string(index) + ", only " +
                             std::to_string(devices));
  }
  ORRERY_CUDA(cudaSetDevice(index));
  cudaDeviceProp properties{};
  ORRERY_CUDA(cudaGetDeviceProperties(&properties, index));
  DeviceInfo device;
  device.index = index;
  device.name = properties.name;
  device.major = properties.major;
  device.minor = properties.minor;
  device.sms = properties.multiProcessorCount;
  device.max_clock_hz = 1e3 * attribute(cudaDevAttrClockRate, index);
  device.l2_bytes = properties.l2CacheSize;
  device.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  device.shared_bytes_per_block = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
  device.peers = peers_of(index, devices);
  return device;
}

std::string bus_id(int index) {
  std::array<char, 32> text{};
  ORRERY_CUDA(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), index));
  return text.data();
}

/// 13000 is "13.0".
std::string version_text(int version) {
  return std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
}

std::string uuid_text(int index) {
  cudaDeviceProp properties{};
  ORRERY_CUDA(cudaGetDeviceProperties(&properties, index));
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof properties.uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(properties.uuid.bytes[i])));
    text += digits.data();
  }
  return text;
}

}  // namespace

Context open_device(int index, const std::string& system) {
  Context context;
  context.device = read_device(index);
  context.system = system.empty() ? system_name(context.device.name) : system;
  const auto nvml = std::make_shared<const Nvml>(bus_id(index));
  context.state = [nvml] { return nvml->state(); };
  return context;
}

DeviceReport report_device(int index, const std::string& system) {
  const Context context = open_device(index, system);
  const Nvml nvml(bus_id(index));
  int driver = 0, runtime = 0;
  ORRERY_CUDA(cudaDriverGetVersion(&driver));
  ORRERY_CUDA(cudaRuntimeGetVersion(&runtime));
  DeviceReport report;
  report.device = context.device;
  report.system = context.system;
  report.uuid = uuid_text(index);
  report.driver = nvml.driver_version();
  report.cuda_driver = version_text(driver);
  report.cuda_runtime = version_text(runtime);
  report.ecc = nvml.ecc();
  report.max_sm_clock_mhz = nvml.max_sm_clock_mhz();
  report.max_memory_clock_mhz = nvml.max_memory_clock_mhz();
  report.memory_clock_mhz = nvml.memory_clock_mhz();
  report.power_cap_w = nvml.power_cap_w();
  report.state = nvml.state();
  return report;
}

}  // namespace orrery::measure
