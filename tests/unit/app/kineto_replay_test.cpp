// SPDX-License-Identifier: Apache-2.0
// "What if", asked of traces of the PyTorch profiler: faster kernels, another link, another system.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/graphs/replay.h"
#include "tests/unit/app/loaded_text.h"
#include "tests/unit/workloads/formats/kineto_traces.h"
#include "workloads/formats/chakra/graphs.h"
#include "workloads/formats/graph_files.h"

namespace orrery::kineto_replay_test {
namespace {

/// Begin of the names of files and folders of this process.
const std::string kTemp = testing::TempDir() + std::to_string(::getpid()) + "_";

using test::load;

constexpr double kNanosecond = 1e-9;

RunRecord run(const std::string& text, const std::vector<std::string>& set = {}) {
  return simulate(load(text, set));
}
double time_of(const std::string& text, const std::vector<std::string>& set = {}) {
  return run(text, set).find("time_s")->value;
}

/// A folder of traces, gone with the test.
class KinetoReplay : public testing::Test {
 protected:
  KinetoReplay()
      : folder_(kTemp + "kineto_replay_" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  ~KinetoReplay() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  static std::string experiment(const std::string& path, const std::string& more = {}) {
    return "experiment: replay\nsystem: dgx_h100\ngraph: {path: " + path + "}\n" + more;
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

// Calls at 0, 10, 20 us; kernels of 30 us from 6, 37 and 68 us on.
TEST_F(KinetoReplay, TwiceAsFastGemmsEqualHandArithmeticUntilTheHostLimits) {
  TraceText text;
  text.kernel("gemm", 0, 6, 30).kernel("softmax", 10, 37, 30).kernel("gemm", 20, 68, 30);
  const std::string path = write("trace.json", text.text());
  EXPECT_NEAR(time_of(experiment(path)), 98e-6, kNanosecond);
  EXPECT_NEAR(time_of(experiment(path, "scale: {gemm: 0.5}\n")), (98 - 15 - 15) * 1e-6,
              kNanosecond);
  // The last is launched at 20 us and begins 6 us later, whatever was before it.
  EXPECT_NEAR(time_of(experiment(path, "scale: {gemm: 0, softmax: 0}\n")), 26e-6, kNanosecond);
}

// A collective from 6 to 56 us of which the trace has recorded nothing but the time.
TEST_F(KinetoReplay, CollectivesOfUnknownSizeAreScaledAsCollectivesAndCountAsCommunication) {
  TraceText text;
  text.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 0, 6, 50);
  const std::string path = write("trace.json", text.text());
  const RunRecord record = run(experiment(path));
  EXPECT_NEAR(record.find("time_s")->value, 56e-6, kNanosecond);
  EXPECT_NEAR(record.find("breakdown.exposed_communication_s")->value, 50e-6, kNanosecond);
  EXPECT_EQ(record.classes.at(0).name, "collectives of unknown size");
  EXPECT_NEAR(time_of(experiment(path, "scale: {collective: 0.5}\n")), 31e-6, kNanosecond);
}

// Launched every 40 us, kernels of 10 us: the host is what takes the time.
TEST_F(KinetoReplay, FasterKernelsDoNotHelpAHostThatLaunchesAsItGoes) {
  TraceText text;
  text.kernel("gemm", 0, 6, 10).kernel("gemm", 40, 46, 10).kernel("gemm", 80, 86, 10);
  const std::string path = write("trace.json", text.text());
  EXPECT_NEAR(time_of(experiment(path)), 96e-6, kNanosecond);
  const RunRecord faster = run(experiment(path, "scale: {gemm: 0.5}\n"));
  EXPECT_NEAR(faster.find("time_s")->value, 91e-6, kNanosecond);
  EXPECT_NEAR(faster.find("longest_chain.host_s")->value, 86e-6, kNanosecond);
  EXPECT_NEAR(faster.find("longest_chain.gemm_s")->value, 5e-6, kNanosecond);
}

TEST_F(KinetoReplay, AsChakraTracesTheyTakeTheSameTime) {
  TraceText text;
  text.kernel("gemm", 0, 6, 30).kernel("softmax", 10, 37, 30, 9).kernel("gemm", 20, 90, 30);
  const std::string path = write("trace.json", text.text());
  const ImportedFiles files = read_graph_files({path, "", false, {}});
  std::ostringstream chakra;
  ChakraGraphWriter(files.run).write(0, chakra);
  const std::string again = write("again.0.et", chakra.str());
  for (const char* scale : {"", "scale: {gemm: 0.25}\n", "scale: {host: 0}\n"})
    EXPECT_EQ(time_of(experiment(path, scale)), time_of(experiment(again, scale))) << scale;
}

TEST_F(KinetoReplay, ProductsWithSizesTakeTheTimeOfTheSystemThatIsAsked) {
  TraceText text;
  text.cpu("aten::mm", 0, 9,
           R"("Input Dims": [[4096, 8192], [8192, 4096]], "Input type": ["c10::BFloat16", )"
           R"("c10::BFloat16"])");
  text.kernel("nvjet_tst_128x256", 1, 6, 30);
  const std::string path = write("trace.json", text.text());
  EXPECT_NEAR(time_of(experiment(path)), 36e-6, kNanosecond);
  for (const std::string system : {"dgx_h100", "dgx_a100"}) {
    const double product =
        time_of("experiment: operator\nsystem: " + system +
                "\nprecision: bf16\noperator: {kind: gemm, m: 4096, n: 4096, k: 8192}\n");
    // In the power state of single operators.
    EXPECT_NEAR(time_of(experiment(path, "durations: model\n"),
                        {"system=" + system, "system.accelerator.power.state=burst"}),
                6e-6 + product, 10 * kNanosecond)
        << system;
  }
}

std::string rank_trace(int rank, double duration) {
  TraceText text;
  text.kernel("gemm", 0, 6, 30);
  text.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 10, 36, duration, 7,
              R"(, "Collective name": "allreduce", "In msg nelems": 33554432,)"
              R"( "Out msg nelems": 33554432, "dtype": "BFloat16", "Group size": 2,)"
              R"( "Process Group Name": "0", "Process Group Ranks": "[0, 1]")");
  return text.text("\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " +
                   std::to_string(rank) + ", \"world_size\": 2}, ");
}

TEST_F(KinetoReplay, CollectivesOfSeveralRanksMeetAndTakeTheTimeOfTheLinkThatIsAsked) {
  write("host_4711.1695835535.pt.trace.json", rank_trace(1, 300));
  write("host_4712.1695835536.pt.trace.json", rank_trace(0, 250));
  // Recorded times have waits in them: the shortest of the ranks counts.
  EXPECT_NEAR(time_of(experiment(folder())), (36 + 250) * 1e-6, kNanosecond);
  for (const std::string system : {"dgx_h100", "dgx_a100"}) {
    const double all_reduce =
        time_of("experiment: collective\nsystem: " + system +
                "\ncollective: {kind: all_reduce, bytes: 64 MiB, ranks: 2}\n");
    EXPECT_NEAR(time_of(experiment(folder(), "durations: model\n"), {"system=" + system}),
                36e-6 + all_reduce, 10 * kNanosecond)
        << system;
  }
}

TEST_F(KinetoReplay, OneRankOfSeveralStandsAlone) {
  const std::string path = write("trace.json", rank_trace(1, 300));
  EXPECT_NEAR(time_of(experiment(path)), (36 + 300) * 1e-6, kNanosecond);
}

}  // namespace
}  // namespace orrery::kineto_replay_test
