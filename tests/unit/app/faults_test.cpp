// SPDX-License-Identifier: Apache-2.0
// Links that degrade, fail and come back in experiments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/app/experiments/core/simulate.h"
#include "sim/config/diagnostics.h"

namespace orrery::faults_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const std::string kConfigs = ORRERY_SOURCE_DIR "/configs";

/// An experiment from its text.
LoadedExperiment load(const std::string& text) {
  const fs::path file =
      fs::temp_directory_path() / ("orrery_faults_" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(file) << text;
  LoadedExperiment loaded = load_experiment(file.string(), {}, config::Library(kConfigs));
  fs::remove(file);
  return loaded;
}

std::string error_of(const std::string& text) {
  try {
    load(text);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// A ring of the 16 GPUs of a DGX-2: the launch of a kernel and a message as its start, 30 steps of
// 1.9 us, then 30/16 of the buffer at 80 % of 150 GB/s.
constexpr double kBytes = 1 << 30;
constexpr double kStart = 3.75e-6 + 1.9e-6;
constexpr double kLatency = kStart + 30 * 1.9e-6;
constexpr double kRate = 0.8 * 150e9;
constexpr double kCarried = 30.0 / 16 * kBytes;
constexpr double kPicosecond = 1e-12;

std::string ring(const std::string& faults) {
  return "experiment: collective\nsystem: dgx_2\n"
         "collective: {kind: all_reduce, bytes: 1 GiB, algorithm: ring}\nfaults: [" +
         faults + "]\n";
}
RunRecord run_ring(const std::string& faults) { return simulate(load(ring(faults))); }
double time_of(const RunRecord& record) { return record.find("time_s")->value; }

const std::string kUp = "{link: system0/node0/accelerator3->nvswitches";

TEST(Faults, WithoutAnyARingTakesItsClosedForm) {
  EXPECT_NEAR(time_of(run_ring("")), kLatency + kCarried / kRate, kPicosecond);
}

TEST(Faults, ARingWaitsForALinkOfHalfItsCapacity) {
  EXPECT_NEAR(time_of(run_ring(kUp + ", capacity: 0.5}")), kLatency + 2 * kCarried / kRate,
              kPicosecond);
}

TEST(Faults, ALinkThatDegradesOnTheWaySlowsTheRest) {
  // At 5 ms the ring has carried its bytes for 5 ms less its latency.
  const double left = kCarried - (5e-3 - kLatency) * kRate;
  EXPECT_NEAR(time_of(run_ring(kUp + ", at: 5 ms, capacity: 0.5}")), 5e-3 + 2 * left / kRate,
              2 * kPicosecond);
}

TEST(Faults, ALinkThatComesBackGoesOnWithWhatWasLeft) {
  const RunRecord record = run_ring(kUp + ", at: 5 ms}, " + kUp + ", at: 7 ms, capacity: 1}");
  EXPECT_NEAR(time_of(record), kLatency + kCarried / kRate + 2e-3, 2 * kPicosecond);
}

TEST(Faults, OfOneTimeTheLastOneCounts) {
  const RunRecord record = run_ring(kUp + ", capacity: 0.1}, " + kUp + ", capacity: 0.5}");
  EXPECT_NEAR(time_of(record), kLatency + 2 * kCarried / kRate, kPicosecond);
}

TEST(Faults, AfterTheEndTheyChangeNothing) {
  const RunRecord whole = run_ring("");
  const RunRecord record = run_ring("{link: \"*\", at: 1 s}");
  ASSERT_EQ(record.metrics.size(), whole.metrics.size());
  for (std::size_t i = 0; i < whole.metrics.size(); ++i)
    EXPECT_EQ(record.metrics[i].value, whole.metrics[i].value) << whole.metrics[i].name;
}

TEST(Faults, ADeadLinkWithoutAnotherWayIsAnInfeasiblePointThatNamesTransferLinkAndTime) {
  const RunRecord record = run_ring(kUp + ", at: 5 ms}");
  EXPECT_EQ(record.status, RunStatus::kInfeasible);
  EXPECT_THAT(record.reason,
              AllOf(HasSubstr("transfer 'all_reduce' stands still"),
                    HasSubstr("system0/node0/accelerator3->nvswitches is down from 5.00 ms on")));
}

TEST(Faults, ALinkThatIsDeadFromTheStartIsNamedTheSameWay) {
  EXPECT_THAT(run_ring(kUp + "}").reason,
              HasSubstr("system0/node0/accelerator3->nvswitches is down from 0"));
}

TEST(Faults, ADeadLinkThatNothingCrossesCostsNothing) {
  const std::string four =
      "experiment: collective\nsystem: dgx_2\n"
      "collective: {kind: all_reduce, bytes: 1 GiB, ranks: 4, algorithm: ring}\n";
  const RunRecord whole = simulate(load(four));
  const RunRecord record =
      simulate(load(four + "faults: [{link: system0/node0/accelerator7->nvswitches}]\n"));
  EXPECT_EQ(record.status, RunStatus::kOk);
  EXPECT_EQ(time_of(record), time_of(whole));
}

// Two systems: 16 rings, one a NIC, of which each carries 62/32 of its sixteenth of the buffer at
// 94 % of 6.25 GB/s. A chunk crosses between systems four times and takes 58 steps inside.
constexpr double kNicLatency = kStart + 58 * 1.9e-6 + 4 * 2.8e-6;
constexpr double kNicTime = 62.0 / 32 * kBytes / 16 / (0.94 * 6.25e9);

RunRecord run_two(const std::string& fault) {
  const std::string system =
      "{extends: dgx_2, accelerator: {extends: v100_sxm, scale_out: {bandwidth: 50 Gb/s}}, "
      "scale_out: {packages_per_nic: 1}}";
  return simulate(load("experiment: collective\nnodes: 2\nsystem: " + system +
                       "\ncollective: {kind: all_reduce, bytes: 1 GiB, algorithm: ring}\n"
                       "faults: [" +
                       fault + "]\n"));
}

TEST(Faults, TheNextNicCarriesTwoRingsWhereOneIsDead) {
  EXPECT_NEAR(time_of(run_two("")), kNicLatency + kNicTime, kPicosecond);
  const std::string nic = "{link: system1/node0/accelerator2->group0/leaf2";
  EXPECT_NEAR(time_of(run_two(nic + "}")), kNicLatency + 2 * kNicTime, kPicosecond);
  // Dead from halfway on: the other half takes twice its time.
  const double half = kNicLatency + kNicTime / 2;
  EXPECT_NEAR(time_of(run_two(nic + ", at: " + std::to_string(half * 1e3) + " ms}")),
              kNicLatency + 1.5 * kNicTime, 2e-9);
}

TEST(Faults, AMeshGoesAroundALinkThatDiesOnTheWay) {
  const auto run = [](const std::string& fault) {
    return time_of(
        simulate(load("experiment: collective\nsystem: dgx_1\n"
                      "collective: {kind: all_reduce, bytes: 1 GiB, algorithm: direct}\nfaults: [" +
                      fault + "]\n")));
  };
  const std::string link =
      "{link: system0/node0/accelerator0->system0/node0/accelerator1";  // one of 25 GB/s
  const double latency = kStart + 2 * 1.9e-6, whole = run(""), around = run(link + "}");
  // What 0 sends to 1 shares the other ways of two links.
  EXPECT_GT(around, 1.2 * whole);
  const double died = 10e-3;
  const double left = 1 - (died - latency) / (whole - latency);
  EXPECT_NEAR(run(link + ", at: 10 ms}"), died + left * (around - latency), 2 * kPicosecond);
}

TEST(Faults, SlowAStepOfTraining) {
  const std::string step = "extends: " + kConfigs + "/experiments/selene_22b_layer.yaml\n";
  const auto step_time = [](const RunRecord& record) { return record.find("step_time_s")->value; };
  const double whole = step_time(simulate(load(step)));
  const double slow = step_time(simulate(
      load(step + "faults: [{link: system0/node0/accelerator0->nvswitches, capacity: 0.25}]\n")));
  EXPECT_GT(slow, whole);
  const double later = step_time(simulate(
      load(step + "faults: [{link: system0/node0/accelerator0->nvswitches, capacity: 0.25, at: " +
           std::to_string(whole * 500) + " ms}]\n")));  // half-way
  EXPECT_GT(later, whole);
  EXPECT_LT(later, slow);
}

TEST(Faults, ALinkThatDoesNotExistIsShownWhereItIsWritten) {
  EXPECT_THAT(error_of(ring("{link: system0/node0/accelerator3->nvswitch}")),
              AllOf(HasSubstr(".yaml:4:17: error: there is no link"), HasSubstr("^~~"),
                    HasSubstr("did you mean 'system0/node0/accelerator3->nvswitches'?"),
                    HasSubstr("accelerator->nvswitches")));
  EXPECT_THAT(error_of(ring("{link: \"*leaf*\"}")), HasSubstr("there is no link '*leaf*'"));
}

TEST(Faults, OfAnOperatorAreAnError) {
  EXPECT_THAT(
      error_of("extends: " + kConfigs + "/experiments/copy_h100.yaml\nfaults: [{link: \"*\"}]\n"),
      AllOf(HasSubstr(":2:1: error: unknown key 'faults' in experiment operator"),
            HasSubstr("'faults' is a key of: collective, inference, layers, replay, training")));
}

TEST(Faults, ArePartOfTheIdentity) {
  EXPECT_NE(load(ring(kUp + "}")).identity, load(ring(kUp + ", at: 1 ms}")).identity);
}

}  // namespace
}  // namespace orrery::faults_test
