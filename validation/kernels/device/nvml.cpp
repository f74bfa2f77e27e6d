// SPDX-License-Identifier: Apache-2.0
// Declarations after NVIDIA's "NVML API Reference Guide": every function returns 0 for success.
#include "device/nvml.h"

#include <dlfcn.h>

#include <array>
#include <limits>

namespace orrery::measure {
namespace {

using Device = void*;
constexpr int kClockSm = 1, kClockMemory = 2;  // nvmlClockType_t
constexpr int kTemperatureGpu = 0;             // nvmlTemperatureSensors_t
constexpr unsigned kPowerInstant = 186;        // NVML_FI_DEV_POWER_INSTANT, milliwatts

/// Layout of nvmlFieldValue_t.
struct FieldValue {
  unsigned field = 0, scope = 0;
  long long timestamp_us = 0, latency_us = 0;
  int value_type = 0;
  int status = 0;
  union {
    double real;
    unsigned whole;
    unsigned long long wide;
  } value{};
};
static_assert(sizeof(FieldValue) == 40, "the layout of nvmlFieldValue_t");

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  Device device = nullptr;

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_bus)(const char*, Device*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*max_clock)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*power_limit)(Device, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*fields)(Device, int, FieldValue*) = nullptr;
  int (*ecc_mode)(Device, int*, int*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;

  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(handle, name));
  }

  void load() {
    handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return;
    find("nvmlInit_v2", init);
    find("nvmlShutdown", shutdown);
    find("nvmlDeviceGetHandleByPciBusId_v2", by_bus);
    find("nvmlDeviceGetClockInfo", clock);
    find("nvmlDeviceGetMaxClockInfo", max_clock);
    find("nvmlDeviceGetPowerUsage", power);
    find("nvmlDeviceGetEnforcedPowerLimit", power_limit);
    find("nvmlDeviceGetTemperature", temperature);
    find("nvmlDeviceGetFieldValues", fields);
    find("nvmlDeviceGetEccMode", ecc_mode);
    find("nvmlSystemGetDriverVersion", driver);
  }

  /// A reading through `function(device, arguments..., &value)`, times a scale.
  template <class Function, class... Arguments>
  double read(Function function, double scale, Arguments... arguments) const {
    unsigned value = 0;
    if (device == nullptr || function == nullptr || function(device, arguments..., &value) != 0) {
      return kUnknown;
    }
    return scale * value;
  }

  double power_w() const {
    FieldValue value;
    value.field = kPowerInstant;
    if (device != nullptr && fields != nullptr && fields(device, 1, &value) == 0 &&
        value.status == 0) {
      return 1e-3 * value.value.whole;
    }
    return read(power, 1e-3);
  }
};

Nvml::Nvml(const std::string& pci_bus_id) : library_(std::make_unique<Library>()) {
  library_->load();
  if (library_->init == nullptr || library_->by_bus == nullptr || library_->init() != 0) return;
  if (library_->by_bus(pci_bus_id.c_str(), &library_->device) != 0) library_->device = nullptr;
}

Nvml::~Nvml() {
  if (library_->device != nullptr && library_->shutdown != nullptr) library_->shutdown();
  if (library_->handle != nullptr) dlclose(library_->handle);
}

DeviceState Nvml::state() const {
  return {library_->read(library_->clock, 1, kClockSm), library_->power_w(),
          library_->read(library_->temperature, 1, kTemperatureGpu)};
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (library_->device == nullptr || library_->driver == nullptr ||
      library_->driver(text.data(), static_cast<unsigned>(text.size())) != 0) {
    return "";
  }
  return text.data();
}

std::string Nvml::ecc() const {
  int current = 0, pending = 0;
  if (library_->device == nullptr || library_->ecc_mode == nullptr ||
      library_->ecc_mode(library_->device, &current, &pending) != 0) {
    return "";
  }
  return current != 0 ? "on" : "off";
}

double Nvml::max_sm_clock_mhz() const { return library_->read(library_->max_clock, 1, kClockSm); }
double Nvml::max_memory_clock_mhz() const {
  return library_->read(library_->max_clock, 1, kClockMemory);
}
double Nvml::memory_clock_mhz() const { return library_->read(library_->clock, 1, kClockMemory); }
double Nvml::power_cap_w() const { return library_->read(library_->power_limit, 1e-3); }

}  // namespace orrery::measure
