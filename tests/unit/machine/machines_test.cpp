// SPDX-License-Identifier: Apache-2.0
// Machines that were built of systems of the library: lists of supercomputers are reproduced from
// the parts (cores, peaks, power), and machines of GPUs by their numbers.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/machine/shipped_library.h"

namespace orrery::machines_test {
namespace {

SystemConfig system_of(const std::string& name) {
  const config::Library& library = shipped_library();
  return config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
}

/// TOP500 of June 2025 (JUPITER: November 2025): cores are those of processors and units of
/// accelerators together.
struct Listed {
  const char* system;
  int processor_cores;  // a node
  int cores;
  double rounding;  // how far Rpeak may be from its parts
};

// JUPITER is listed 6 % below what the clock gives with which Alps is listed, the same superchips.
const std::vector<Listed> kMachines = {{"frontier", 64, 9066176, 0.005},
                                       {"el_capitan", 96, 11039616, 0.005},
                                       {"aurora", 104, 9264128, 0.01},
                                       {"jupiter", 288, 4801344, 0.065}};

TEST(Machines, CoresAreThoseOfProcessorsAndUnits) {
  for (const Listed& machine : kMachines) {
    const SystemConfig node = system_of(machine.system);
    const int units = node.accelerators.value * node.accelerator.compute.units.value;
    EXPECT_EQ(node.installation->systems.value * (machine.processor_cores + units), machine.cores)
        << machine.system;
  }
}

TEST(Machines, PeaksAreUnitsTimesClock) {
  for (const Listed& machine : kMachines) {
    const SystemConfig node = system_of(machine.system);
    const ListedPeakConfig& listed = *node.installation->fp64_peak;
    const ComputeConfig& compute = node.accelerator.compute;
    const Hertz clock = listed.clock ? listed.clock->value : compute.clock.value;
    const double package = compute.units.value * clock.base() * listed.unit_flops.value;
    const double peak = node.installation->systems.value *
                        (listed.processors.value.base() + node.accelerators.value * package);
    EXPECT_NEAR(peak / listed.published->value.base(), 1, machine.rounding) << machine.system;
  }
}

// No list counts with more than a part can reach.
TEST(Machines, AreListedAtMostAtTheBoostClock) {
  for (const Listed& machine : kMachines) {
    const SystemConfig node = system_of(machine.system);
    const ListedPeakConfig& listed = *node.installation->fp64_peak;
    if (!listed.clock || !node.accelerator.compute.boost_clock) continue;
    EXPECT_LT(listed.clock->value, node.accelerator.compute.boost_clock->value) << machine.system;
  }
}

// HPL keeps the accelerators busy: a machine draws most of their design power, and hardly more than
// all design powers together.
TEST(Machines, PowerDuringLinpackIsNearTheDesignPowerOfTheParts) {
  for (const Listed& machine : kMachines) {
    const SystemConfig node = system_of(machine.system);
    const InstallationConfig& built = *node.installation;
    const double parts = built.processors->value.base() +
                         node.accelerators.value * node.accelerator.power.cap().base();
    const double watts = built.power->value.base() / built.systems.value;
    EXPECT_GT(watts / parts, 0.84) << machine.system;
    EXPECT_LT(watts / parts, 1.03) << machine.system;
    EXPECT_NEAR(node.all_in_power->value.base() / watts, 1, 1e-3) << machine.system;
  }
}

// What a system draws with its share of everything is that share of what the machine draws.
TEST(Machines, AllInPowerOfASystemIsItsShareOfTheMachine) {
  for (const std::string& name : shipped_library().names("systems")) {
    const SystemConfig system = system_of(name);
    if (!system.installation || !system.installation->power) continue;
    const double share =
        system.installation->power->value.base() / system.installation->systems.value;
    EXPECT_NEAR(system.all_in_power->value.base() / share, 1, 1e-3) << name;
  }
}

TEST(Machines, HaveAsManyAcceleratorsAsIsToldOfThem) {
  const std::pair<const char*, int> told[] = {
      {"colossus", 100000}, {"colossus_200k", 200000}, {"cortex", 50000}, {"llama_24k", 24576}};
  for (const auto& [name, accelerators] : told) {
    const SystemConfig system = system_of(name);
    EXPECT_EQ(system.installation->systems.value * system.accelerators.value, accelerators) << name;
  }
}

}  // namespace
}  // namespace orrery::machines_test
