// SPDX-License-Identifier: Apache-2.0
// Steps with sharded weights (parallel.zero: 3) against what must hold of any machine.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/sweeps/workers/run_point.h"

namespace orrery::sharded_steps_test {
namespace {

const std::string kConfigs = ORRERY_SOURCE_DIR "/configs";

/// A metric of a step of four layers on two nodes; in a process of its own, as one process holds
/// one machine.
double metric(const char* name, std::vector<std::string> changes) {
  changes.insert(changes.begin(),
                 {"nodes=2", "parallel={dp: 16, zero: 3}", "batch={micro: 1, sequence: 2048}",
                  "recompute=none",
                  "model={dimensions: {layers: 4, hidden: 4096, heads: 32, vocabulary: 32000}}"});
  const LoadedExperiment loaded = load_experiment(kConfigs + "/experiments/fsdp_llama_8b.yaml",
                                                  changes, config::Library(kConfigs));
  return simulate_isolated(loaded).record.find(name)->value;
}

double step_s(const std::vector<std::string>& changes) { return metric("step_time_s", changes); }

TEST(ShardedSteps, GatheringAheadIsNeverSlower) {
  for (const char* key : {"software.forward_prefetch", "software.backward_prefetch"}) {
    const std::string off = std::string(key) + "=false";
    EXPECT_GT(step_s({off}), step_s({})) << key;
    EXPECT_GE(step_s({off, "parallel.dp_shard=8"}), step_s({"parallel.dp_shard=8"})) << key;
  }
}

TEST(ShardedSteps, WeightsThatStayAreNeverSlower) {
  EXPECT_LE(step_s({"software.reshard_after_forward=false"}), step_s({}));
}

TEST(ShardedSteps, AreNoFasterWithSlowerLinks) {
  double before = 0;
  for (const char* bandwidth : {"400 Gb/s", "100 Gb/s", "25 Gb/s"}) {
    const double now = step_s({std::string("system.accelerator.scale_out.bandwidth=") + bandwidth});
    EXPECT_GE(now, before) << bandwidth;
    before = now;
  }
}

// With links of a hundred times the bandwidth the gathers cost what their latency does: the forward
// pass is that of whole weights.
TEST(ShardedSteps, OverAFastNetworkComputeWhatWholeWeightsDo) {
  const std::vector<std::string> fast = {"software={extends: megatron_core}",
                                         "batch={micro: 4, sequence: 4096}",
                                         "system.accelerator.scale_out.bandwidth=40 Tb/s",
                                         "system.accelerator.scale_up.bandwidth=45 TB/s"};
  std::vector<std::string> whole = fast;
  whole.emplace_back("parallel.zero=1");
  const double sharded = metric("forward_time_s", fast), kept = metric("forward_time_s", whole);
  EXPECT_GE(sharded, kept);
  EXPECT_LE(sharded, 1.05 * kept);
}

}  // namespace
}  // namespace orrery::sharded_steps_test
