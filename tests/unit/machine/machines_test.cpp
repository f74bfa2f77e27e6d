// SPDX-License-Identifier: Apache-2.0
// Supercomputers of the TOP500 are reproduced from their parts: cores, peaks and power.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/machine/shipped_library.h"

namespace orrery {
namespace {

/// TOP500 of June 2025 (JUPITER: November 2025): cores, Rpeak [FLOP/s], power during HPL [W]. Cores
/// are those of processors and units of accelerators together.
struct Listed {
  const char* system;
  int nodes;
  int processor_cores;     // a node
  double processor_flops;  // a node, fp64
  double processor_watts;  // a node, design power
  double unit_flops;       // fp64 FLOP of a unit in one clock
  double hertz;            // clock that Rpeak is counted at; 0: that of the file
  int cores;
  double rpeak, watts;
  double rounding;  // how far Rpeak may be from its parts
};

// Processors: EPYC 7A53, 64 cores x 16 FLOP x 2 GHz, 280 W; Zen 4 of the MI300A, 24 x 16 x 3.7 GHz,
// in the package's power; Xeon Max 9470C, 104 x 32 x 2.4 GHz, 350 W each; Grace, 72 x 16 x 3.1 GHz.
// Units: 128 FLOP of a CU (vector), 256 of an Xe core at its base clock of 900 MHz
// (glennklockwood.com, Intel Data Center GPU Max 1550), 256 of an SM (tensor). Frontier is listed
// at 53 TFLOP/s a package (OLCF), which 220 CUs would have at 1.88 GHz; the data sheet's 1.7 GHz
// gives 47.9. JUPITER's Rpeak is that of a lower clock than the boost, see below.
const std::vector<Listed> kMachines = {
    {"frontier_node", 9604, 64, 2.048e12, 280, 128, 0, 9066176, 2055.72e15, 24607e3, 0.10},
    {"el_capitan_node", 10952, 96, 5.683e12, 0, 128, 0, 11039616, 2746.38e15, 29581e3, 0.005},
    {"aurora_node", 10624, 104, 7.987e12, 700, 256, 0.9e9, 9264128, 1980.01e15, 38698e3, 0.01},
    {"jupiter_node", 5884, 288, 14.28e12, 480, 256, 1.54e9, 4801344, 1226.28e15, 15794e3, 0.08}};

SystemConfig machine_node(const Listed& machine) {
  const config::Library& library = shipped_library();
  return config::load<SystemConfig>(library.locate("systems", machine.system, ""), library,
                                    "systems");
}

TEST(Machines, CoresAreThoseOfProcessorsAndUnits) {
  for (const Listed& machine : kMachines) {
    const SystemConfig node = machine_node(machine);
    const int units = node.accelerators.value * node.accelerator.compute.units.value;
    EXPECT_EQ(machine.nodes * (machine.processor_cores + units), machine.cores) << machine.system;
  }
}

TEST(Machines, PeaksAreUnitsTimesClock) {
  for (const Listed& machine : kMachines) {
    const SystemConfig node = machine_node(machine);
    const ComputeConfig& compute = node.accelerator.compute;
    const double hertz = machine.hertz > 0 ? machine.hertz : compute.clock.value.base();
    const double package = compute.units.value * hertz * machine.unit_flops;
    const double peak =
        machine.nodes * (machine.processor_flops + node.accelerators.value * package);
    EXPECT_NEAR(peak / machine.rpeak, 1, machine.rounding) << machine.system;
  }
}

// 1,226 PFLOP/s of 23,536 superchips, less 3.6 TFLOP/s of a Grace, are 48.5 TFLOP/s of 132 SMs: at
// 1.44 to 1.55 GHz, below the boost clock of 1.98 GHz.
TEST(Machines, JupiterIsListedBelowTheBoostClock) {
  const Listed& jupiter = kMachines.back();
  const ComputeConfig compute = machine_node(jupiter).accelerator.compute;
  const double superchip = jupiter.rpeak / jupiter.nodes / 4;
  const double hertz = superchip / (compute.units.value * jupiter.unit_flops);
  EXPECT_GT(hertz, 1.4e9);
  EXPECT_LT(hertz, compute.boost_clock->value.base());
}

// HPL keeps the accelerators busy: a machine draws most of their design power, and hardly more than
// all design powers together.
TEST(Machines, PowerDuringLinpackIsNearTheDesignPowerOfTheParts) {
  for (const Listed& machine : kMachines) {
    const SystemConfig node = machine_node(machine);
    const double parts =
        machine.processor_watts + node.accelerators.value * node.accelerator.power.cap().base();
    const double share = machine.watts / machine.nodes / parts;
    EXPECT_GT(share, 0.84) << machine.system;
    EXPECT_LT(share, 1.03) << machine.system;
    EXPECT_NEAR(machine.nodes * node.all_in_power->value.base() / machine.watts, 1, 1e-3)
        << machine.system;
  }
}

}  // namespace
}  // namespace orrery
