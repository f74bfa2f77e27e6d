// SPDX-License-Identifier: Apache-2.0
// What the schemas of machines refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/config/load.h"
#include "sim/config/override.h"
#include "sim/machine/system_config.h"

namespace orrery::schema_test {
namespace {

using testing::HasSubstr;

const config::Library& library() {
  static const config::Library shipped(std::string(ORRERY_SOURCE_DIR) + "/configs");
  return shipped;
}

// Reads a shipped system with one assignment laid over it; returns all messages.
std::string errors_with(const std::string& system, const std::string& assignment) {
  config::Diagnostics diagnostics;
  config::Node node =
      config::load_file(library().locate("systems", system, ""), diagnostics, library(), "systems");
  config::apply_override(node, SystemConfig::schema().record(), assignment, diagnostics, library());
  if (!diagnostics.has_errors()) config::read<SystemConfig>(node, diagnostics, library());
  return diagnostics.render();
}

struct Mistake {
  std::string name, system, assignment, message;
};

class Schemas : public testing::TestWithParam<Mistake> {};

TEST_P(Schemas, RefuseTheImpossible) {
  EXPECT_THAT(errors_with(GetParam().system, GetParam().assignment), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, Schemas,
    testing::Values(
        Mistake{"SlowMemory", "dgx_h100", "accelerator.memory.bandwidth=3 kB/s", "bandwidth"},
        Mistake{"FastMemory", "dgx_h100", "accelerator.memory.bandwidth=3.35 EB/s", "bandwidth"},
        Mistake{"HugeMemory", "dgx_h100", "accelerator.memory.capacity=80 TB", "capacity"},
        Mistake{"UnitOfTime", "dgx_h100", "scale_up.latency=1.9", "latency"},
        Mistake{"WrongDimension", "dgx_h100", "scale_up.latency=1.9 GB", "latency"},
        Mistake{"LongLatency", "dgx_h100", "scale_up.latency=1.9 h", "latency"},
        Mistake{"EfficiencyAboveOne", "dgx_h100", "scale_up.efficiency=1.01", "efficiency"},
        Mistake{"EfficiencyZero", "dgx_h100", "scale_out.efficiency=0", "efficiency"},
        Mistake{"NoAccelerators", "dgx_h100", "accelerators=0", "accelerators"},
        Mistake{"UnevenNodes", "dgx_h100", "accelerators=12", "multiple of accelerators_per_node"},
        Mistake{"LinksDoNotAddUp", "dgx_h100", "scale_up.links_per_switch=[5, 4, 4, 4]",
                "add up to scale_up.links"},
        Mistake{"NegativeLinks", "dgx_h100", "scale_up.links_per_switch=[20, -2]",
                "links_per_switch"},
        Mistake{"NoSwitches", "dgx_h100", "scale_up.links_per_switch=[]", "links_per_switch"},
        Mistake{"PlanesDoNotAddUp", "cm384", "scale_up.planes=6", "planes times dies"},
        Mistake{"NoPlanes", "cm384", "scale_up.planes=0", "planes"},
        Mistake{"UnitsOverDies", "cm384", "accelerator.compute.units=47", "evenly over the dies"},
        Mistake{"LinksOverDies", "cm384", "accelerator.scale_up.links=15", "evenly over the dies"},
        Mistake{"DiesNotJoined", "cm384", "accelerator.die_to_die=0", "bandwidth between them"},
        Mistake{"OneDieJoined", "dgx_h100", "accelerator.die_to_die=270 GB/s",
                "bandwidth between them"},
        Mistake{"IdleAboveDesign", "dgx_h100", "accelerator.power.idle=800 W", "idle power"},
        Mistake{"PowerBelowIdle", "dgx_h100", "all_in_power=500 W", "idle power"},
        Mistake{"ExponentBelowOne", "dgx_h100", "accelerator.kernel.exponent=0.5", "exponent"},
        Mistake{"PrecisionWithoutEnergy", "cm384", "accelerator.compute.matrix.fp8=1500 TFLOP/s",
                "every precision of compute.matrix"},
        Mistake{"InferenceSlower", "vr_nvl72",
                "accelerator.compute.matrix_inference.nvfp4=30 PFLOP/s", "rate"},
        Mistake{"InferenceWithoutPeak", "vr_nvl72",
                "accelerator.compute.matrix_inference.int8=1 PFLOP/s", "must be in 'matrix'"},
        Mistake{"BoostBelowClock", "dgx_h100",
                "accelerator.compute.boost_clock={value: 1.7 GHz, source: S}",
                "must not be below clock"},
        Mistake{"SparsityBelowOne", "dgx_h100", "accelerator.compute.structured_sparsity=0.5",
                "structured_sparsity"},
        Mistake{"AlwaysRefreshing", "dgx_h100", "accelerator.memory.refresh=0.9", "refresh"},
        Mistake{"HugeSharedMemory", "dgx_h100", "accelerator.core.shared_memory=227 GiB",
                "shared_memory"},
        Mistake{"NoBlocks", "dgx_h100", "accelerator.core.max_blocks=0", "max_blocks"},
        Mistake{"TileWithoutRows", "dgx_h100", "accelerator.core.matrix_tile.rows=0", "rows"},
        Mistake{"CacheDearerThanMemory", "dgx_h100", "accelerator.energy.cache=40 pJ/B",
                "nearer level"},
        Mistake{"MultiplyAddDearerThanMatrix", "dgx_h100",
                "accelerator.energy.multiply_add.bf16=1 pJ/FLOP", "at no more energy"},
        Mistake{"PortsWithoutEnergy", "dgx_h100", "accelerator.energy.scale_up=0",
                "energy of a message"},
        Mistake{"SeveralWithoutPorts", "h100_1g", "accelerators=7", "has no scale_up ports"},
        Mistake{"PartsInASystemOfWholes", "dgx_h100", "accelerator=h100_1g",
                "has no scale_up ports"},
        Mistake{"UnknownKey", "dgx_h100", "accelerator.memory.bandwith=3 TB/s", "bandwidth"}),
    [](const auto& test) { return test.param.name; });

TEST(SystemSchema, AChangedValueIsUsed) {
  config::Diagnostics diagnostics;
  config::Node node = config::load_file(library().locate("systems", "dgx_h100", ""), diagnostics,
                                        library(), "systems");
  config::apply_override(node, SystemConfig::schema().record(),
                         "accelerator.memory.bandwidth=4 TB/s", diagnostics, library());
  const auto system = config::read<SystemConfig>(node, diagnostics, library());
  EXPECT_EQ(diagnostics.render(), "");
  EXPECT_EQ(system.accelerator.memory.bandwidth.value, BytesPerSecond(4e12));
  EXPECT_FALSE(system.accelerator.memory.bandwidth.nameplate.has_value());
}

}  // namespace
}  // namespace orrery::schema_test
