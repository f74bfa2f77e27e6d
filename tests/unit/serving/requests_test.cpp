// SPDX-License-Identifier: Apache-2.0
// Requests as they arrive: processes, lengths, clients, traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "tests/unit/serving/fixture.h"
#include "workloads/requests/lengths.h"

namespace orrery::requests_test {
namespace {

using test::requests_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Mean and variance of the gaps over their mean, of 20,000 requests at 10 a second.
std::pair<double, double> gaps_of(const std::string& keys) {
  const auto requests = requests_of("{rate: 10 /s, requests: 20000" + keys + "}");
  double last = 0, squares = 0;
  for (const Request& request : requests) {
    const double now = static_cast<double>(request.arrival) * 1e-12;
    EXPECT_GE(now, last);
    squares += std::pow((now - last) * 10, 2);
    last = now;
  }
  const double mean = last * 10 / 20000;
  return {mean, squares / 20000 - mean * mean};
}

TEST(Poisson, HasTheRateAndTheSpreadOfItsProcess) {
  const auto [mean, variance] = gaps_of("");
  EXPECT_NEAR(mean, 1, 3 / std::sqrt(20000.0));
  EXPECT_NEAR(variance, 1, 3 * std::sqrt(8 / 20000.0));  // fourth central moment 9, less 1
}

TEST(Poisson, SameSeedSameArrivals) {
  const auto times = [](const char* seed) {
    std::vector<Picoseconds> all;
    for (const Request& r :
         requests_of(std::string("{rate: 4 Hz, requests: 3, seed: ") + seed + "}"))
      all.push_back(r.arrival);
    return all;
  };
  EXPECT_NE(times("1"), times("2"));
  // By hand: gaps are -ln(u) / 4, u of SplitMix64 from seed 1.
  EXPECT_THAT(times("1"), ElementsAre(142042377596, 215372945637, 222729439355));
}

TEST(Poisson, RefusesARateOfNothing) {
  EXPECT_THROW(requests_of("{rate: 0 Hz}"), config::ConfigError);
  EXPECT_THROW(requests_of("{arrival: poison, rate: 1 Hz}"), config::ConfigError);
}

TEST(Gamma, BurstinessIsTheShapeOfItsGaps) {
  for (const double shape : {0.5, 4.0}) {
    const auto [mean, variance] = gaps_of(", arrival: gamma, burstiness: " + std::to_string(shape));
    EXPECT_NEAR(mean, 1, 3 / std::sqrt(20000.0 * shape));
    EXPECT_NEAR(variance * shape, 1, 0.12);  // 1 / shape
  }
}

TEST(Weibull, ShapeTwoHasTheVarianceOfRayleigh) {
  const auto [mean, variance] = gaps_of(", arrival: weibull, shape: 2");
  EXPECT_NEAR(mean, 1, 0.02);
  EXPECT_NEAR(variance, 4 / M_PI - 1, 0.02);
}

TEST(ClosedLoop, KeepsAsManyInFlightAsThereAreClients) {
  const auto config =
      test::read_of<RequestSourceConfig>("{concurrency: 3, requests: 5, input: 7, output: 2}");
  EXPECT_EQ(config->arrival, "closed_loop");
  const auto source = config->make();
  const std::vector<Request> first = test::all_of(*source);
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first[2], (Request{2, 0, 7, 2}));
  EXPECT_EQ(source->after(first[0], 10), (Request{3, 10, 7, 2}));
  EXPECT_EQ(source->after(first[1], 11), (Request{4, 11, 7, 2}));
  EXPECT_EQ(source->after(first[2], 12), std::nullopt);
}

TEST(Lengths, LieBetweenTheEndsOfAUniformRange) {
  std::vector<std::int64_t> counts(4);
  for (const Request& r : requests_of("{rate: 1 Hz, requests: 4000, input: {uniform: [5, 8]}}"))
    ++counts.at(static_cast<std::size_t>(r.prompt - 5));
  for (const std::int64_t count : counts) EXPECT_NEAR(double(count), 1000, 3 * std::sqrt(750.0));
}

TEST(Lengths, LognormalHasItsMeanAndP90) {
  std::vector<double> values;
  for (const Request& r :
       requests_of("{rate: 1 Hz, requests: 20000, output: {lognormal: {mean: 1000, p90: 2000}}}"))
    values.push_back(static_cast<double>(r.output));
  std::sort(values.begin(), values.end());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 20000;
  EXPECT_NEAR(mean, 1000, 25);
  EXPECT_NEAR(values[18000], 2000, 60);
}

TEST(Lengths, NoLognormalHasATailLongerThanItsMeanAllows) {
  const auto refuse = [](const char* lengths) {
    try {
      requests_of(std::string("{rate: 1 Hz, input: ") + lengths + "}");
    } catch (const config::ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refuse("{lognormal: {mean: 1024, p90: 3000}}"), HasSubstr("2.27"));
  EXPECT_EQ(refuse("{lognormal: {median: 1024, p90: 3000}}"), "");
  EXPECT_THAT(refuse("{lognormal: {p90: 3000}}"), HasSubstr("mean or median"));
  EXPECT_THAT(refuse("{uniform: [9, 3]}"), HasSubstr("least first"));
  EXPECT_THAT(refuse("{uniform: [1, 3], fixed: 3}"), HasSubstr("one of"));
}

/// A file that is there as long as the object.
class TraceFile {
 public:
  explicit TraceFile(const std::string& text)
      : path_(::testing::TempDir() + std::to_string(getpid()) + "_trace.txt") {
    std::ofstream(path_) << text;
  }
  ~TraceFile() { std::remove(path_.c_str()); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  std::vector<Request> requests(const std::string& keys = "") const {
    return requests_of("{trace: " + path_ + keys + "}");
  }

 private:
  std::string path_;
};

TEST(Sessions, EachTurnHasAllThatWasSaidBefore) {
  const auto config = test::read_of<RequestSourceConfig>(
      "{arrival: sessions, rate: 1 /s, sessions: 1, turns: 3, system_prompt: 32, input: 16, "
      "output: 10, think_time: 0 s}");
  const auto source = config->make();
  const auto first = source->next();
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(source->next().has_value());
  EXPECT_EQ(first->prompt, 32 + 16);
  const auto second = source->after(*first, 5'000'000);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->arrival, 5'000'000U);
  EXPECT_EQ(second->prompt, 48 + 10 + 16);
  // 58 tokens were said: three pieces of 16 are the same, the fourth has more in it.
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(second->prefix->pieces[i], first->prefix->pieces[i]);
  const auto third = source->after(*second, 6'000'000);
  ASSERT_TRUE(third.has_value());
  EXPECT_FALSE(source->after(*third, 7'000'000).has_value());
}

TEST(Sessions, ShareWhatAllBeginWithAndNothingElse) {
  const auto config = test::read_of<RequestSourceConfig>(
      "{arrival: sessions, rate: 1 /s, sessions: 2, turns: 1, system_prompt: 40, input: 30}");
  const auto source = config->make();
  const auto a = source->next(), b = source->next();
  EXPECT_EQ(a->prefix->pieces[1], b->prefix->pieces[1]);
  EXPECT_NE(a->prefix->pieces[2], b->prefix->pieces[2]);  // only 8 of its 16 tokens are common
}

TEST(Sessions, EndBeforeTheyGrowTooLong) {
  const auto config = test::read_of<RequestSourceConfig>(
      "{arrival: sessions, rate: 1 /s, sessions: 1, turns: 9, input: 50, output: 50, max_context: "
      "199}");
  const auto source = config->make();
  auto turn = source->next();
  EXPECT_FALSE(source->after(*turn, 1).has_value());  // 50 + 50 + 50 + 50
}

TEST(OpenArrivals, UrgentRequestsAreTheShareThatIsAskedFor) {
  std::int64_t urgent = 0;
  for (const Request& request : test::requests_of("{rate: 9 /s, requests: 4000, urgent: 0.25}"))
    urgent += request.priority == 0 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(urgent), 1000, 3 * 27.4);  // sqrt(4000 x 0.25 x 0.75)
  for (const Request& request : test::requests_of("{rate: 9 /s, requests: 9}"))
    EXPECT_EQ(request.priority, 0);
}

TEST(Trace, OfAzureCountsFromItsFirstRequest) {
  const TraceFile file(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-30 23:59:59.5000000,374,44\n"
      "2023-12-01 00:00:01.7500000,396,0\n");
  const auto requests = file.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0], (Request{0, 0, 374, 44}));
  EXPECT_EQ(requests[1], (Request{1, 2250000000000, 396, 1}));  // an answer has a token
  EXPECT_EQ(file.requests(", speed: 2")[1].arrival, 1125000000000U);
  EXPECT_EQ(file.requests(", requests: 1").size(), 1U);
}

