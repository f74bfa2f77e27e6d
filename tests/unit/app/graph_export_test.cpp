// SPDX-License-Identifier: Apache-2.0
// Steps written as Chakra traces and read back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/app/experiments/steps/step_experiment.h"
#include "sim/app/pricing/machine_network.h"
#include "sim/app/pricing/pricing.h"
#include "sim/replay/graph_replay.h"
#include "tests/unit/app/loaded_text.h"
#include "workloads/formats/chakra/writer.h"
#include "workloads/formats/graph_files.h"

namespace orrery::graph_export_test {
namespace {

/// Begin of the names of files and folders of this process.
const std::string kTemp = testing::TempDir() + std::to_string(::getpid()) + "_";

const std::string kModel =
    "model: {dimensions: {layers: 4, hidden: 1024, heads: 8, vocabulary: 8192}}\n";

/// When a step ends, and when its traces do that were written and read again.
std::pair<Picoseconds, Picoseconds> both_ends(const std::string& text) {
  const LoadedExperiment loaded = test::load(text);
  const auto& step = dynamic_cast<const StepExperiment&>(*loaded.experiment);
  const Program program = step.program();
  const MachineNetwork network(step.machine());
  const auto model = step.machine().kernels({});
  const PricedProgram priced =
      price(program, step.machine().accelerator(), *model, network.start());
  PricedSteps steps{program, priced.costs, {}};
  for (const PricedTransfer& transfer : priced.transfers)
    steps.alone.push_back(to_picoseconds(transfer.isolated_time));

  const std::string folder = kTemp + "graph_export";
  std::filesystem::create_directories(folder);
  const ChakraWriter writer(steps);
  for (int rank = 0; rank < program.ranks; ++rank) {
    std::ofstream file(folder + "/step." + std::to_string(rank) + ".et", std::ios::binary);
    writer.write(rank, file);
  }
  const ImportedFiles files = read_graph_files({folder, {}, false, {}});
  std::filesystem::remove_all(folder);
  const ImportedTransfers transfers(files.run);
  GraphCosts nodes;
  nodes.transfers = &transfers;
  nodes.recorded_transfers = true;
  Costs costs;
  network.start().fill_links(costs);
  for (const Transfer& transfer : transfers.list())
    costs.transfers.push_back(network.start().cost(transfer));
  return {replay(program, priced.costs).end, replay(files.run, nodes, costs).end};
}

TEST(GraphExport, ATensorParallelTrainingStepReplaysToTheSameTime) {
  const auto [step, trace] = both_ends("experiment: training\nsystem: dgx_h100\n" + kModel +
                                       "parallel: {tp: 2, dp: 4}\n"
                                       "batch: {global: 8, micro: 1, sequence: 512}\n");
  EXPECT_EQ(step, trace);
}

TEST(GraphExport, APipelineReplaysToTheSameTime) {
  const auto [step, trace] = both_ends("experiment: training\nsystem: dgx_h100\n" + kModel +
                                       "parallel: {tp: 2, pp: 4}\n"
                                       "batch: {global: 8, micro: 1, sequence: 512}\n");
  EXPECT_EQ(step, trace);
}

TEST(GraphExport, ADecodeStepReplaysToTheSameTime) {
  const auto [step, trace] = both_ends("experiment: inference\nsystem: dgx_h100\n" + kModel +
                                       "parallel: {tp: 8}\nphase: decode\nkv_length: 1024\n"
                                       "batch: {global: 8}\n");
  EXPECT_EQ(step, trace);
}

}  // namespace
}  // namespace orrery::graph_export_test
