// SPDX-License-Identifier: Apache-2.0
// Servers divided among what runs on them, over random systems, groups and times for which replicas
// are held. ORRERY_LAW_SEED and ORRERY_LAW_COUNT try others than the fixed ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/app/experiments/serving/servers.h"
#include "sim/config/load.h"

namespace orrery::server_laws_test {
namespace {

constexpr double kSame = 1e-9;
constexpr Picoseconds kHour = 3600 * Picoseconds{1'000'000'000'000};

using Periods = std::vector<HeldPeriod>;

const config::Library& library() {
  static const config::Library configs(ORRERY_SOURCE_DIR "/configs");
  return configs;
}

SystemConfig system_of(const std::string& name) {
  return config::load<SystemConfig>(library().locate("systems", name, ""), library(), "systems");
}

unsigned number(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::stoul(text)) : otherwise;
}

class Random {
 public:
  Random() : engine_(number("ORRERY_LAW_SEED", 1)) {}
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  double share() { return std::uniform_real_distribution<double>(0, 1)(engine_); }
  template <class T>
  const T& of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(between(0, static_cast<int>(choices.size()) - 1))];
  }
  /// Periods of an hour that do not overlap, or none.
  Periods periods() {
    std::vector<Picoseconds> ends;
    for (int i = 2 * between(0, 3); i > 0; --i)
      ends.push_back(static_cast<Picoseconds>(share() * static_cast<double>(kHour)));
    std::sort(ends.begin(), ends.end());
    Periods all;
    for (std::size_t i = 0; i < ends.size(); i += 2) all.push_back({ends[i], ends[i + 1]});
    return all;
  }

 private:
  std::mt19937 engine_;
};

const std::vector<SystemConfig>& systems() {
  static const std::vector<SystemConfig> all = [] {
    std::vector<SystemConfig> made;
    for (const char* name : {"dgx_h100", "gb200_nvl72", "cm384", "dgx_1", "mi300x_platform"})
      made.push_back(system_of(name));
    return made;
  }();
  return all;
}

struct Drawn {
  ServingConfig serving;
  std::vector<Periods> held;
};

ServingGroup drawn_group(Random& random) {
  ServingGroup group;
  group.system = random.of(systems());
  group.nodes = random.of<int>({1, 1, 1, 2, 3});
  group.parallel.tp = random.of<int>({1, 2, 3, 4, 6, 8});
  group.parallel.dp = random.between(1, 3);
  while (group.parallel.ranks() > group.system.ranks() * group.nodes) --group.parallel.tp;
  group.replicas = random.between(1, 12);
  return group;
}

Drawn drawn(Random& random) {
  Drawn drawn;
  for (int i = random.between(1, 3); i > 0; --i) {
    drawn.serving.fleet.push_back(drawn_group(random));
    for (int r = 0; r < drawn.serving.fleet.back().replicas; ++r)
      drawn.held.push_back(random.share() < 0.4 ? Periods{{0, kHour}} : random.periods());
  }
  return drawn;
}

std::vector<HeldAccelerators> charged(const Drawn& drawn, Unused unused) {
  ServingConfig serving = drawn.serving;
  for (ServingGroup& group : serving.fleet) group.unused = unused;
  return held_accelerators(serving, drawn.held);
}

double total(const std::vector<HeldAccelerators>& groups) {
  return std::accumulate(groups.begin(), groups.end(), 0.0,
                         [](double sum, const auto& group) { return sum + group.charged.base(); });
}

unsigned count() { return number("ORRERY_LAW_COUNT", 500); }

TEST(ServerLaws, AbsentChargesWhatReplicasUseAndIdleNoLess) {
  Random random;
  for (unsigned i = 0; i < count(); ++i) {
    const Drawn fleet = drawn(random);
    const auto absent = charged(fleet, Unused::kAbsent), idle = charged(fleet, Unused::kIdle);
    for (std::size_t g = 0; g < absent.size(); ++g) {
      EXPECT_EQ(absent[g].charged, absent[g].used);
      EXPECT_EQ(absent[g].used, idle[g].used);
      EXPECT_GE(idle[g].charged, idle[g].used);
    }
  }
}

