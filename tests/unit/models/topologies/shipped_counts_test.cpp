// SPDX-License-Identifier: Apache-2.0
// The systems of the library have as many chips and links as their makers say, or as their files
// assume (Kyber, the switch chips of VR NVL72, the third tier of Llama 3's cluster).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/topologies/fabric.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::shipped_counts_test {
namespace {

struct Shipped {
  std::string system;
  int copies, ranks;
  std::size_t switches;  // on boards and between systems
  std::size_t scale_up;  // links, both ways
};

// Switches: chips of each system x copies, plus leaves, spines and cores. SuperPODs: NVIDIA
// reference architectures (31 nodes of H100: 8 + 4; 64 of B200: 16 + 8; 576 of B300: 64 + 36).
// DeepSeek: 8 planes of 8 leaves and 4 spines (arXiv 2505.09343, table 3: 96 for 2,048 endpoints).
TEST(ShippedCounts, SystemsHaveTheChipsAndLinksThatTheirMakersSay) {
  const std::vector<Shipped> rows = {
      {"dgx_1", 1, 8, 0, 2UL * 24},
      {"dgx_2", 1, 16, 12, 2UL * (16 * 6 + 6 * 8)},
      {"dgx_a100", 1, 8, 6, 2UL * 8 * 12},
      {"dgx_h100", 31, 248, 31UL * 4 + 8 + 4, 31UL * 2 * 8 * 18},
      {"dgx_h200", 1, 8, 4, 2UL * 8 * 18},
      {"dgx_b200", 64, 512, 64UL * 2 + 16 + 8, 64UL * 2 * 8 * 18},
      {"dgx_b300", 576, 4608, 576UL * 2 + 64 + 36, 576UL * 2 * 8 * 18},
      {"gb200_nvl72", 1, 72, 18, 2UL * 72 * 18},
      {"gb300_nvl72", 1, 72, 18, 2UL * 72 * 18},
      {"vr_nvl72", 1, 72, 36, 2UL * 72 * 36},
      {"vr_nvl72_18", 1, 72, 18, 2UL * 72 * 18},
      {"vr_nvl144_cpx", 1, 72, 36, 2UL * 72 * 36},
      {"kyber_nvl144", 1, 144, 72, 2UL * 144 * 72},
      {"mi300x_platform", 1, 8, 0, 2UL * 28},
      {"mi355x_platform", 1, 8, 0, 2UL * 28},
      {"gaudi3_platform", 1, 8, 0, 2UL * 28 * 3},
      {"tpu_v4_pod", 1, 4096, 0, 4096UL * 6},
      {"tpu_v5p_pod", 1, 8960, 0, 8960UL * 6},
      {"tpu_v7_pod", 1, 9216, 0, 9216UL * 6},
      {"tpu_v5e_pod", 1, 256, 0, 256UL * 4},
      {"tpu_v6e_pod", 1, 256, 0, 256UL * 4},
      // Switches, processors and their memory; slots both ways, the processors' link, the memory.
      {"rtx_pro_6000_8", 1, 8, 4 + 1 + 1, 2UL * (8 + 4) + 1},
      {"rtx_4090_8", 1, 8, 2 + 2, 2UL * 8 + 2 + 2},
      {"h100_nvl_8", 1, 8, 2 + 2 + 2, 2UL * (8 + 2) + 2 + 2 + 4 * 2 * 12},
      {"deepseek_h800", 256, 2048, 256UL * 4 + 96, 256UL * 2 * 8 * 8}};
  for (const Shipped& row : rows) {
    const std::string kind = "systems";
    const auto system = config::load<SystemConfig>(shipped_library().locate(kind, row.system, ""),
                                                   shipped_library(), kind);
    Topology topology;
    build_fabric(system, rank_layout(system, row.copies), topology);
    EXPECT_EQ(topology.ranks(), row.ranks) << row.system;
    EXPECT_EQ(topology.vertices() - static_cast<std::size_t>(row.ranks), row.switches)
        << row.system;
    EXPECT_EQ(topology.link_count(LinkKind::kScaleUp), row.scale_up) << row.system;
  }
}

}  // namespace
}  // namespace orrery::shipped_counts_test
