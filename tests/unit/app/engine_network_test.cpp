// SPDX-License-Identifier: Apache-2.0
// All-reduces by kernels of serving engines: which carries which buffer, and what it takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/transfers/flow_model.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/pricing/engine_network.h"
#include "sim/config/load.h"

namespace orrery::engine_network_test {
namespace {

using namespace literals;

LoadedExperiment load(const std::string& text, const std::vector<std::string>& set = {}) {
  config::Diagnostics diagnostics;
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  return load_experiment(config::parse_yaml(text, "test.yaml", diagnostics), set, diagnostics,
                         library);
}

Transfer all_reduce(std::vector<std::vector<int>> groups, Bytes bytes) {
  Transfer t;
  t.kind = TransferKind::kAllReduce;
  t.groups = std::move(groups);
  t.bytes = bytes;
  return t;
}

std::vector<int> first(int ranks) {
  std::vector<int> group;
  for (int rank = 0; rank < ranks; ++rank) group.push_back(rank);
  return group;
}

struct Nets {
  explicit Nets(const std::string& system, const EngineAllReduce& rules)
      : loaded(load("{experiment: collective, nodes: 2, collective: {kind: all_reduce, bytes: 1 "
                    "KiB}, system: " +
                    system + "}")),
        network(machine().system(), 2, rules),
        library(machine().system(), 2) {}

  const Machine& machine() const { return loaded.as<MachineExperiment>().machine(); }
  double us(const Transfer& t) const { return network.price(t).isolated_time.base() * 1e6; }

