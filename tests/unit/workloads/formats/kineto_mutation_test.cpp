// SPDX-License-Identifier: Apache-2.0
// Damaged traces: the reader gives a graph that can be replayed, or a ConfigError that names the
// file, and never anything else. The damages follow from a seed.
#include <array>
#include <random>

#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/formats/kineto_traces.h"

namespace orrery::kineto_mutation_test {
namespace {

/// A bit of everything that the reader knows.
std::string sample_trace() {
  TraceText text;
  text.cpu("aten::mm", 0, 8, R"("Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"])");
  text.cpu("record_param_comms", 9, 10,
           R"("Collective name": "allreduce", "In msg nelems": 64, "Out msg nelems": 64,)"
           R"( "dtype": "Float", "Group size": 2, "Process Group Ranks": "[0, 1]")");
  text.kernel("gemm", 1, 6, 30).kernel("ncclDevKernel_AllReduce", 10, 37, 30, 20);
  text.call("cudaEventRecord", 12, 1);
  const int record = text.correlation();
  text.call("cudaStreamWaitEvent", 14, 1);
  text.sync(
      "Stream Wait Event", 7,
      R"(, "wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": )" + std::to_string(record));
  text.kernel("softmax", 20, 68, 30).copy("cudaMemcpyAsync", 30, 80, 99, 9);
  text.call("cudaStreamSynchronize", 112, 5).sync("Stream Sync", 7);
  text.kernel("late", 120, 126, 3, 7, "", 2).call("cudaDeviceSynchronize", 125, 9);
  text.event(R"({"ph": "s", "id": 7, "pid": 9, "tid": 1, "ts": 130.5, "cat": "ac2g"})");
  return text.text(R"("schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 2, )"
                   R"("pg_config": [{"pg_name": "0", "pg_size": 2, "ranks": [0, 1]}]}, )");
}

class Damage {
 public:
  explicit Damage(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void apply(std::string& text) {
    constexpr std::array<const char*, 20> kWords = {
        "-1",   "1e999", "NaN",     "-Infinity", "99999999999999999999", "\"", ",",  "{[{", "null",
        "\x01", "\\u",   "\\ud800", "]}",        "18446744073709551616", "",   "\n", "0.5", "-0",
        "\xFF", "1e-9"};
    if (text.empty()) return;
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] ^= static_cast<char>(1U << below(8));
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.replace(at, below(6), kWords[below(kWords.size())]);
        break;
      case 3: {  // a number for another
        const std::size_t number = text.find_first_of("0123456789", at);
        if (number != std::string::npos)
          text.replace(number, text.find_first_not_of("0123456789.", number) - number,
                       kWords[below(kWords.size())]);
        break;
      }
      default:
        text.insert(at, text.substr(below(text.size()), below(200)));
    }
  }

 private:
  std::mt19937 random_;
};

TEST(KinetoMutations, GiveAGraphOrAConfigError) {
  constexpr int kRounds = 4000;
  const std::string whole = sample_trace();
  ASSERT_GT(read_trace_text(whole).span, 0);
  Damage damage(20251126);
  int graphs = 0, errors = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = whole;
    for (std::size_t n = damage.below(3) + 1; n > 0; --n) damage.apply(text);
    try {
      EXPECT_GE(read_trace_text(text).span, 0) << text;
      ++graphs;
    } catch (const config::ConfigError& error) {
      ++errors;
      EXPECT_NE(std::string(error.what()).find("trace.json"), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(graphs, kRounds / 10);
  EXPECT_GT(errors, kRounds / 10);
}

/// Where pieces of a file begin and end makes no difference: what is mended across them neither.
TEST(KinetoMutations, PiecesOfAFileMakeNoDifference) {
  TraceText text;
  text.kernel("a\\ud83d\\ude00b\\q", 0, 6, 10, 7, R"(, "x": -Infinity, "y": "\ud800")");
  const std::string event = text.text();
  for (std::size_t padding = 0; padding < 40; ++padding) {
    constexpr std::size_t kPiece = std::size_t{1} << 18U;
    const std::size_t at = event.find("a\\ud83d") + padding;
    const std::string spaces(kPiece - at, ' ');
    const ReadTrace trace = read_trace_text(spaces + event);
    EXPECT_EQ(trace
                  .named("a\xF0\x9F\x98\x80"
                         "b?q")
                  .size(),
              1U)
        << padding;
    EXPECT_TRUE(trace.notes_contain("2 escapes")) << padding;
  }
}

}  // namespace
}  // namespace orrery::kineto_mutation_test
