// SPDX-License-Identifier: Apache-2.0
// Products have the figures that their makers print: typed again here, not read from the files.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/machine/shipped_library.h"

namespace orrery::products_test {
namespace {

SystemConfig product_system(const std::string& name) {
  const config::Library& library = shipped_library();
  return config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
}

struct Product {
  const char* name;
  double bf16_flops, memory_bytes, memory_rate, link_rate, watts;
};

// Typed again from the published figures, not from the files: dense bf16 (fp16 of the V100),
// capacity and bandwidth of the memory, one link one way, design power. NVIDIA, AMD, Intel, Google
// and AWS data sheets; Zuo et al., arXiv 2506.12708 for the Ascends. 0: not published. Google
// prints GiB of the TPU v4 (32), v5p (95) and 7x (192).
TEST(Products, HaveThePublishedFigures) {
  const std::vector<Product> products = {{"v100_sxm", 125e12, 16e9, 900e9, 25e9, 300},
                                         {"a100_sxm", 312e12, 80e9, 2039e9, 25e9, 400},
                                         {"a100_sxm_40", 312e12, 40e9, 1555e9, 25e9, 400},
                                         {"h100_sxm", 989.5e12, 80e9, 3350e9, 25e9, 700},
                                         {"h800_sxm", 989.5e12, 80e9, 3350e9, 25e9, 700},
                                         {"h20", 148e12, 96e9, 4000e9, 25e9, 400},
                                         {"h200_sxm", 989.5e12, 141e9, 4800e9, 25e9, 700},
                                         {"b200_sxm", 2250e12, 180e9, 8000e9, 50e9, 1000},
                                         {"gb200", 2500e12, 186e9, 8000e9, 50e9, 1200},
                                         {"b300_sxm", 2250e12, 288e9, 8000e9, 50e9, 1100},
                                         {"gb300", 2500e12, 288e9, 8000e9, 50e9, 1400},
                                         {"rubin_r200", 4000e12, 288e9, 22000e9, 50e9, 0},
                                         {"rtx_pro_6000", 503.8e12, 96e9, 1792e9, 0, 600},
                                         {"mi300x", 1307.4e12, 192e9, 5300e9, 64e9, 750},
                                         {"mi355x", 2516.6e12, 288e9, 8000e9, 76.8e9, 1400},
                                         {"ascend_910b", 376e12, 64e9, 1600e9, 28e9, 400},
                                         {"ascend_910c", 780e12, 128e9, 3200e9, 28e9, 0},
                                         {"tpu_v4", 275e12, 34.4e9, 1200e9, 50e9, 192},
                                         {"tpu_v5e", 197e12, 16e9, 819e9, 50e9, 0},
                                         {"tpu_v5p", 459e12, 102e9, 2765e9, 100e9, 0},
                                         {"tpu_v6e", 918e12, 32e9, 1638e9, 100e9, 0},
                                         {"tpu_v7", 2307e12, 206e9, 7370e9, 100e9, 0},
                                         {"trainium2", 667e12, 103e9, 2900e9, 160e9, 0},
                                         {"gaudi3", 1835e12, 128e9, 3700e9, 25e9, 900},
                                         {"mi250x", 383e12, 128e9, 3277e9, 50e9, 560},
                                         {"mi300a", 980.6e12, 128e9, 5300e9, 64e9, 760},
                                         {"mi325x", 1307.4e12, 256e9, 6000e9, 64e9, 1000},
                                         {"mi350x", 2306.9e12, 288e9, 8000e9, 76.8e9, 1000},
                                         {"mi455x", 5000e12, 432e9, 19600e9, 50e9, 0},
                                         {"gh200", 989.5e12, 96e9, 4000e9, 25e9, 0},
                                         {"gh200_144", 989.5e12, 144e9, 4900e9, 25e9, 0},
                                         {"gb10", 125e12, 128e9, 273e9, 25e9, 140},
                                         {"h20_141", 148e12, 141e9, 4800e9, 25e9, 0},
                                         {"trainium1", 190e12, 34.4e9, 880e9, 96e9, 0},
                                         {"trainium3", 671e12, 154.6e9, 4900e9, 64e9, 0},
                                         {"inferentia2", 190e12, 34.4e9, 880e9, 96e9, 0},
                                         {"gaudi2", 432e12, 96e9, 2460e9, 12.5e9, 600},
                                         {"ascend_910b4", 280e12, 34.4e9, 800e9, 28e9, 0},
                                         {"tpu_8t", 3150e12, 216e9, 6500e9, 200e9, 0},
                                         {"max_1550", 839e12, 128e9, 3277e9, 26.5e9, 600},
                                         {"rtx_4090", 165.2e12, 24e9, 1008e9, 0, 450},
                                         {"rtx_5090", 209.5e12, 32e9, 1792e9, 0, 575},
                                         {"rtx_3090", 71e12, 24e9, 936e9, 14.0625e9, 350},
                                         {"rtx_3090_ti", 80e12, 24e9, 1008e9, 14.0625e9, 450},
                                         {"rtx_3080", 59.5e12, 10e9, 760e9, 0, 320},
                                         {"rtx_4060_ti", 44.1e12, 16e9, 288e9, 0, 165},
                                         {"rtx_5060_ti", 47.4e12, 16e9, 448e9, 0, 180},
                                         {"rtx_6000_ada", 364.2e12, 48e9, 960e9, 0, 300},
                                         {"a40", 149.7e12, 48e9, 696e9, 14.0625e9, 300},
                                         {"a6000", 154.8e12, 48e9, 768e9, 14.0625e9, 300},
                                         {"a30", 165e12, 24e9, 933e9, 25e9, 165},
                                         {"v100_pcie", 112e12, 16e9, 900e9, 0, 250},
                                         {"v100_pcie_32", 112e12, 32e9, 900e9, 0, 250},
                                         {"arc_b60", 98.3e12, 24e9, 456e9, 0, 200},
                                         {"l40s", 362e12, 48e9, 864e9, 0, 350},
                                         {"l4", 121e12, 24e9, 300e9, 0, 72},
                                         {"a10g", 70e12, 24e9, 600e9, 0, 300},
                                         {"t4", 65e12, 16e9, 320e9, 0, 70},
                                         {"a100_pcie", 312e12, 80e9, 1935e9, 25e9, 300},
                                         {"a100_pcie_40", 312e12, 40e9, 1555e9, 25e9, 250},
                                         {"h100_pcie", 756e12, 80e9, 2039e9, 25e9, 350},
                                         {"h100_nvl", 835e12, 94e9, 3938e9, 25e9, 400},
                                         {"h200_nvl", 835e12, 141e9, 4800e9, 25e9, 600},
                                         {"wse2", 7480e12, 40e9, 20e15, 0, 0},
                                         {"wse3", 15840e12, 44e9, 21e15, 0, 23e3},
                                         {"apple_m1_max", 10.6e12, 68.72e9, 400e9, 0, 0},
                                         {"apple_m2_ultra", 27.2e12, 206.2e9, 800e9, 0, 0},
                                         {"apple_m3_ultra", 28.6e12, 549.8e9, 819e9, 0, 0},
                                         {"apple_m4_max", 16.2e12, 137.4e9, 546e9, 0, 0},
                                         {"agx_orin", 42.6e12, 68.7e9, 204.8e9, 0, 60},
                                         {"orin_nano", 16.7e12, 8.59e9, 102.4e9, 0, 25},
                                         {"agx_thor", 258e12, 137.4e9, 273e9, 0, 130},
                                         {"gc200", 250e12, 900e6, 47.5e12, 16e9, 0},
                                         {"bow_ipu", 350e12, 900e6, 65.4e12, 16e9, 0},
                                         {"tt_wormhole", 65.5e12, 12.88e9, 288e9, 12.5e9, 150},
                                         {"tt_n150", 74e12, 12.88e9, 288e9, 12.5e9, 160},
                                         {"tt_p150", 194e12, 34.4e9, 512e9, 100e9, 300}};
  for (const Product& product : products) {
    const AcceleratorConfig a = shipped_accelerator(product.name);
    const auto bf16 = a.compute.matrix.find(Precision::kBf16);
    const auto& rate =
        bf16 == a.compute.matrix.end() ? a.compute.matrix.at(Precision::kFp16) : bf16->second;
    EXPECT_NEAR(rate.published().base(), product.bf16_flops, 0.005 * product.bf16_flops)
        << product.name;
    EXPECT_NEAR(a.memory.capacity.published().base(), product.memory_bytes,
                0.005 * product.memory_bytes)
        << product.name;
    EXPECT_NEAR(a.memory.bandwidth.published().base(), product.memory_rate,
                0.006 * product.memory_rate)
        << product.name;
    if (product.link_rate > 0) {
      EXPECT_NEAR(a.scale_up.bandwidth.value.base() / a.scale_up.links.value, product.link_rate, 1)
          << product.name;
    }
    if (product.watts > 0) {
      EXPECT_EQ(a.power.tdp.value.base(), product.watts) << product.name;
    }
  }
}

struct CloudNode {
  const char* name;
  int accelerators, adapters;
  double gigabits;  // of all adapters, one way
};

// As the clouds print them: EFA of p4d, p5, p5e, trn1 and inf2; GPUDirect-TCPX and TCPXO of A3 High
// and A3 Mega without the adapter of the host; InfiniBand NDR of ND H100 v5.
TEST(Products, OfCloudsHaveTheirAdapters) {
  const std::vector<CloudNode> nodes = {
      {"aws_p4d", 8, 4, 400},        {"aws_p5", 8, 32, 3200},
      {"aws_p5e", 8, 32, 3200},      {"gcp_a3_high", 8, 4, 800},
      {"gcp_a3_mega", 8, 8, 1600},   {"azure_nd_h100_v5", 8, 8, 3200},
      {"trn1_32xlarge", 16, 8, 800}, {"trn2_48xlarge", 16, 16, 3200},
      {"inf2_48xlarge", 12, 1, 100}};
  for (const CloudNode& node : nodes) {
    const SystemConfig system = product_system(node.name);
    const PortConfig& port = system.accelerator.scale_out;
    const double nics =
        static_cast<double>(system.accelerators.value) / system.scale_out.packages_per_nic;
    EXPECT_EQ(system.accelerators.value, node.accelerators) << node.name;
    EXPECT_EQ(nics * port.links.value, node.adapters) << node.name;
    EXPECT_NEAR(nics * port.bandwidth.value.base() * 8e-9, node.gigabits, 1e-6) << node.name;
  }
}

// Chips of a pod and of a rack as their makers print them.
TEST(Products, PodsAndRacksHaveThePublishedSizes) {
  const std::pair<const char*, int> sizes[] = {{"tpu_v4_pod", 4096},
                                               {"tpu_v5p_pod", 8960},
                                               {"tpu_v7_pod", 9216},
                                               {"tpu_v5e_pod", 256},
                                               {"tpu_v6e_pod", 256},
                                               {"gb200_nvl72", 72},
                                               {"gb300_nvl72", 72},
                                               {"vr_nvl72", 72},
                                               {"cm384", 384},
                                               {"dgx_2", 16},
                                               {"kyber_nvl144", 144},
                                               {"mi355x_platform", 8},
                                               {"gh200_nvl32", 32},
                                               {"gb200_nvl36x2", 72},
                                               {"helios_72", 72},
                                               {"trn2_ultraserver", 64},
                                               {"trn3_ultraserver", 144},
                                               {"tpu_8t_pod", 9600},
                                               {"frontier_node", 4},
                                               {"aurora_node", 6}};
  for (const auto& [name, packages] : sizes) {
    EXPECT_EQ(product_system(name).accelerators.value, packages) << name;
  }
}

}  // namespace
}  // namespace orrery::products_test