TEST(ServerLaws, NoMoreIsChargedThanTheServersThatReplicasNeed) {
  Random random;
  for (unsigned i = 0; i < count(); ++i) {
    const Drawn fleet = drawn(random);
    const auto idle = charged(fleet, Unused::kIdle);
    for (std::size_t g = 0; g < idle.size(); ++g) {
      const ServingGroup& group = fleet.serving.fleet[g];
      const int on_one = replicas_per_server(group);
      EXPECT_LE(on_one * group.parallel.ranks(), group.system.ranks() * group.nodes);
      const int servers = (group.replicas + on_one - 1) / on_one;
      const double most = 3600.0 * servers * group.nodes * group.system.accelerators.value;
      EXPECT_LE(idle[g].charged.base(), most * (1 + kSame));
    }
  }
}

TEST(ServerLaws, FullServersThatAreHeldAllTheTimeCostTheSameEitherWay) {
  Random random;
  for (unsigned i = 0; i < count(); ++i) {
    Drawn fleet;
    ServingGroup group = drawn_group(random);
    group.nodes = 1;
    group.parallel.dp = 1;
    while (group.system.ranks() % group.parallel.tp != 0) --group.parallel.tp;
    const int on_one = group.system.ranks() / group.parallel.tp;
    group.replicas = on_one * random.between(1, 3);
    fleet.serving.fleet = {group};
    fleet.held.assign(static_cast<std::size_t>(group.replicas), {{0, kHour}});
    const double absent = total(charged(fleet, Unused::kAbsent));
    EXPECT_NEAR(total(charged(fleet, Unused::kIdle)), absent, kSame * absent);
    const double servers = 1.0 * group.replicas / on_one;
    EXPECT_NEAR(absent, 3600.0 * servers * group.system.accelerators.value, kSame * absent);
  }
}

TEST(ServerLaws, AGroupInTwoHasTheSameShares) {
  Random random;
  for (unsigned i = 0; i < count(); ++i) {
    Drawn whole = drawn(random);
    Drawn split = whole;
    ServingGroup& first = split.serving.fleet.front();
    if (first.replicas == 1) continue;
    ServingGroup second = first;
    second.replicas = random.between(1, first.replicas - 1);
    first.replicas -= second.replicas;
    split.serving.fleet.insert(split.serving.fleet.begin() + 1, second);
    const double shares = total(charged(whole, Unused::kAbsent));
    EXPECT_NEAR(total(charged(split, Unused::kAbsent)), shares, kSame * shares);
    // Servers of its own never save any, where all are held all the time.
    for (Drawn* fleet : {&whole, &split})
      for (Periods& periods : fleet->held) periods = {{0, kHour}};
    EXPECT_GE(total(charged(split, Unused::kIdle)),
              total(charged(whole, Unused::kIdle)) * (1 - kSame));
  }
}

TEST(ServerLaws, AReplicaMoreOrATimeLongerNeverCostsLess) {
  Random random;
  for (unsigned i = 0; i < count(); ++i) {
    Drawn fleet = drawn(random);
    const double before = total(charged(fleet, Unused::kIdle));
    Drawn longer = fleet;
    longer.held[static_cast<std::size_t>(
        random.between(0, static_cast<int>(fleet.held.size()) - 1))] = {{0, kHour}};
    // Gaps of the one that was drawn are filled: what is held is held longer.
    const double filled = total(charged(longer, Unused::kIdle));
    EXPECT_GE(filled, before * (1 - kSame));
    ++fleet.serving.fleet.back().replicas;
    fleet.held.push_back(random.periods());
    EXPECT_GE(total(charged(fleet, Unused::kIdle)), before * (1 - kSame));
  }
}

// Accelerators at their design power draw no more than all_in_power, all of it where the host has
// no figure of its own; shares of a server add up.
TEST(ServerLaws, SharesOfASystemAddUpToAtMostItsAllInPower) {
  Random random;
  for (unsigned i = 0; i < count(); ++i) {
    const SystemConfig& system = random.of(systems());
    const int nodes = random.between(1, 4);
    const Machine machine(system, nodes, "none", Machine::Part::kAccelerator);
    const double all = static_cast<double>(system.accelerators.value) * nodes;
    const Watts tdp = system.accelerator.power.tdp.value;
    const Watts all_in = std::max(system.all_in_power->value * nodes, tdp * all);
    for (const Unused unused : {Unused::kIdle, Unused::kAbsent}) {
      const Watts drawn = *machine.system_power(tdp * all, all, unused);
      EXPECT_LE(drawn, all_in * (1 + kSame));
      if (!system.host_power) {
        EXPECT_NEAR(drawn / all_in, 1, kSame);
      }
    }
    const double a = random.between(1, system.accelerators.value), b = all - a;
    const Watts of_a = tdp * a * random.share(), of_b = tdp * b * random.share();
    const auto absent = [&](Watts power, double used) {
      return *machine.system_power(power, used, Unused::kAbsent);
    };
    EXPECT_NEAR((absent(of_a, a) + absent(of_b, b)) / absent(of_a + of_b, all), 1, kSame);
    EXPECT_LE(absent(of_a, a), *machine.system_power(of_a, a, Unused::kIdle) * (1 + kSame));
  }
}

