// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/graph/memory_profile.h"
#include "sim/graph/operator_graph_boost.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"

namespace orrery::offload_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TrainingConfig offloading(int layers, ParallelConfig parallel = {}) {
  TrainingConfig config;
  config.parallel = parallel;
  config.global_batch = 4L * parallel.dp;
  config.sequence = 32;
  config.activation_offload = layers;
  return config;
}

TEST(Offload, CopiesWhatLayersKeepOutAndBack) {
  const LlmConfig model = small_llama(4);
  const TrainingConfig config = offloading(3);
  const double layer = layer_activation_bytes(model, model.layers[0], rank_work(config)).base();
  const Program program = build_training(model, config).program;
  // 4 micro-batches of 3 layers, both ways.
  const ProgramStatistics all = program_statistics(program);
  EXPECT_DOUBLE_EQ(all.transfers.at("send_receive host").bytes.base(), 2 * 4 * 3 * layer);
  for (const Transfer& transfer : program.transfers) {
    if (transfer.purpose != "host") continue;
    ASSERT_TRUE(transfer.host.has_value());
    EXPECT_THAT(transfer.groups, ElementsAre(ElementsAre(0)));
  }
  EXPECT_DOUBLE_EQ(
      all.matrix_flops().base(),
      program_statistics(build_training(model, offloading(0)).program).matrix_flops().base());
}

/// Copies of a layer end with the next one.
TEST(Offload, LeavesWhatIsOnItsWay) {
  const LlmConfig model = small_llama(8);
  const auto activations = [&](int layers) {
    return training_memory(model, offloading(layers)).front().activations.base();
  };
  const double layer = activations(0) / 8;
  EXPECT_DOUBLE_EQ(activations(1), 7 * layer);
  EXPECT_DOUBLE_EQ(activations(4), 4 * layer);
  EXPECT_DOUBLE_EQ(activations(7), 2 * layer);
  EXPECT_DOUBLE_EQ(activations(8), 2 * layer);
  for (int layers = 2; layers <= 8; ++layers)
    EXPECT_LE(activations(layers), activations(layers - 1));
}

/// Gradients wait for what they need: the first kernel of each layer's, for its copy.
TEST(Offload, GradientsWaitForTheirCopies) {
  const Program program = build_training(small_llama(4), offloading(4)).program;
  const auto is_backward = [&](std::size_t i) {
    return program.block_names[i].starts_with("backward");
  };
  std::size_t waits = 0;
  for (std::size_t i = 0; i < program.blocks.size(); ++i) {
    if (!is_backward(i)) continue;
    const OperatorGraph& graph = program.blocks[i];
    for (OperatorId op = 0; op < graph.size(); ++op) {
      if (graph[op].kind != OperatorKind::kCompute) continue;
      for (auto [edge, end] = boost::in_edges(op, graph.graph()); edge != end; ++edge) {
        const auto earlier = static_cast<OperatorId>(boost::source(*edge, graph.graph()));
        if (graph[earlier].name.find("activations from host") == std::string::npos) continue;
        ++waits;
        EXPECT_EQ(graph[earlier].name.substr(0, 8), graph[op].name.substr(0, 8));  // "layer 3 "
      }
    }
  }
  EXPECT_EQ(waits, 4U);
}

TEST(Offload, ProgramsAreSound) {
  for (const ParallelConfig& plan :
       {ParallelConfig{}, ParallelConfig{.tp = 2, .sp = true, .pp = 2, .vpp = 2, .dp = 2}}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      TrainingConfig config = offloading(2, plan);
      config.recompute = recompute;
      const Program program = build_training(small_llama(8), config, true).program;
      EXPECT_THAT(verify(program), IsEmpty());
      EXPECT_THAT(verify_tensors(program), IsEmpty());
    }
  }
}

TEST(Offload, OfMoreLayersThanAChunkHasIsRefused) {
  const LlmConfig model = small_llama(8);
  EXPECT_NO_THROW(require_supported(model, offloading(4, {.pp = 2})));
  try {
    require_supported(model, offloading(5, {.pp = 2}));
    ADD_FAILURE() << "accepted";
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("the longest chunk of a stage has 4 layers, got 5"));
  }
}

}  // namespace
}  // namespace orrery::offload_test
