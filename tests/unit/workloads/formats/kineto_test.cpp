// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/formats/kineto_traces.h"

namespace orrery::kineto_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNanosecond = 1e-3;  // us

std::string refusal(const std::string& text) {
  try {
    read_trace_text(text);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

/// Host at 0, 10, 20 us; kernels of 30 us that queue behind each other from 6 us on, 1 us apart.
TraceText queue_of_three() {
  TraceText trace;
  trace.kernel("gemm", 0, 6, 30).kernel("softmax", 10, 37, 30).kernel("gemm", 20, 68, 30);
  return trace;
}

TEST(Kineto, KernelsBeginWhenTheTraceSays) {
  const ReadTrace trace = read_trace_text(queue_of_three().text());
  const std::vector<NodeId> products = trace.named("gemm");
  ASSERT_EQ(products.size(), 2U);
  EXPECT_NEAR(trace.start[products[0]], 6, kNanosecond);
  EXPECT_NEAR(trace.start[trace.named("softmax").at(0)], 37, kNanosecond);
  EXPECT_NEAR(trace.start[products[1]], 68, kNanosecond);
  EXPECT_NEAR(trace.span, 98, kNanosecond);
}

TEST(Kineto, FasterKernelsShortenATraceByWhatTheySaveAndKeepTheGapsBetweenThem) {
  ReadTrace trace = read_trace_text(queue_of_three().text());
  trace.replay({{"gemm", 0.5}});
  EXPECT_NEAR(trace.span, 98 - 15 - 15, kNanosecond);
}

TEST(Kineto, FasterKernelsShortenATraceOnlyUntilTheHostLimits) {
  ReadTrace trace = read_trace_text(queue_of_three().text());
  trace.replay({{"gemm", 0}, {"softmax", 0}});
  // The last is launched at 20 us, 6 us before it begins; the gap behind the one before is over.
  EXPECT_NEAR(trace.span, 26, kNanosecond);
}

TEST(Kineto, AHostThatSynchronisesWaitsForTheKernelsAndGoesOnAfterThem) {
  TraceText text = queue_of_three();
  text.call("cudaDeviceSynchronize", 30, 70);  // returns at 100, 2 us after the last kernel
  text.kernel("late", 110, 116, 10);
  ReadTrace trace = read_trace_text(text.text());
  EXPECT_NEAR(trace.start[trace.named("late").at(0)], 116, kNanosecond);
  trace.replay({{"gemm", 0.5}});
  EXPECT_NEAR(trace.start[trace.named("late").at(0)], 116 - 30, kNanosecond);
  trace.replay({{"gemm", 0}, {"softmax", 0}});
  // Host: it gets to the call at 30 us, and needs 18 us from the end of the last kernel on.
  EXPECT_NEAR(trace.start[trace.named("late").at(0)], 30 + 18, kNanosecond);
}

TEST(Kineto, ACopyThatReturnsWhenItIsDoneHoldsTheHostUp) {
  TraceText text;
  text.kernel("gemm", 0, 6, 50).copy("cudaMemcpyAsync", 10, 52, 57, 3);  // until 62
  text.kernel("late", 70, 76, 10);
  ReadTrace trace = read_trace_text(text.text());
  trace.replay({{"gemm", 0.2}});
  EXPECT_NEAR(trace.start[trace.named("late").at(0)], 76 - 40, kNanosecond);
}

TEST(Kineto, AHostWhoseQueueIsFullGoesOnAsTheDeviceDoes) {
  TraceText text;
  constexpr int kKernels = 1100;  // a microsecond on the host, ten on the device
  for (int i = 0; i < kKernels; ++i) text.kernel("gemm", i, 6 + 10 * i, 10);
  // Full until the 400th kernel ends at 4,006 us.
  text.call("cudaLaunchKernel", kKernels, 4006 - kKernels);
  text.op("kernel", "late", 6 + 10 * kKernels, 1, 7);
  text.kernel("other", 4100, 4106, 1, 9);
  ReadTrace trace = read_trace_text(text.text());
  EXPECT_TRUE(trace.notes_contain("1 launches that waited"));
  EXPECT_NEAR(trace.start[trace.named("other").at(0)], 4106, kNanosecond);
  trace.replay({{"gemm", 0.5}});
  EXPECT_NEAR(trace.start[trace.named("other").at(0)], 6 + 400 * 5 + 100, kNanosecond);
}

TEST(Kineto, StreamsThatWaitForAnEventWaitForWhatWasLaunchedBeforeItWasRecorded) {
  TraceText text;
  text.kernel("first", 0, 6, 50, 7);
  text.call("cudaEventRecord", 8, 1);
  const int record = text.correlation();
  text.kernel("behind the event", 10, 56, 50, 7);
  text.call("cudaStreamWaitEvent", 20, 1);
  text.sync(
      "Stream Wait Event", 24,
      R"(, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": )" + std::to_string(record));
  text.kernel("waiter", 30, 57, 10, 24);
  ReadTrace trace = read_trace_text(text.text());
  EXPECT_NEAR(trace.start[trace.named("waiter").at(0)], 57, kNanosecond);
  trace.replay({{"first", 2}});
  EXPECT_NEAR(trace.start[trace.named("waiter").at(0)], 107, kNanosecond);
  trace.replay({{"behind the event", 2}});
  EXPECT_NEAR(trace.start[trace.named("waiter").at(0)], 57, kNanosecond);
}

TEST(Kineto, WaitsWhoseStreamsAreNotRecordedAreForWhatTheOtherStreamsHad) {
  TraceText text;
  text.kernel("first", 0, 6, 50, 7).call("cudaStreamWaitEvent", 20, 1);
  text.kernel("waiter", 30, 57, 10, 24);
  ReadTrace trace = read_trace_text(text.text());
  trace.replay({{"first", 2}});
  EXPECT_NEAR(trace.start[trace.named("waiter").at(0)], 107, kNanosecond);
  EXPECT_TRUE(trace.notes_contain("1 waits of streams whose event"));
}

TEST(Kineto, AKernelThatBeginsLateAsAnotherStreamEndsWaitsForIt) {
  TraceText text;
  text.kernel("first", 0, 6, 200, 7).kernel("late", 10, 208, 10, 24);  // no event is recorded
  text.kernel("apart", 20, 120, 10, 25);                               // nothing ends then
  ReadTrace trace = read_trace_text(text.text());
  EXPECT_TRUE(trace.notes_contain("1 kernels that begin late"));
  trace.replay({{"first", 0.5}});
  EXPECT_NEAR(trace.start[trace.named("late").at(0)], 108, kNanosecond);
  EXPECT_NEAR(trace.start[trace.named("apart").at(0)], 120, kNanosecond);
}

TEST(Kineto, AThreadThatWasIdleFollowsTheOneThatWentOnMeanwhile) {
  TraceText text;
  text.kernel("forward", 0, 6, 500, 7).call("cudaStreamSynchronize", 10, 500);
  text.kernel("between", 520, 526, 10, 7);
  text.kernel("backward", 600, 606, 10, 7, "", 2);  // another thread
  ReadTrace trace = read_trace_text(text.text());
  trace.replay({{"forward", 0.5}});
  EXPECT_NEAR(trace.start[trace.named("backward").at(0)], 606 - 250, kNanosecond);
}

TEST(Kineto, KernelsWhoseLaunchIsMissingFollowTheirStream) {
  TraceText text;
  text.op("kernel", "a", 5, 10, 7).op("kernel", "b", 17, 10, 7);
  ReadTrace trace = read_trace_text(text.text());
  EXPECT_NEAR(trace.span, 22, kNanosecond);  // from the first event on
  trace.replay({{"a", 2}});
  EXPECT_NEAR(trace.span, 32, kNanosecond);
  EXPECT_TRUE(trace.notes_contain("2 kernels whose launch the trace does not have"));
}

TEST(Kineto, GraphsThatOneCallLaunchesWaitForIt) {
  TraceText text;
  text.call("cudaGraphLaunch", 0, 5);
  text.op("kernel", "a", 10, 10, 7).op("kernel", "b", 21, 10, 7).op("kernel", "c", 12, 5, 9);
  const ReadTrace trace = read_trace_text(text.text());
  EXPECT_NEAR(trace.span, 31, kNanosecond);
  EXPECT_FALSE(trace.notes_contain("launch the trace does not have"));
}

TEST(Kineto, EventsMayStandInAnyOrder) {
  TraceText text = queue_of_three();
  text.call("cudaDeviceSynchronize", 30, 70).kernel("late", 110, 116, 10);
  text.cpu("aten::mm", 0, 8, R"("Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"])");
  const ReadTrace ordered = read_trace_text(text.text());
  std::mt19937 random(1);
  for (int round = 0; round < 10; ++round) {
    std::shuffle(text.events().begin(), text.events().end(), random);
    const ReadTrace shuffled = read_trace_text(text.text());
    EXPECT_EQ(shuffled.start, ordered.start);
    EXPECT_EQ(shuffled.graph.next, ordered.graph.next);
    EXPECT_EQ(shuffled.graph.kernels, ordered.graph.kernels);
  }
}

TEST(Kineto, FilesAreRecognisedByWhatTheyHold) {
  const auto& format = GraphFormatRegistry::items().at("kineto").entry;
  EXPECT_TRUE(format->recognises("{\"schemaVersion\": 1, \"deviceProperties\": [", ""));
  EXPECT_TRUE(format->recognises(" {\"traceEvents\": [", ""));
  EXPECT_TRUE(format->recognises("[{\"ph\": \"X\"", ""));
  EXPECT_FALSE(format->recognises("{\"schema\": \"1.0.1\", \"pid\": 1, \"nodes\": [", ""));
  EXPECT_FALSE(format->recognises("{\"graph\": 1}", ""));
  EXPECT_FALSE(format->recognises("", ""));
}

TEST(Kineto, EventsMayStandAnywhereInTheFileOrAlone) {
  const TraceText text = queue_of_three();
  const double span = read_trace_text(text.text()).span;
  EXPECT_EQ(read_trace_text(text.array()).span, span);
  EXPECT_EQ(read_trace_text("{\"a\": {\"traceEvents\": 3}, \"traceEvents\": " + text.array() +
                            ", \"distributedInfo\": {\"rank\": 5}}")
                .rank,
            5);
  std::string open = text.array();
  open.pop_back();
  const ReadTrace trace = read_trace_text(open + ",\n");
  EXPECT_EQ(trace.span, span);
  EXPECT_TRUE(trace.notes_contain("not closed"));
}

TEST(Kineto, TimesOfEpochsKeepTheirNanoseconds) {
  TraceText text;
  text.event(
      R"({"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1712867402348256.001,"dur":0.002})");
  text.event(
      R"({"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":1712867402348256.007,"dur":1e-2})");
  const ReadTrace trace = read_trace_text(text.text());
  EXPECT_NEAR(trace.start[trace.named("b").at(0)], 0.006, 1e-9);
  EXPECT_NEAR(trace.span, 0.016, 1e-9);
}

TEST(Kineto, NamesWithWrongBytesAreReadWithANote) {
  TraceText text;
  text.kernel(
      "a\x01"
      "b\xFF"
      "c\\x",
      0, 6, 10, 7, R"(, "occupancy": -Infinity, "warps": nan)");
  const ReadTrace trace = read_trace_text(text.text());
  EXPECT_EQ(trace.named("a b?c?x").size(), 1U);
  EXPECT_TRUE(trace.notes_contain("1 control characters"));
  EXPECT_TRUE(trace.notes_contain("1 bytes of names that are no UTF-8"));
  EXPECT_TRUE(trace.notes_contain("1 escapes"));
  EXPECT_TRUE(trace.notes_contain("2 values that are no numbers"));
}

TEST(Kineto, TextsThatWouldFillTheMemoryAreCut) {
  TraceText text;
  text.kernel(std::string(std::size_t{1} << 20U, 'x'), 0, 6, 10).kernel("after", 10, 20, 5);
  const ReadTrace trace = read_trace_text(text.text());
  EXPECT_EQ(trace.graph.pool.at(trace.graph.names[1]).size(), 65536U);
  EXPECT_EQ(trace.named("after").size(), 1U);
  EXPECT_TRUE(trace.notes_contain("1 texts longer"));
}

TEST(Kineto, EventsWithoutATimeAreLeftOutAndCounted) {
  TraceText text = queue_of_three();
  text.event(R"({"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":NaN,"dur":2})");
  text.event(R"({"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":7,"dur":-2})");
  text.event(R"({"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":1e300,"dur":2})");
  EXPECT_TRUE(read_trace_text(text.text()).notes_contain("3 events with times"));
}

TEST(Kineto, WhatIsNoTraceIsRefusedWithTheFileAndTheOffset) {
  const std::string whole = queue_of_three().text();
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 40)),
              HasSubstr("trace.json: at byte " + std::to_string(whole.size() - 40) +
                        ": the file ends too early"));
  EXPECT_THAT(refusal("{\"traceEvents\": [}"), HasSubstr("trace.json: at byte 17: no JSON"));
  EXPECT_THAT(refusal("{\"traceEvents\": " + std::string(100000, '[')), HasSubstr("nested deeper"));
  EXPECT_THAT(refusal("[" + std::string(5000, '1') + "]"), HasSubstr("at byte"));
  EXPECT_THAT(refusal("[{\"ts\": 0." + std::string(1U << 20U, '1') + "}]"),
              HasSubstr("4,096 characters"));
  EXPECT_THAT(refusal("[{\"ts\": 1e99999}]"), HasSubstr("at byte"));
  EXPECT_THAT(refusal("{\"nodes\": []}"), HasSubstr("has no traceEvents"));
  EXPECT_THAT(refusal("{\"traceEvents\": []}"), HasSubstr("has no kernels"));
  EXPECT_THAT(refusal(""), HasSubstr("ends too early"));
}

TEST(Kineto, EventsThatAreYearsApartAreRefused) {
  TraceText text = queue_of_three();
  text.op("kernel", "a", 1.7e15, 10, 7);
  EXPECT_THAT(refusal(text.text()), HasSubstr("days apart"));
}

}  // namespace
}  // namespace orrery::kineto_test
