// SPDX-License-Identifier: Apache-2.0
// Traces that real programs have left, where they are at hand: ../shared beside the source tree.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/unit/workloads/formats/kineto_traces.h"

namespace orrery::kineto_recorded_test {
namespace {

std::string path_of(const std::string& name) {
  return std::string(ORRERY_SOURCE_DIR) + "/../shared/chakra/kineto/" + name + ".json.gz";
}

class RecordedTrace : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(path_of(GetParam()))) GTEST_SKIP() << "no " << path_of(GetParam());
  }
};

/// When kernels, copies and fills start and end, us, as a parser of whole files finds them.
std::vector<std::pair<double, double>> recorded(const std::string& path) {
  ByteSource source(path);
  std::string text;
  while (!source.at_end()) text += source.next();
  const auto json = nlohmann::json::parse(text);
  std::vector<std::pair<double, double>> times;
  for (const auto& event : json.at("traceEvents")) {
    const std::string category = event.value("cat", "");
    if (category != "kernel" && category != "gpu_memcpy" && category != "gpu_memset") continue;
    const double start = event.at("ts").get<double>();
    times.emplace_back(start, start + event.at("dur").get<double>());
  }
  std::sort(times.begin(), times.end());
  return times;
}

std::vector<std::pair<double, double>> replayed(const ReadTrace& trace) {
  std::vector<std::pair<double, double>> times;
  for (NodeId node = 0; node < trace.graph.size(); ++node)
    if (trace.graph.nodes[node].kind != NodeKind::kHost)
      times.emplace_back(trace.start[node], trace.end[node]);
  std::sort(times.begin(), times.end());
  return times;
}

TEST_P(RecordedTrace, ReplaysEveryKernelWhenItRan) {
  ByteSource source(path_of(GetParam()));
  const ReadTrace trace = read_trace(source);
  const auto expected = recorded(path_of(GetParam())), found = replayed(trace);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    // A double holds times of epochs to a quarter of a microsecond.
    ASSERT_NEAR(found[i].first - found[0].first, expected[i].first - expected[0].first, 1) << i;
    ASSERT_NEAR(found[i].second - found[0].first, expected[i].second - expected[0].first, 1) << i;
  }
}

TEST_P(RecordedTrace, IsShorterWithFasterKernelsButNotThanItsHost) {
  ByteSource source(path_of(GetParam()));
  ReadTrace trace = read_trace(source);
  const double recorded = trace.span;
  std::map<std::string, double> half, none;
  double kernels = 0;
  for (NodeId node = 0; node < trace.graph.size(); ++node) {
    if (trace.graph.nodes[node].kind == NodeKind::kHost) continue;
    half[std::string(trace.graph.name(node))] = 0.5;
    none[std::string(trace.graph.name(node))] = 0;
    kernels += trace.end[node] - trace.start[node];
  }
  trace.replay(half);
  const double halved = trace.span;
  trace.replay(none);
  EXPECT_LE(halved, recorded);
  EXPECT_LE(trace.span, halved);
  EXPECT_GE(halved, recorded - kernels / 2);
  EXPECT_GE(trace.span, recorded - kernels);
}

INSTANTIATE_TEST_SUITE_P(Kineto, RecordedTrace,
                         testing::Values("alexnet", "control", "event_sync_multi_stream",
                                         "mi250_toy_train", "nccl_metadata", "sampled_rank-0",
                                         "sampled_rank-1", "simple_add"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(KinetoRecorded, CollectivesOfNcclHaveTheirBytesAndGroup) {
  if (!std::filesystem::exists(path_of("nccl_metadata"))) GTEST_SKIP() << "no nccl_metadata";
  ByteSource source(path_of("nccl_metadata"));
  const ReadTrace trace = read_trace(source);
  std::size_t reductions = 0;
  for (NodeId node = 0; node < trace.graph.size(); ++node) {
    if (trace.graph.nodes[node].kind != NodeKind::kCollective) continue;
    const ImportedMessage& message = trace.graph.messages[trace.graph.nodes[node].work];
    EXPECT_EQ(trace.communicators.groups().at(message.group), (std::vector<int>{0, 1}));
    if (message.kind == TransferKind::kAllReduce) ++reductions;
  }
  EXPECT_EQ(reductions, 15U);
  EXPECT_EQ(trace.rank, 0);
}

}  // namespace
}  // namespace orrery::kineto_recorded_test
