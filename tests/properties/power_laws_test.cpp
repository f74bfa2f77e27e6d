// SPDX-License-Identifier: Apache-2.0
// The power cap over random devices, limits, kernels and steps. ORRERY_LAW_SEED and
// ORRERY_LAW_COUNT try others than the fixed ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/steps/model_experiment.h"
#include "sim/app/pricing/step_power.h"
#include "sim/app/sweeps/workers/isolate.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/config/load.h"
#include "sim/units/text.h"

namespace orrery::power_laws_test {
namespace {

const config::Library& library() {
  static const config::Library configs(ORRERY_SOURCE_DIR "/configs");
  return configs;
}

LoadedExperiment load(const std::string& text, const std::vector<std::string>& set = {}) {
  config::Diagnostics diagnostics;
  return load_experiment(config::parse_yaml(text, "law.yaml", diagnostics), set, diagnostics,
                         library());
}

unsigned number(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::stoul(text)) : otherwise;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  double share() { return std::uniform_real_distribution<double>(0, 1)(engine_); }
  template <class T>
  T of(const std::vector<T>& choices) {
    return choices[std::uniform_int_distribution<std::size_t>(0, choices.size() - 1)(engine_)];
  }

 private:
  std::mt19937 engine_;
};

const std::vector<std::string> kSystems = {
    "dgx_a100",    "dgx_h100",    "dgx_h200", "hgx_h20",  "dgx_b200",        "dgx_b300",
    "gb200_nvl72", "gb300_nvl72", "cm384",    "vr_nvl72", "mi300x_platform", "tpu_v5p_pod"};
const std::vector<std::string> kOperators = {
    "kind: gemm, m: 8192, n: 8192, k: 8192",
    "kind: gemm, m: 64, n: 8192, k: 8192",
    "kind: gemm, m: 2048, n: 4096, k: 1024",
    "kind: attention_prefill, batch: 4, query: 4096, heads: 32, kv_heads: 8, head_dim: 128",
    "kind: attention_decode, batch: 64, kv_length: 4096, heads: 32, kv_heads: 8, head_dim: 128",
    "kind: moe, tokens: 4096, hidden: 4096, expert_ffn: 2048, top_k: 8, experts: 64"};

/// A limit between hardly more than idling and the design power, and perhaps another device.
std::vector<std::string> changes(Random& random, const std::string& system) {
  const PowerConfig power =
      load("{experiment: operator, system: " + system + ", operator: {" + kOperators[0] + "}}")
          .as<MachineExperiment>()
          .system.accelerator.power;
  const double idle = power.floor().base(), tdp = power.tdp.value.base();
  const double share = 0.03 + 0.97 * random.share();
  std::vector<std::string> set = {
      "system.accelerator.power.limit=" + std::to_string(idle + (tdp - idle) * share) + " W"};
  if (random.share() < 0.3) set.emplace_back("system.accelerator.memory.bandwidth=12 TB/s");
  return set;
}

std::string text(const std::vector<std::string>& set) {
  std::string all;
  for (const std::string& one : set) all += " " + one;
  return all;
}

/// What a rank's device may draw, from a record: empty where all is well.
std::string fault(const LoadedExperiment& loaded, const RunRecord& record) {
  if (record.status != RunStatus::kOk) return {};
  const auto& e = loaded.as<MachineExperiment>();
  const double cap = e.system.accelerator.power.cap().base() * (1 + 1e-9);
  const auto* step = dynamic_cast<const ModelExperiment*>(&e);
  const double devices = step ? step->accelerators() : 1.0 / e.system.accelerator.dies;
  const double average = record.find("average_power_w")->value / devices;
  if (average > cap) return "averages " + std::to_string(average) + " W";
  const double window = step ? record.find("window_power_w")->value : average;
  if (window > cap || average > window * (1 + 1e-9))
    return "a window averages " + std::to_string(window) + " W";
  if (!(record.find("clock_hz")->value > 0)) return "no clock";
  return {};
}

TEST(PowerLaws, NoOperatorDrawsMoreThanTheCapAndALowerOneNeverSpeedsUp) {
  const unsigned seed = number("ORRERY_LAW_SEED", 1), count = number("ORRERY_LAW_COUNT", 60);
  Random random(seed);
  for (unsigned i = 0; i < count; ++i) {
    const std::string system = random.of(kSystems), op = random.of(kOperators);
    const std::string state = random.of<std::string>({"auto", "burst", "steady"});
    const std::string experiment =
        "{experiment: operator, system: " + system + ", operator: {" + op + "}}";
    std::vector<std::string> set = changes(random, system);
    set.push_back("system.accelerator.power.state=" + state);
    const LoadedExperiment limited = load(experiment, set);
    const RunRecord record = simulate(limited);
    const std::string where = experiment + text(set) + " (seed " + std::to_string(seed) + ")";
    EXPECT_EQ(fault(limited, record), "") << where;
    set.erase(set.begin());
    const RunRecord free = simulate(load(experiment, set));
    EXPECT_GE(record.find("time_s")->value, free.find("time_s")->value * 0.992) << where;
    EXPECT_LE(record.find("clock_hz")->value, free.find("clock_hz")->value * 1.01) << where;
  }
}

TEST(PowerLaws, RepeatedOperatorsAreNoFasterThanMeasuredOnes) {
  for (const std::string& system : kSystems) {
    for (const std::string& op : kOperators) {
      const std::string experiment =
          "{experiment: operator, system: " + system + ", operator: {" + op + "}}";
      const double burst = simulate(load(experiment)).find("time_s")->value;
      const RunRecord steady =
          simulate(load(experiment, {"system.accelerator.power.state=steady"}));
      EXPECT_GE(steady.find("time_s")->value, burst * (1 - 1e-9)) << experiment;
    }
  }
}

/// What the units limit takes as many clocks under any cap, far below the floor of the voltage too,
/// but for launches of a few us.
TEST(PowerLaws, ProductsTakeAsManyClocksUnderEveryCap) {
  for (const std::string& system : kSystems) {
    for (const std::string& op : {kOperators[0], kOperators[3]}) {
      const std::string experiment =
          "{experiment: operator, system: " + system + ", operator: {" + op + "}}";
      const std::string steady = "system.accelerator.power.state=steady";
      const LoadedExperiment sold = load(experiment, {steady});
      const PowerConfig& power = sold.as<MachineExperiment>().system.accelerator.power;
      const auto clocks = [](const RunRecord& record) {
        return record.find("time_s")->value * record.find("clock_hz")->value;
      };
      const double before = clocks(simulate(sold));
      for (const double share : {0.6, 0.25, 0.05}) {
        const Watts limit = power.floor() + (power.tdp.value - power.floor()) * share;
        const double after = clocks(simulate(load(
            experiment,
            {steady, "system.accelerator.power.limit=" + std::to_string(limit.base()) + " W"})));
        EXPECT_LE(after, before * 1.01) << experiment << ": " << print(limit);
        EXPECT_GE(after, before * 0.97) << experiment << ": " << print(limit);
      }
    }
  }
}

/// As many bytes go with a FLOP, however fast the memory is.
TEST(PowerLaws, AFasterMemoryIsNotSlowerUnderACap) {
  for (const char* op : {"kind: mla_decode, batch: 66, kv_length: 1993, heads: 128",
                         "kind: gemm, m: 8192, n: 8192, k: 8192"}) {
    const std::string experiment =
        std::string("{experiment: operator, system: hgx_h20, precision: fp8, operator: {") + op +
        "}}";
    const std::string limit = "system.accelerator.power.limit=120 W";
    const double before = simulate(load(experiment, {limit})).find("time_s")->value;
    for (const char* bandwidth : {"8 TB/s", "16 TB/s"}) {
      const std::string faster = std::string("system.accelerator.memory.bandwidth=") + bandwidth;
      EXPECT_LE(simulate(load(experiment, {limit, faster})).find("time_s")->value, before * 1.001)
          << op << " " << bandwidth;
    }
  }
}

/// A product whose operands the last cache holds finds them there with a faster memory too. Failed
/// once: 2.00 us with 8 TB/s, 2.07 with 16, at a cap that bytes from the memory met.
TEST(PowerLaws, AProductThatTheCacheHoldsIsNotSlowerWithAFasterMemory) {
  const std::string experiment =
      "{experiment: operator, system: gb200_nvl4, precision: fp8, operator: {kind: gemm, m: 31048, "
      "n: 64, k: 384}}";
  double before = simulate(load(experiment)).find("time_s")->value;
  for (const char* bandwidth : {"11 TB/s", "12.5 TB/s", "16 TB/s"}) {
    const std::string faster = std::string("system.accelerator.memory.bandwidth=") + bandwidth;
    const double after = simulate(load(experiment, {faster})).find("time_s")->value;
    EXPECT_LE(after, before * 1.001) << bandwidth;
    before = after;
  }
}

/// A byte that no cache holds costs its way from the memory, however fast the memory is: all but 60
/// MB of 19 GB.
TEST(PowerLaws, ADecodeThatMeetsItsCapIsNotSlowerWithAFasterMemory) {
  const std::string experiment =
      "{experiment: operator, system: hgx_h20_141, precision: fp16, operator: {kind: "
      "attention_decode, batch: 66, kv_length: 17577, heads: 32, kv_heads: 16, head_dim: 256}}";
  const double before = simulate(load(experiment)).find("time_s")->value;
  for (const char* bandwidth : {"5 TB/s", "6 TB/s", "9.6 TB/s"}) {
    const std::string faster = std::string("system.accelerator.memory.bandwidth=") + bandwidth;
    EXPECT_LE(simulate(load(experiment, {faster})).find("time_s")->value, before * 1.003)
        << bandwidth;
  }
}

/// A kernel of latencies takes hardly less time at twice the clock, so that the common clock of a
/// step that meets its cap holds it back no more than the clock as sold did. Failed once: 6.04 ms
/// at 1.98 GHz, 6.20 with 3.96.
TEST(PowerLaws, ADecodeThatMeetsItsCapIsNotSlowerWithAHigherBoostClock) {
  const std::string experiment =
      "{experiment: inference, system: jupiter, model: falcon_mamba_7b, phase: decode, kv_length: "
      "463, precision: bf16, nodes: 2, parallel: {dp: 2}, batch: {micro: 2}}";
  double before = simulate(load(experiment)).find("step_time_s")->value;
  for (const char* clock : {"2.2 GHz", "2.475 GHz", "2.8 GHz", "3.96 GHz"}) {
    const std::string faster = std::string("system.accelerator.compute.boost_clock=") + clock;
    const double after = simulate(load(experiment, {faster})).find("step_time_s")->value;
    EXPECT_LE(after, before * 1.001) << clock;
    before = after;
  }
}

/// The search for the clock ends as near to the cap where idling takes most of it.
TEST(PowerLaws, AFasterL2IsNotSlowerUnderACapNearIdling) {
  const std::string experiment =
      "{experiment: inference, system: mi300x_platform, model: deepseek_moe_16b, phase: decode, "
      "kv_length: 1653, precision: fp8, nodes: 4, parallel: {tp: 8, dp: 2}, batch: {micro: 128}}";
  const auto time = [&](std::vector<std::string> set) {
    set.emplace_back("system.accelerator.power.limit=225 W");
    return simulate_isolated(load(experiment, set)).record.find("step_time_s")->value;
  };
  EXPECT_LE(time({"system.accelerator.cache.bandwidth=34.4 TB/s"}), time({}) * 1.006);
}

const std::vector<std::string> kSteps = {
    "experiment: training, model: llama_3_1_8b, parallel: {tp: 2, dp: 4, zero: 1}, batch: {global: "
    "8, micro: 1, sequence: 4096}",
    "experiment: training, model: llama_3_1_8b, parallel: {pp: 4, dp: 2, zero: 1}, batch: {global: "
    "16, micro: 1, sequence: 2048}",
    "experiment: training, model: gpt_22b, layers_only: 2, parallel: {tp: 8}, batch: {global: 4, "
    "micro: 4, sequence: 2048}",
    "experiment: inference, model: llama_3_1_70b, phase: decode, kv_length: 2048, parallel: {tp: "
    "8}, batch: {micro: 64}",
    "experiment: inference, model: llama_3_1_8b, phase: prefill, parallel: {tp: 2}, batch: {micro: "
    "4, sequence: 4096}"};

TEST(PowerLaws, NoWindowOfAStepAveragesAboveTheCap) {
  const unsigned seed = number("ORRERY_LAW_SEED", 1), count = number("ORRERY_LAW_COUNT", 16);
  Random random(seed);
  for (unsigned i = 0; i < count; ++i) {
    const std::string system = random.of(kSystems), step = random.of(kSteps);
    const std::string experiment = "{" + step + ", system: " + system + "}";
    const std::vector<std::string> set = changes(random, system);
    const auto outcome = run_isolated([&] {
      const LoadedExperiment loaded = load(experiment, set);
      return fault(loaded, simulate(loaded));
    });
    const std::string where = experiment + text(set) + " (seed " + std::to_string(seed) + ")";
    if (const Failure* failure = std::get_if<Failure>(&outcome)) {
      // Transfers alone may need more than a limit near idling leaves: an error that says so.
      EXPECT_NE(failure->message.find("cannot be kept"), std::string::npos)
          << where << ": " << failure->message;
    } else {
      EXPECT_EQ(std::get<std::string>(outcome), "") << where;
    }
  }
}

}  // namespace
}  // namespace orrery::power_laws_test
