// SPDX-License-Identifier: Apache-2.0
// Better hardware on every shipped system: a sample that is the same each time. Random ones, of all
// models and plans: random_experiments --only better_hardware.
#include <gtest/gtest.h>

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "sim/config/load.h"
#include "tests/properties/better_figures.h"
#include "tests/properties/random/draw.h"

namespace orrery::what_if_laws_test {
namespace {

using Set = std::vector<std::string>;

const config::Library& shipped() {
  static const config::Library library(ORRERY_SOURCE_DIR "/configs");
  return library;
}

LoadedExperiment loaded(const std::string& text, const Set& set) {
  config::Diagnostics diagnostics;
  return load_experiment(config::parse_yaml(text, "what_if.yaml", diagnostics), set, diagnostics,
                         shipped());
}

/// Time of an experiment; nothing if the device has no such figure or rate, or it does not fit.
std::optional<double> time_of(const std::string& text, const Set& set) {
  try {
    const RunRecord record = simulate(loaded(text, set));
    const Metric* step = record.find("step_time_s");
    const Metric* time = step != nullptr ? step : record.find("time_s");
    return time != nullptr ? std::optional(time->value) : std::nullopt;
  } catch (const config::ConfigError&) {
    return std::nullopt;
  }
}

/// Time with a change over that without; 1 where one of them cannot be.
double ratio(const std::string& text, const Set& state, const std::string& change) {
  Set changed = state;
  changed.push_back(change);
  const std::optional<double> before = time_of(text, state), after = time_of(text, changed);
  return before && after ? *after / *before : 1;
}

/// Slower, and not by a power cap.
bool breaks_the_law(const std::string& text, const std::string& change) {
  const double capped = ratio(text, {}, change);
  const double most = 1 + allowed_slowdown(change);
  if (capped <= most) return false;
  if (may_be_left_unused(change) && capped > 1 + kSlowerUnderCap) return true;
  return ratio(text, {"system.accelerator.power.tdp=100 kW"}, change) > most;
}

/// What one device does; collectives and steps on all devices of a system.
const Set kExperiments = {
    "experiment: operator, precision: bf16, operator: {kind: gemm, m: 8192, n: 8192, k: 8192}",
    "experiment: operator, precision: bf16, operator: {kind: gemm, m: 300, n: 5000, k: 4096}",
    "experiment: operator, precision: bf16, operator: {kind: attention_prefill, batch: 2, query: "
    "3000, heads: 16, kv_heads: 4, head_dim: 128}",
    "experiment: operator, precision: fp16, operator: {kind: attention_decode, batch: 48, "
    "kv_length: 5000, heads: 32, kv_heads: 8, head_dim: 128}",
    "experiment: operator, precision: bf16, operator: {kind: moe, tokens: 700, hidden: 4096, "
    "expert_ffn: 1536, top_k: 4, experts: 32}",
    "experiment: operator, precision: bf16, operator: {kind: rms_norm, rows: 5000, width: 8192}",
    "experiment: inference, model: llama_3_1_8b, precision: bf16, phase: decode, kv_length: 3000, "
    "batch: {micro: 16}",
    "experiment: inference, model: llama_3_1_8b, precision: bf16, phase: prefill, batch: {micro: "
    "1, sequence: 2048}",
    "experiment: training, model: llama_3_1_8b, precision: bf16, layers_only: 2, batch: {micro: "
    "1, sequence: 2048, global: 2}"};

/// Changes that slow an experiment down, other than by a power cap.
Set broken_on(const std::string& system, Draw& draw, int& compared) {
  constexpr std::size_t kChanges = 3;
  Set broken;
  const std::string text = "{" + draw.of(kExperiments) + ", system: " + system + "}";
  Set changes;
  try {
    changes = better_figures(loaded(text, {}), draw.of(std::vector{1.25, 2.0}));
  } catch (const config::ConfigError&) {
    return broken;  // the device has no rate of this precision
  }
  for (std::size_t i = 0; i < kChanges; ++i) {
    const std::string& change = draw.of(changes);
    ++compared;
    if (breaks_the_law(text, change)) broken.push_back(text + " --set " + change);
  }
  return broken;
}

TEST(WhatIfLaws, BetterHardwareIsNotSlowerOnAnySystem) {
  int compared = 0;
  std::uint64_t seed = 1;
  for (const std::string& system : shipped().names("systems")) {
    for (int round = 0; round < 2; ++round) {
      Draw draw(seed++);
      for (const std::string& broken : broken_on(system, draw, compared)) ADD_FAILURE() << broken;
    }
  }
  std::cout << compared << " what-ifs\n";
  EXPECT_GT(compared, 400);
}

}  // namespace
}  // namespace orrery::what_if_laws_test
