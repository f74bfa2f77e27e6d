// SPDX-License-Identifier: Apache-2.0
// Thread blocks of kernels as events, and what it costs to price a model's step by them.
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "models/kernels/device/block_schedule.h"
#include "sim/app/experiments/steps/inference.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/app/pricing/tile_store.h"
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"

namespace orrery::bench {
namespace {

constexpr std::int64_t kUnits = 132;
constexpr int kRuns = 20;

/// Causal prefill: `kinds` rows of tiles that get longer, for each of `heads` heads. 1 MB a block.
struct Prefill {
  std::vector<BlockKind> kinds;
  std::vector<BlockRun> launch;
  std::int64_t heads = 0;
};

Prefill prefill(std::size_t rows, std::int64_t heads) {
  Prefill p;
  p.heads = heads;
  for (std::size_t i = 0; i < rows; ++i) {
    BlockKind kind;
    kind.fixed_us = 2.3;
    kind.pipe_us = 1.1 * static_cast<double>(i + 1);
    kind.memory_bytes = 1e6;
    p.kinds.push_back(kind);
    p.launch.push_back({i, 1});
  }
  return p;
}

/// CPU time per kernel; `memory` in bytes/us: enough, or so little that blocks hold each other up.
Sample play(const Prefill& p, double memory) {
  const BlockMachine machine{.units = kUnits, .memory_bytes_per_us = memory};
  const double begin = cpu_seconds();
  std::uint64_t events = 0;
  for (int i = 0; i < kRuns; ++i) events = play_blocks(p.kinds, p.launch, machine, p.heads).events;
  return {(cpu_seconds() - begin) / kRuns, 0, static_cast<double>(events)};
}

Sample per_event(Sample sample) {
  sample.seconds /= sample.count;
  return sample;
}

/// The floor of an event: the same blocks through a bare heap of the units' ends.
Sample bare_heap(const Prefill& p) {
  const double begin = cpu_seconds();
  double last = 0, events = 0;
  for (int i = 0; i < kRuns; ++i) {
    std::priority_queue<double, std::vector<double>, std::greater<>> free{
        std::greater<>(), std::vector<double>(kUnits)};
    for (std::int64_t head = 0; head < p.heads; ++head) {
      for (const BlockKind& kind : p.kinds) {
        const double end = free.top() + kind.fixed_us + kind.pipe_us;
        free.pop();
        free.push(end);
        last += end;
        ++events;
      }
    }
  }
  const double seconds = cpu_seconds() - begin;
  return {seconds / events, last < 0 ? 1.0 : 0.0, events / kRuns};
}

/// A decode step of Llama 3.1 70B on four H200, 64 sequences, and what prices its kernels.
struct Step {
  Program program;
  AcceleratorConfig accelerator;
};

Step llama_step() {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  const LoadedExperiment loaded = load_experiment(
      ORRERY_SOURCE_DIR "/configs/experiments/deepseek_r1_decode.yaml",
      {"system=dgx_h100", "system.accelerator=h200_sxm", "model=llama_3_1_70b", "parallel.tp=4",
       "parallel.dp=1", "parallel.ep=1", "batch.micro=64", "precision=bf16"},
      library);
  const auto& e = loaded.as<InferenceExperiment>();
  return {build_inference(e.model.build(), e.inference()), e.system.accelerator};
}

/// CPU time per step: all its kernels that differ.
Sample price_step(Fidelity fidelity, bool memo) {
  const Step step = llama_step();
  TileStore store;
  const auto model = kernel_model(calibration_files("auto", step.accelerator, {}), fidelity, {},
                                  memo ? &store : nullptr);
  double kernels = 0, sum = 0;
  const auto run = [&] {
    for (const Kernel& kernel : step.program.kernels) {
      sum += static_cast<double>(model->cost(kernel, step.accelerator).duration);
      ++kernels;
    }
  };
  if (memo) run();
  kernels = 0;
  const double begin = cpu_seconds();
  for (int i = 0; i < kRuns; ++i) run();
  const double seconds = cpu_seconds() - begin;
  return {seconds / kRuns, sum < 0 ? 1.0 : 0.0, kernels / kRuns};
}

/// What one kernel takes, and its events.
void add_largest(const std::string& name, const std::string& text, std::size_t rows,
                 std::int64_t heads, double memory) {
  add_contestant(name, [=] { return play(prefill(rows, heads), memory); });
  add_comparison({"T1", text + " [s]", name, "", Quantity::kSeconds, Limit::kAtMost, 0.003});
  add_comparison({"T1", text + " [events]", name, "", Quantity::kCount, Limit::kAtMost, 1e5, true});
}

}  // namespace

void add_tile_contest() {
  constexpr double kEnough = 1e9, kScarce = 2e6;
  add_largest("tile/prefill/64x128", "prefill, 64 kinds of blocks x 128 heads", 64, 128, kEnough);
  add_largest("tile/prefill/64x128/shared", "the same, held up by the memory", 64, 128, kScarce);
  add_largest("tile/prefill/1024x64", "prefill of 131,072 tokens, 64 heads", 1024, 64, kEnough);
  add_contestant("tile/event", [] { return per_event(play(prefill(64, 128), kEnough)); });
  add_contestant("tile/event/shared", [] { return per_event(play(prefill(64, 128), kScarce)); });
  add_contestant("tile/event/floor", [] { return bare_heap(prefill(64, 128)); });
  add_comparison({"T2", "a block / through a bare heap", "tile/event", "tile/event/floor",
                  Quantity::kSeconds, Limit::kAtMost, 2});
  add_comparison({"T2", "a block that others hold up / through a bare heap", "tile/event/shared",
                  "tile/event/floor", Quantity::kSeconds, Limit::kAtMost, 20, true});
  add_contestant("tile/llama_70b/cold", [] { return price_step(Fidelity::kTile, false); });
  add_contestant("tile/llama_70b/memo", [] { return price_step(Fidelity::kTile, true); });
  add_contestant("tile/llama_70b/closed", [] { return price_step(Fidelity::kClosed, false); });
  add_comparison({"T3", "Llama 70B decode step, its kernels by tiles [s]", "tile/llama_70b/cold",
                  "", Quantity::kSeconds, Limit::kAtMost, 0.1});
  add_comparison({"T3", "the same from the memo [s]", "tile/llama_70b/memo", "", Quantity::kSeconds,
                  Limit::kAtMost, 0.001});
  add_comparison({"T3", "kernels of it that differ", "tile/llama_70b/memo", "", Quantity::kCount,
                  Limit::kAtMost, 1000, true});
}

}  // namespace orrery::bench
