// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/graph/precision.h"
#include "sim/machine/precision_names.h"
#include "sim/machine/structure_config.h"
#include "sim/units/units.h"

namespace orrery {

/// Data sheets round all figures of a product: by how much they may differ and still be the same.
inline constexpr double kSheetRounding = 0.03;

// The help in a schema says what each key of a configuration is; comments here say what it leaves
// out.

/// Arithmetic of one package. Rates are dense peaks.
struct ComputeConfig {
  Fact<int> units;    ///< SMs, AI cores, ...
  Fact<Hertz> clock;  ///< clock at which the matrix peaks hold
  std::optional<Fact<Hertz>> boost_clock;
  std::map<Precision, Fact<FlopsPerSecond>> matrix;  ///< tensor or cube cores
  std::map<Precision, Fact<FlopsPerSecond>> matrix_inference;
  std::map<Precision, Fact<double>> matrix_per_clock;
  Fact<FlopsPerSecond> vector;  ///< fp32 lanes
  std::optional<Fact<FlopsPerSecond>> special;
  Fact<double> structured_sparsity{.value = 1};  ///< speed-up of 2:4 sparse operands
  Fact<double> full_accumulation{.value = 1};
  std::optional<ArraysConfig> arrays;
  static const config::Schema<ComputeConfig>& schema();
};

/// Device memory of one package. The organisation is given whole or not at all, and gives the
/// bandwidth: stacks x bus_width x data_rate, also when one of them is changed (what_if.h).
struct MemoryConfig {
  std::string kind = "HBM";
  Fact<Bytes> capacity;
  Fact<BytesPerSecond> bandwidth;
  std::optional<Fact<int>> stacks;                ///< HBM stacks, or DRAM packages
  std::optional<Fact<int>> bus_width;             ///< data pins (bits) of one of them
  std::optional<Fact<BytesPerSecond>> data_rate;  ///< data rate of one pin
  /// tRFC / tREFI, the share of the time of all-bank refresh; per-bank refresh hides a part. 0:
  /// nothing is refreshed (SRAM), or nothing is known.
  Fact<double> refresh;
  std::optional<Fact<BytesPerSecond>> exchange;
  std::optional<Fact<Bytes>> flash;
  /// Not configured: the memory as sold, whose losses a what-if of the bandwidth keeps (what_if.h).
  std::shared_ptr<const MemoryConfig> sold;
  static const config::Schema<MemoryConfig>& schema();
};

/// Ports of one package, one way. A device without such ports leaves them out: 0 links.
struct PortConfig {
  std::string kind;  ///< "NVLink 5", "UB", "InfiniBand NDR"
  Fact<int> links;
  Fact<BytesPerSecond> bandwidth;  ///< all links together, one way
  bool present() const { return bandwidth.value.base() > 0; }
  static const config::Schema<PortConfig>& schema();
};

/// What the device did before. `burst`: a kernel after the load that tables are measured with, a
/// few replays of itself from idling: it takes what is measured. `steady`: repeated without end, so
/// that no window of power.response averages above the cap. By kind: burst for operators, steady
/// for steps and collectives.
enum class PowerState : std::uint8_t { kByKind, kBurst, kSteady };
const char* to_string(PowerState state);

/// The cap is what the clock is solved for (clock.h): below floor_clock x boost clock the voltage
/// is at its floor, above it rises linearly.
struct PowerConfig {
  Fact<Watts> tdp;   ///< the cap of the part as sold
  Fact<Watts> idle;  ///< power without a job: no context open, clocks low
  std::optional<Fact<Watts>> active;
  /// One unit (SM) that runs or waits for the memory, at the boost clock: its clock tree,
  /// schedulers and registers, whatever its work takes. Follows clock x voltage^2.
  Fact<Watts> busy{};
  Fact<double> uncertainty{0.15,
                           "estimate: energies by data sheet; those of devices whose power was "
                           "measured are 8 to 11 % off"};
  std::optional<Fact<Watts>> limit;  ///< a lower cap that somebody set; absent: tdp
  Fact<double> floor_clock{0.6,
                           "prior, estimate: near 1.2 of 1.98 GHz of an H100; no vendor prints it"};
  Fact<double> floor_voltage{0.7, "prior, estimate: 0.7 V of about 1 V; no vendor prints it"};
  Fact<double> spread{
      0.036,
      "estimate: GPUs of a kind perform 8 % apart (Sinha et al. 2022, arXiv 2208.11035), taken as "
      "5.4 deviations (whiskers of a box plot), x 2.4: power over clock near the boost clock"};
  Fact<Seconds> response{Seconds(0.02),
                         "prior, estimate: power management averages over 10 to 50 ms"};
  PowerState state = PowerState::kByKind;  ///< state of an experiment: power_state() (experiment.h)
  Watts cap() const { return limit ? limit->value : tdp.value; }
  /// Drawn at least while a job runs: `active`, or `idle` where that is not known.
  Watts floor() const { return active ? active->value : idle.value; }
  static const config::Schema<PowerConfig>& schema();
};

/// Energy above idle. `memory`, `cache` and `shared` cover the whole way to the cores of a byte
/// that is found there; `scale_up` and `scale_out` are per byte of a message, for the whole way
/// between two packages.
struct EnergyConfig {
  /// A matrix operation with all that belongs to it: operands from registers and shared memory,
  /// instruction, clock tree, leakage under load.
  std::map<Precision, Fact<JoulesPerFlop>> matrix;
  /// The multiply-adds of the matrix unit alone, a part of `matrix`; what DRAM is compared with
  /// (energy_rule.h). Absent: unknown.
  std::map<Precision, Fact<JoulesPerFlop>> multiply_add;
  Fact<JoulesPerFlop> vector;
  Fact<JoulesPerByte> memory;
  /// Drawn beyond `memory`, which is added up from parts, for a byte of DRAM: what was measured on
  /// boards has networks on chip, controllers and conversion in it.
  Fact<JoulesPerByte> transport{};
  Fact<JoulesPerByte> cache;  ///< 0: there is none
  Fact<JoulesPerByte> shared;
  Fact<JoulesPerByte> scale_up;
  Fact<JoulesPerByte> scale_out;
  static const config::Schema<EnergyConfig>& schema();
};

/// Parameters of the p-norm roofline (models/kernels/device/roofline.cpp): priors until a
/// calibration replaces them.
struct KernelConfig {
  std::map<Precision, Fact<double>> matrix_efficiency;  ///< achievable share of the matrix peak
  Fact<double> vector_efficiency;
  Fact<double> memory_efficiency;  ///< achievable share of the memory bandwidth
  Fact<double> exponent;           ///< p of (t_compute^p + t_memory^p)^(1/p)
  Fact<Seconds> launch;            ///< fixed cost of a kernel
  Fact<double> uncertainty{0.4,
                           "holds 80 % of published figures of 124 sources that rest on priors "
                           "within p10 to p90, validation/README.md"};
  static const config::Schema<KernelConfig>& schema();
};

/// A published result that the model of a device misses by more than its interval. A run that the
/// error may concern prints it under its figures, and its interval reaches to it.
struct KnownError {
  std::string experiment;              ///< kind of experiment that it concerns: "serving"
  std::optional<Precision> precision;  ///< precision that it concerns; absent: all
  double slower = 1;                   ///< measured time over the predicted one
  std::string error;                   ///< predicted and measured figure, and the likely cause
  std::string source;
  static const config::Schema<KnownError>& schema();
};

/// The errors that concern an experiment of one kind in one precision.
/// @return one line each: "MI300X: fp8 training ... (source)"
std::vector<std::string> lines_of(const std::vector<KnownError>& errors, const std::string& device,
                                  const std::string& experiment, Precision precision);

/// The largest `slower` of the errors that concern an experiment of one kind in one precision; 1
/// where none does.
double slowest_of(const std::vector<KnownError>& errors, const std::string& experiment,
                  Precision precision);

/// An accelerator package. A rank is a die: per-rank figures are those of the package over `dies`.
struct AcceleratorConfig {
  // Defined once: they are long, and many files copy one.
  AcceleratorConfig();
  AcceleratorConfig(const AcceleratorConfig&);
  AcceleratorConfig(AcceleratorConfig&&) noexcept;
  AcceleratorConfig& operator=(const AcceleratorConfig&);
  AcceleratorConfig& operator=(AcceleratorConfig&&) noexcept;
  ~AcceleratorConfig();
  std::string id;    ///< "h100_sxm": what configurations call it
  std::string name;  ///< "NVIDIA H100 SXM5 80GB"
  std::string architecture;
  std::optional<Fact<int>> year;    ///< first year in which it is to be had; absent: not known
  int dies = 1;                     ///< dies that are ranks of their own
  Fact<BytesPerSecond> die_to_die;  ///< one way; 0 where dies is 1
  ComputeConfig compute;
  MemoryConfig memory;
  std::optional<CoreConfig> core;      ///< absent: only rates are known, no structure
  std::optional<CacheConfig> cache;    ///< absent: units read the memory directly
  std::optional<LaunchConfig> launch;  ///< absent: kernel.launch is all that is known
  PortConfig scale_up;
  PortConfig scale_out;
  PortConfig host_link;  ///< PCIe or chip-to-chip; what copy engines reach over it
  std::optional<CopyEngineConfig> copy_engines;  ///< absent: they keep up with links and memory
  PowerConfig power;
  EnergyConfig energy;
  KernelConfig kernel;
  std::vector<std::string> approximations;
  std::vector<KnownError> known_errors;
  /// The calibration in the library that tells about this device; empty: none. What extends an
  /// accelerator keeps its calibration.
  std::string calibration;
  /// The part of the device that this is; absent: the whole. Once read, all members are those of
  /// the part (partition.h).
  std::optional<PartitionConfig> partition;
  /// Not configured: what follows from figures that were changed, one line each, and the device
  /// before (what_if.h). Nothing where nothing was changed.
  std::vector<std::string> followed;
  std::shared_ptr<const AcceleratorConfig> sold;
  static const config::Schema<AcceleratorConfig>& schema();
};

namespace config {

template <>
struct EnumNames<PowerState> {
  static constexpr std::pair<PowerState, const char*> values[] = {
      {PowerState::kByKind, "auto"},
      {PowerState::kBurst, "burst"},
      {PowerState::kSteady, "steady"},
      {PowerState::kBurst, "boost"},  // its name before
  };
};

}  // namespace config

}  // namespace orrery