  LoadedExperiment loaded;
  EngineNetwork network;
  FlowModel library;
};

EngineAllReduce rules(Bytes own, Bytes one_shot) {
  EngineAllReduce rules;
  rules.fused = Bytes(0);
  rules.own = own;
  rules.one_shot = one_shot;
  return rules;
}

TEST(EngineNetwork, SizesSayWhichKernelCarriesABuffer) {
  EngineAllReduce sizes = rules(1_MiB, 256_KiB);
  sizes.symmetric = 64_MiB;
  sizes.multicast = true;
  const Nets nets("dgx_h100", sizes);
  const auto taken = [&](Bytes bytes) {
    return nets.network.price(all_reduce({first(8)}, bytes)).algorithm;
  };
  EXPECT_EQ(taken(255_KiB), "one_shot");
  EXPECT_EQ(taken(256_KiB), "direct");
  EXPECT_EQ(taken(1_MiB), "nvls");
  const Transfer large = all_reduce({first(8)}, 64_MiB);
  EXPECT_EQ(nets.us(large), nets.library.price(large).isolated_time.base() * 1e6);
}

TEST(EngineNetwork, WhatLeavesASystemOrIsNoAllReduceGoesByTheLibrary) {
  const Nets nets("dgx_h100", rules(1_MiB, 0_B));
  Transfer t = all_reduce({first(8)}, 64_KiB);
  EXPECT_EQ(nets.network.price(t).algorithm, "one_shot");
  EXPECT_LT(nets.network.isolated_time(t), nets.library.isolated_time(t));
  t.groups = {{0, 8}};  // two systems
  EXPECT_EQ(nets.network.price(t).algorithm, nets.library.price(t).algorithm);
  t.groups = {{0, 1}};
  t.kind = TransferKind::kAllGather;
  EXPECT_EQ(nets.network.price(t).algorithm, nets.library.price(t).algorithm);
}

TEST(EngineNetwork, OnPcieOnlyPairsHaveKernelsOfTheEngine) {
  const Nets nets("l40s_8", rules(8_MiB, 8_MiB));
  EXPECT_EQ(nets.network.price(all_reduce({{0, 1}}, 16_KiB)).algorithm, "one_shot");
  const Transfer four = all_reduce({first(4)}, 16_KiB);
  EXPECT_EQ(nets.network.isolated_time(four), nets.library.isolated_time(four));
}

TEST(EngineNetwork, BarriersFencesAndCopiesAddTheirTime) {
  const EngineAllReduce none = rules(8_MiB, 256_KiB);
  EngineAllReduce some = none;
  some.barrier = 2_us;
  some.fence = 3_us;
  const Nets without("dgx_h100", none);
  const Nets with("dgx_h100", some);
  const Transfer one = all_reduce({first(8)}, 64_KiB);
  const Transfer two = all_reduce({first(8)}, 512_KiB);
  EXPECT_NEAR(with.us(one) - without.us(one), 2, 1e-6);
  EXPECT_NEAR(with.us(two) - without.us(two), 3 * 7, 1e-6);

  EngineAllReduce symmetric = rules(0_B, 0_B);
  symmetric.symmetric = 8_MiB;
  symmetric.copies = 5_us;
  const Nets copied("dgx_h100", symmetric);
  // Two copies read and write 512 KiB at 3.35 TB/s.
  EXPECT_NEAR(copied.us(two) - without.us(two), 5 + 4 * 524288 / 3.35e6, 1e-3);
}

TEST(EngineNetwork, ALargerBufferTakesAKernelNoLessTime) {
  const Nets nets("dgx_b200", rules(64_MiB, 32_MiB));
  double before = 0;
  for (Bytes bytes = 256_B; bytes < 32_MiB; bytes *= 1.7) {
    const double us = nets.us(all_reduce({first(4)}, bytes));
    EXPECT_GE(us, before) << bytes.base();
    before = us;
  }
}

/// A row of AIConfigurator 095f58a5, custom_allreduce (bf16, in CUDA graphs), on devices that no
/// parameter was found with.
struct Row {
  const char *engine, *version, *system;
  int ranks;
  int kib;
  double us;
};

TEST(EngineNetwork, KernelsTakeTheirMeasuredTimeOnDevicesThatTheyWereNotFittedTo) {
  const Row rows[] = {{"vllm", "0.24", "dgx_b300", 2, 8, 7.0},
                      {"vllm", "0.24", "dgx_b300", 4, 64, 7.31},
                      {"vllm", "0.24", "dgx_b300", 4, 1024, 18.86},
                      {"vllm", "0.24", "dgx_b300", 8, 64, 8.51},
                      {"vllm", "0.24", "dgx_b300", 8, 256, 25.99},
                      {"vllm", "0.24", "dgx_b300", 8, 16384, 62.9},
                      {"vllm", "0.19", "dgx_h200", 2, 256, 5.13},
                      {"vllm", "0.19", "dgx_h200", 4, 8, 4.73},
                      {"vllm", "0.19", "dgx_h200", 8, 64, 6.47},
                      {"vllm", "0.19", "dgx_h200", 8, 256, 9.88},
                      {"vllm", "0.19", "dgx_h200", 8, 16384, 87.2},
                      {"sglang", "0.5.14", "dgx_h200", 4, 8, 2.77},
                      {"sglang", "0.5.14", "dgx_h200", 8, 1024, 13.05},
                      {"sglang", "0.5.14", "dgx_b300", 8, 256, 8.57},
                      {"sglang", "0.5.9", "dgx_h200", 8, 64, 6.41},
                      {"sglang", "0.5.9", "dgx_b300", 4, 256, 8.72},
                      {"tensorrt_llm", "1.3", "dgx_h200", 8, 256, 10.1},
                      {"tensorrt_llm", "1.3", "dgx_b300", 8, 64, 5.84}};
  std::vector<double> errors;
  for (const Row& row : rows) {
    const RunRecord record =
        simulate(load("{experiment: collective, system: " + std::string(row.system) +
                      ", collective: {kind: all_reduce, bytes: " + std::to_string(row.kib) +
                      " KiB, ranks: " + std::to_string(row.ranks) +
                      "}, engine: {kind: " + row.engine + ", version: \"" + row.version + "\"}}"));
    const double error = record.find("time_s")->value * 1e6 / row.us - 1;
    EXPECT_NEAR(error, 0, 0.2) << row.engine << " " << row.system << " " << row.kib << " KiB";
    errors.push_back(std::abs(error));
  }
  std::nth_element(errors.begin(), errors.begin() + 9, errors.end());
  EXPECT_LT(errors[9], 0.06);
}

constexpr const char* kStep =
    "{experiment: inference, system: dgx_b200, model: llama_3_1_70b, phase: decode, kv_length: "
    "1024, parallel: {tp: 8}, batch: {micro: 4}";

double step_time(const std::string& engine) {
  return simulate(load(kStep + engine + "}")).find("step_time_s")->value;
}

TEST(EngineNetwork, AStepTakesTheAllReducesOfTheEngineThatServesIt) {
  const double older = step_time(", engine: {kind: vllm, version: \"0.14\"}");
  const double nccl = step_time(
      ", engine: {kind: vllm, version: \"0.14\", all_reduce: {own: 0 B, symmetric: 0 B}}");
  // 160 all-reduces of 64 KiB and the head's: NCCL takes some 12 us longer on 8 B200.
  EXPECT_GT(nccl - older, 160 * 5e-6);
  EXPECT_LT(nccl - older, 160 * 25e-6);
  const double fused = step_time(", engine: {kind: vllm, version: \"0.19\"}");
  const double apart =
      step_time(", engine: {kind: vllm, version: \"0.19\", kernels: {allreduce_norm: off}}");
  EXPECT_LT(fused, apart);
}

TEST(EngineNetwork, TheNameThatTheKeyHadStillSaysTheSize) {
  const double none = step_time(", engine: {kind: vllm, version: \"0.8\", custom_all_reduce: 0 B}");
  EXPECT_EQ(none, step_time(", engine: {kind: vllm, version: \"0.8\", all_reduce: {own: 0 B}}"));
  EXPECT_GT(none, step_time(", engine: {kind: vllm, version: \"0.8\"}"));
}

}  // namespace
}  // namespace orrery::engine_network_test