TEST(Trace, OfVidurIsSorted) {
  const TraceFile file("arrived_at,num_prefill_tokens,num_decode_tokens\n2.5,10,3\n1.5,20,4\n");
  const auto requests = file.requests();
  EXPECT_EQ(requests[0], (Request{0, 0, 20, 4}));
  EXPECT_EQ(requests[1], (Request{1, 1000000000000, 10, 3}));
}

TEST(Trace, OfBurstGptHasMoreColumns) {
  const TraceFile file(
      "Timestamp[s],Session ID,Elapsed time[s],Model,Request tokens,Response tokens,Total "
      "tokens,Log Type\n5,1,2.5,ChatGPT,472,18,490,Conversation log\n");
  EXPECT_EQ(file.requests()[0], (Request{0, 0, 472, 18}));
}

TEST(Trace, OfMooncakeSharesPiecesOf512Tokens) {
  const TraceFile file(
      "{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": 5, \"hash_ids\": [0, 1, 2]}\n"
      "{\"timestamp\": 27, \"input_length\": 1600, \"output_length\": 6, \"hash_ids\": [0, 1, 7, "
      "8]}\n");
  const auto requests = file.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].arrival, 27000000000U);
  ASSERT_EQ(requests[0].prefix->pieces.size(), 2U);  // the third is not whole
  ASSERT_EQ(requests[1].prefix->pieces.size(), 3U);
  EXPECT_EQ(requests[0].prefix->pieces[1], requests[1].prefix->pieces[1]);
  EXPECT_NE(requests[1].prefix->pieces[1], requests[1].prefix->pieces[2]);
}