double metric(const RunRecord& record, const std::string& name) {
  const Metric* found = record.find(name);
  if (found == nullptr) ADD_FAILURE() << "no " << name << ", " << record.reason;
  return found != nullptr ? found->value : 0;
}

// With n servers charged on average and c their accelerators, systems draw what replicas draw, n
// times the host power, and idle power of the c that no held replica uses; they cost c prices. All
// per joule and per token follow.
TEST(ServerLaws, PowerPriceAndJoulesOfAFleetGoByTheServersThatItHolds) {
  Random random;
  const double hosts = 2400, idle = 75, price = 2.5;
  for (unsigned i = 0; i < std::max(1U, count() / 50); ++i) {
    const int tp = random.of<int>({1, 2, 4, 8}), replicas = random.between(1, 9);
    const bool absent = random.share() < 0.4, scaled = random.share() < 0.6;
    const std::string group =
        "{system: dgx_h100, parallel: {tp: " + std::to_string(tp) +
        "}, replicas: " + std::to_string(replicas) +
        ", usd_per_hour: 2.5, unused: " + (absent ? "absent" : "idle") +
        ", engine: {kind: vllm, max_num_seqs: 4, host: {}}" +
        (scaled ? ", autoscale: {min: 1, requests: 6, interval: 0.2 s, start: 0.5 s, cool_down: "
                  "0.4 s}"
                : "") +
        "}";
    const std::string text =
        "{experiment: serving, calibration: none, model: llama_3_1_8b, serving: {workload: "
        "{arrival: gamma, rate: 60 /s, burstiness: 0.1, requests: 200, input: 300, output: 16}, "
        "fleet: [" +
        group + "]}}";
    config::Diagnostics diagnostics;
    const RunRecord record = simulate(load_experiment(
        config::parse_yaml(text, "law.yaml", diagnostics), {}, diagnostics, library()));
    const double servers = metric(record, "mean_servers"), used = metric(record, "mean_replicas");
    const double power = metric(record, "system_power_w"), seconds = metric(record, "duration_s");
    const double unused = 8 * servers - tp * used;
    EXPECT_GE(unused, -1e-6) << group;
    if (absent) {
      EXPECT_NEAR(unused, 0, 1e-6) << group;
    } else if (!scaled) {
      EXPECT_DOUBLE_EQ(servers, (replicas + 8 / tp - 1) / (8 / tp)) << group;
    }
    EXPECT_NEAR(power, metric(record, "average_power_w") + hosts * servers + idle * unused,
                kSame * power)
        << group;
    EXPECT_LE(power, 13840 * servers * (1 + kSame)) << group;
    EXPECT_NEAR(metric(record, "usd_per_hour"), 8 * servers * price, kSame * power) << group;
    // Figures per token are those of the steady window, if there is one.
    const bool steady = record.find("steady_duration_s") != nullptr;
    const std::string window = steady ? "steady_" : "";
    const double time = metric(record, window + "duration_s");
    const double tokens = metric(record, window + "output_throughput") * time;
    EXPECT_NEAR(metric(record, "system_tokens_per_joule") *
                    metric(record, window + "system_power_w") * time,
                tokens, 1e-6 * tokens);
    EXPECT_NEAR(
        metric(record, "tokens_per_joule") * metric(record, window + "average_power_w") * time,
        tokens, 1e-6 * tokens);
    EXPECT_NEAR(metric(record, "usd_per_million_output_tokens") * tokens / 1e6,
                metric(record, window + "usd_per_hour") * time / 3600, 1e-9);
    EXPECT_NEAR(metric(record, "output_throughput") * seconds, 200 * 16, 1e-6);
  }
}

}  // namespace
}  // namespace orrery::server_laws_test
