// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "sim/config/fact.h"
#include "sim/config/schema.h"
#include "sim/graph/kernel.h"
#include "sim/machine/precision_names.h"
#include "sim/units/units.h"

namespace orrery {

/// Arithmetic of one package. Rates are dense peaks.
struct ComputeConfig {
  std::string unit_kind = "SM";
  Fact<int> units;                                   ///< SMs, AI cores, ...
  Fact<Hertz> clock;                                 ///< at which the matrix peaks hold
  std::map<Precision, Fact<FlopsPerSecond>> matrix;  ///< tensor or cube cores
  std::map<Precision, Fact<FlopsPerSecond>>
      matrix_inference;         ///< where a vendor rates inference apart
  Fact<FlopsPerSecond> vector;  ///< fp32 lanes
  static const config::Schema<ComputeConfig>& schema();
};

/// Device memory of one package.
struct MemoryConfig {
  std::string kind = "HBM";
  Fact<Bytes> capacity;
  Fact<BytesPerSecond> bandwidth;
  static const config::Schema<MemoryConfig>& schema();
};

/// Ports of one package, one way.
struct PortConfig {
  std::string kind;  ///< "NVLink 5", "UB", "InfiniBand NDR"
  Fact<int> links;
  Fact<BytesPerSecond> bandwidth;  ///< all links together, one way
  static const config::Schema<PortConfig>& schema();
};

struct PowerConfig {
  Fact<Watts> tdp;
  Fact<Watts> idle;
  static const config::Schema<PowerConfig>& schema();
};

/// Energy above idle. `memory` covers the way from the memory cells to the cores; `scale_up` and
/// `scale_out` are per byte of a message, for the whole way between two packages.
struct EnergyConfig {
  std::map<Precision, Fact<JoulesPerFlop>> matrix;
  Fact<JoulesPerFlop> vector;
  Fact<JoulesPerByte> memory;
  Fact<JoulesPerByte> scale_up;
  Fact<JoulesPerByte> scale_out;
  static const config::Schema<EnergyConfig>& schema();
};

/// Parameters of the p-norm roofline (models/kernels/roofline.cpp): priors until a calibration
/// replaces them.
struct KernelConfig {
  std::map<Precision, Fact<double>> matrix_efficiency;  ///< achievable share of the matrix peak
  Fact<double> vector_efficiency;
  Fact<double> memory_efficiency;  ///< achievable share of the memory bandwidth
  Fact<double> exponent;           ///< p of (t_compute^p + t_memory^p)^(1/p)
  Fact<Seconds> launch;            ///< fixed cost of a kernel
  static const config::Schema<KernelConfig>& schema();
};

/// An accelerator package. A rank is a die: per-rank figures are those of the package over `dies`.
struct AcceleratorConfig {
  std::string id;    ///< "h100_sxm": what configurations call it
  std::string name;  ///< "NVIDIA H100 SXM5 80GB"
  std::string vendor;
  std::string architecture;
  int dies = 1;  ///< dies that are ranks of their own
  Fact<BytesPerSecond>
      die_to_die;  ///< between two such dies of a package, one way; 0 where dies is 1
  ComputeConfig compute;
  MemoryConfig memory;
  PortConfig scale_up;
  PortConfig scale_out;
  PortConfig host_link;  ///< PCIe or chip-to-chip; what copy engines reach over it
  PowerConfig power;
  EnergyConfig energy;
  KernelConfig kernel;
  static const config::Schema<AcceleratorConfig>& schema();
};

}  // namespace orrery