TEST(Trace, OfTokenIdsSharesWhatIsEqualFromTheBeginning) {
  std::string a, b;
  for (int i = 0; i < 32; ++i) {
    a += (i > 0 ? ", " : "") + std::to_string(i);
    b += (i > 0 ? ", " : "") + std::to_string(i == 20 ? 99 : i);
  }
  const auto line = [](const std::string& ids) {
    return "{\"input_toks\": 32, \"output_toks\": 2, \"arrival_time_ns\": 5, \"input_tok_ids\": [" +
           ids + "]}\n";
  };
  const auto requests = TraceFile(line(a) + line(b)).requests();
  ASSERT_EQ(requests[0].prefix->pieces.size(), 2U);
  EXPECT_EQ(requests[0].prefix->pieces[0], requests[1].prefix->pieces[0]);
  EXPECT_NE(requests[0].prefix->pieces[1], requests[1].prefix->pieces[1]);
}

TEST(Trace, SaysWhereItIsWrong) {
  const auto fault = [](const std::string& text) {
    try {
      TraceFile(text).requests();
    } catch (const config::ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(fault("TIMESTAMP,ContextTokens,GeneratedTokens\nnever,1,2\n"),
              HasSubstr("_trace.txt:2:1"));
  EXPECT_THAT(fault("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-30 23:59:59.5,many,2\n"),
              HasSubstr(":2:23"));
  EXPECT_THAT(fault("{\"hash_ids\": [1], \"timestamp\": 1}\n"), HasSubstr(":1:1"));
  const std::string lengths = "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": ";
  EXPECT_THAT(fault(lengths + "1e40, \"hash_ids\": [1]}\n"),
              HasSubstr(":1:1: error: 'output_length' is no number of tokens"));
  EXPECT_THAT(fault(lengths + "4, \"hash_ids\": [1e40]}\n"), HasSubstr("no integer of 64 bits"));
  EXPECT_THAT(fault("a,b\n1,2\n"), HasSubstr("no form that is known"));
  EXPECT_THAT(fault("TIMESTAMP,ContextTokens,GeneratedTokens\n"), HasSubstr("no requests"));
}

}  // namespace
}  // namespace orrery::requests_test
