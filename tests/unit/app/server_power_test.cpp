// SPDX-License-Identifier: Apache-2.0
// Power and price of shares of a server. A DGX H100 has 8 accelerators of 75 W idle; its hosts,
// switches, fans and losses draw 2,400 W, 300 W an accelerator. An accelerator costs 1.69 USD an
// hour (neocloud).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/app/experiments/serving/servers.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::server_power_test {
namespace {

using test::load;
using ::testing::HasSubstr;

constexpr double kHosts = 2400, kIdle = 75, kPrice = 1.69;
constexpr Picoseconds kSecond = 1'000'000'000'000;

std::string served(const std::string& group) {
  return "{experiment: serving, model: llama_3_1_8b, serving: {workload: {rate: 50 /s, requests: "
         "24, "
         "input: 200, output: 8}, fleet: [{engine: {kind: vllm, host: {}}, " +
         group + "}]}}";
}

std::string step(const std::string& kind, const std::string& more) {
  const std::string size = kind == "training" ? "sequence: 512, " : "";
  return "{experiment: " + kind + ", model: llama_3_1_8b, prices: neocloud, batch: {" + size +
         "micro: 1}, " + more + "}";
}

std::string decode(const std::string& more) {
  return step("inference", "phase: decode, kv_length: 512, " + more);
}

double metric(const RunRecord& record, const char* name) {
  const Metric* found = record.find(name);
  if (found == nullptr) ADD_FAILURE() << "no " << name << ", " << record.reason;
  return found != nullptr ? found->value : 0;
}

/// Power of systems beyond that of the accelerators that are used.
double beyond(const RunRecord& record) {
  return metric(record, "system_power_w") - metric(record, "average_power_w");
}

// Four halves of two, or eight quarters of one: no accelerator is left.
TEST(ServerPower, ReplicasThatFillAServerDrawOneServer) {
  for (const char* group : {"system: dgx_h100, parallel: {tp: 2}, replicas: 4",
                            "system: dgx_h100, parallel: {tp: 1}, replicas: 8",
                            "system: dgx_h100, parallel: {tp: 8}, replicas: 1"}) {
    for (const char* unused : {", unused: idle", ", unused: absent", ""}) {
      const RunRecord record = simulate(load(served(std::string(group) + unused)));
      EXPECT_NEAR(beyond(record), kHosts, 1e-6) << group << unused;
      EXPECT_LE(metric(record, "system_power_w"), 10200) << group;  // its nameplate
      EXPECT_NEAR(metric(record, "usd_per_hour"), 8 * kPrice, 1e-9) << group << unused;
      EXPECT_DOUBLE_EQ(metric(record, "mean_servers"), 1) << group;
    }
  }
}

// Six of eight are left: 2,400 + 6 x 75 = 2,850 W, and all eight are paid for; or a quarter of the
// host, 600 W, and two.
TEST(ServerPower, UnusedAcceleratorsIdleAndArePaidForOrAreAbsent) {
  const std::string one = "system: dgx_h100, parallel: {tp: 2}";
  const RunRecord idle = simulate(load(served(one)));
  EXPECT_NEAR(beyond(idle), kHosts + 6 * kIdle, 1e-6);
  EXPECT_NEAR(metric(idle, "usd_per_hour"), 8 * kPrice, 1e-9);
  const RunRecord absent = simulate(load(served(one + ", unused: absent")));
  EXPECT_NEAR(beyond(absent), kHosts / 4, 1e-6);
  EXPECT_NEAR(metric(absent, "usd_per_hour"), 2 * kPrice, 1e-9);
  EXPECT_DOUBLE_EQ(metric(absent, "mean_servers"), 0.25);
  for (const char* same : {"duration_s", "energy_j", "tokens_per_joule", "mean_ttft_ms",
                           "output_throughput_per_accelerator"})
    EXPECT_EQ(metric(idle, same), metric(absent, same)) << same;
}

// Of five replicas of two four fill a server; the fifth has one with six idle.
TEST(ServerPower, AReplicaBeyondAFullServerOpensAnother) {
  const RunRecord five = simulate(load(served("system: dgx_h100, parallel: {tp: 2}, replicas: 5")));
  EXPECT_NEAR(beyond(five), 2 * kHosts + 6 * kIdle, 1e-6);
  EXPECT_NEAR(metric(five, "usd_per_hour"), 16 * kPrice, 1e-9);
}

TEST(ServerPower, ReplicasDoNotStraddleServersThatTheyFitIn) {
  const auto fit = [](const std::string& group) {
    const LoadedExperiment loaded = load(served(group));
    return replicas_per_server(loaded.as<ServingExperiment>().serving.fleet.front());
  };
  EXPECT_EQ(fit("system: dgx_h100, parallel: {tp: 2, dp: 3}"), 1);            // 6 of 8
  EXPECT_EQ(fit("system: dgx_h100, parallel: {tp: 1, dp: 3}"), 2);            // 3 and 3 of 8
  EXPECT_EQ(fit("system: dgx_h100, parallel: {tp: 1, dp: 5}, nodes: 2"), 2);  // one in each
  EXPECT_EQ(fit("system: dgx_h100, parallel: {tp: 8, dp: 2}, nodes: 2"), 1);
  EXPECT_EQ(fit("system: dgx_h100, parallel: {tp: 4, dp: 3}, nodes: 3"), 2);  // 12 and 12 of 24
  EXPECT_EQ(fit("system: cm384, parallel: {tp: 2}"), 384);                    // two dies a package
}

std::vector<HeldAccelerators> held(const std::string& group,
                                   const std::vector<std::vector<HeldPeriod>>& periods) {
  return held_accelerators(load(served(group)).as<ServingExperiment>().serving, periods);
}

// A server with two replicas of four: 0 to 10 s and 5 to 20 s. Used 4 x 10 + 4 x 15 = 100 s, held
// 20 s, of eight 160 s. From 30 to 31 s one comes back: 4 and 8 s more.
TEST(ServerPower, AServerIsHeldWhileAnyOfItsReplicasIs) {
  const std::vector<std::vector<HeldPeriod>> periods = {
      {{0, 10 * kSecond}, {30 * kSecond, 31 * kSecond}}, {{5 * kSecond, 20 * kSecond}}};
  const std::string group = "system: dgx_h100, parallel: {tp: 4}, replicas: 2";
  const HeldAccelerators idle = held(group, periods).front();
  EXPECT_DOUBLE_EQ(idle.used.base(), 104);
  EXPECT_DOUBLE_EQ(idle.charged.base(), 168);
  const HeldAccelerators absent = held(group + ", unused: absent", periods).front();
  EXPECT_DOUBLE_EQ(absent.used.base(), 104);
  EXPECT_DOUBLE_EQ(absent.charged.base(), 104);
}

TEST(ServerPower, AServerOfReplicasThatAreNeverHeldIsNotCharged) {
  const std::vector<std::vector<HeldPeriod>> periods = {{{0, kSecond}}, {}, {}};
  const HeldAccelerators one =
      held("system: dgx_h100, parallel: {tp: 8}, replicas: 3", periods).front();
  EXPECT_DOUBLE_EQ(one.charged.base(), 8);
}

// Each replica has a server of its own: power of hosts, idle power and price all go by the servers
// that are held.
TEST(ServerPower, AnAutoscaledFleetSavesAsMuchPowerAsCost) {
  const auto run = [](const std::string& scale) {
    return simulate(load(
        "{experiment: serving, model: llama_3_1_8b, serving: {workload: {arrival: gamma, rate: 40 "
        "/s, burstiness: 0.05, requests: 600, input: 400, output: 30}, fleet: [{system: dgx_h100, "
        "parallel: {tp: 8}, replicas: 4, engine: {kind: vllm, max_num_seqs: 4, host: {}}" +
        scale + "}]}}"));
  };
  const RunRecord scaled =
      run(", autoscale: {min: 1, requests: 8, interval: 0.2 s, start: 0.5 s, cool_down: 0.4 s}");
  const RunRecord whole = run("");
  const double servers = metric(scaled, "mean_servers");
  EXPECT_GT(servers, 1);
  EXPECT_LT(servers, 3.5);
  EXPECT_DOUBLE_EQ(servers, metric(scaled, "mean_replicas"));
  EXPECT_NEAR(beyond(scaled), servers * kHosts, 1e-6 * kHosts);
  EXPECT_NEAR(metric(scaled, "usd_per_hour"), servers * 8 * kPrice, 1e-6);
  EXPECT_NEAR(beyond(whole), 4 * kHosts, 1e-6 * kHosts);
  // What iterations draw is not saved: at most a few hundred watts of 36 kW here.
  const double cost = metric(scaled, "usd_per_hour") / metric(whole, "usd_per_hour");
  const double power = metric(scaled, "system_power_w") / metric(whole, "system_power_w");
  EXPECT_NEAR(power, cost, 0.05);
  EXPECT_LT(metric(scaled, "average_power_w"), metric(whole, "average_power_w"));
}

// Replicas of two groups on one system, whose links the caches take: 2 + 4 of 8 accelerators.
TEST(ServerPower, PartsOfOneSystemThatCachesCrossAreOneServer) {
  const auto run = [](const std::string& unused) {
    return simulate(load(
        "{experiment: serving, model: llama_3_1_8b, serving: {workload: {rate: 50 /s, requests: "
        "24, "
        "input: 200, output: 8}, kv_transfer: {over: scale_up}, fleet: [{system: dgx_h100, role: "
        "prefill, parallel: {tp: 2}, engine: {kind: vllm}" +
        unused + "}, {system: dgx_h100, role: decode, parallel: {tp: 4}, engine: {kind: vllm}" +
        unused + "}]}}"));
  };
  const RunRecord idle = run("");
  EXPECT_NEAR(beyond(idle), kHosts + 2 * kIdle, 1e-6);
  EXPECT_NEAR(metric(idle, "usd_per_hour"), 8 * kPrice, 1e-9);
  const RunRecord absent = run(", unused: absent");
  EXPECT_NEAR(beyond(absent), kHosts * 6 / 8, 1e-6);
  EXPECT_NEAR(metric(absent, "usd_per_hour"), 6 * kPrice, 1e-9);
}

// On one of eight: 2,400 + 7 x 75 = 2,925 W beside it and the price of eight; or 300 W and one.
TEST(ServerPower, StepsOnAShareOfAServerAreChargedAsTheirUserSays) {
  for (const std::string& experiment :
       {decode("system: dgx_h100"), step("training", "system: dgx_h100, layers_only: 2")}) {
    const RunRecord idle = simulate(load(experiment));
    EXPECT_NEAR(beyond(idle), kHosts + 7 * kIdle, 1e-6);
    EXPECT_NEAR(metric(idle, "usd_per_hour"), 8 * kPrice, 1e-9);
    const RunRecord absent = simulate(load(experiment, {"unused=absent"}));
    EXPECT_NEAR(beyond(absent), kHosts / 8, 1e-6);
    EXPECT_NEAR(metric(absent, "usd_per_hour"), kPrice, 1e-9);
    EXPECT_NEAR(metric(idle, "usd_per_million_tokens") / metric(absent, "usd_per_million_tokens"),
                8, 1e-9);
    EXPECT_NEAR(metric(absent, "system_tokens_per_joule") * metric(absent, "system_power_w"),
                metric(absent, "tokens_per_s"), 1e-6 * metric(absent, "tokens_per_s"));
    EXPECT_EQ(metric(idle, "tokens_per_joule"), metric(absent, "tokens_per_joule"));
    EXPECT_EQ(metric(idle, "tokens_per_s_per_accelerator"),
              metric(absent, "tokens_per_s_per_accelerator"));
  }
}

// Half of the accelerators, half of the 2,400 W.
TEST(ServerPower, ASystemWithFewerAcceleratorsHasLessHostPower) {
  const std::string half = "system: {extends: dgx_h100, accelerators: 4, accelerators_per_node: 4}";
  const LoadedExperiment loaded = load(decode(half + ", parallel: {tp: 4}"));
  EXPECT_NEAR(beyond(simulate(loaded)), kHosts / 2, 1e-6);
  EXPECT_THAT(loaded.warnings, HasSubstr("all_in_power became 6.92 kW"));
  EXPECT_THAT(loaded.warnings, HasSubstr("host_power became 1.2 kW"));
  const std::vector<std::string> set = {"system.accelerators=4", "system.accelerators_per_node=4"};
  const LoadedExperiment same = load(decode("system: dgx_h100, parallel: {tp: 4}"), set);
  EXPECT_EQ(loaded.identity, same.identity);
  std::vector<std::string> written = {"system.host_power=3 kW"};
  written.insert(written.end(), set.begin(), set.end());
  const LoadedExperiment own = load(decode("system: dgx_h100, parallel: {tp: 4}"), written);
  EXPECT_NEAR(beyond(simulate(own)), 3000, 1e-6);
  EXPECT_NE(own.identity, same.identity);
  std::rotate(written.begin(), written.begin() + 1, written.end());
  EXPECT_EQ(load(decode("system: dgx_h100, parallel: {tp: 4}"), written).identity, own.identity);
}

// What a data centre provisions is not what a server draws: without a figure of its host, all that
// all_in_power leaves beside the design power is taken to be drawn.
TEST(ServerPower, HostsWithoutAFigureDrawWhatIsProvisionedBesideTheAccelerators) {
  const std::string own =
      "system: {extends: graphics_card, accelerators: 1, accelerator: a100_sxm, all_in_power: 900 "
      "W}";
  const LoadedExperiment loaded = load(decode(own));
  const double tdp = loaded.as<MachineExperiment>().system.accelerator.power.tdp.value.base();
  EXPECT_NEAR(beyond(simulate(loaded)), 900 - tdp, 1e-6);
}

}  // namespace
}  // namespace orrery::server_power_test
