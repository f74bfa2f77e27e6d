// SPDX-License-Identifier: Apache-2.0
// The step pricer against replays:
//   step_prices [--steps N] [--seed S] [--plan P] [--verbose] [--requests R]
// draws N steps of six models on four systems, prints how far prices are from replays, and ends
// with 3 if a step is off by more than half a percent. With R, it runs a trace of so many requests
// on each plan instead and prints what hits and misses took. Without a seed it takes one of the
// clock, and prints it.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "tests/bench/chunked_prefill.h"
#include "tests/properties/drawn_steps.h"

namespace orrery {
namespace {

constexpr double kMost = 0.005;

struct Errors {
  double sum = 0, worst = 0;
  int count = 0;
  void add(double error) {
    sum += error;
    worst = std::max(worst, error);
    ++count;
  }
  double mean() const { return count > 0 ? sum / count : 0; }
};

double error_of(Picoseconds time, Picoseconds replayed) {
  return std::abs(static_cast<double>(time) / static_cast<double>(replayed) - 1);
}

void print_step(const DrawnStep& step, Picoseconds time, Picoseconds replayed) {
  const BatchShape shape = step.shape();
  std::printf("    %lld ps, replayed %lld ps: %lld decodes of %lld, longest %lld;",
              static_cast<long long>(time), static_cast<long long>(replayed),
              static_cast<long long>(shape.sequences), static_cast<long long>(shape.context),
              static_cast<long long>(shape.longest));
  for (const Chunk& chunk : step.chunks)
    std::printf(" %lld+%lld%s", static_cast<long long>(chunk.context),
                static_cast<long long>(chunk.tokens), chunk.samples ? "" : "...");
  std::printf("\n");
}

struct Task {
  std::size_t plan = 0;
  std::uint64_t seed = 0;
  int steps = 0;
  bool verbose = false;
};

/// Prints a line of the table. @return the worst error
double run(const Task& task) {
  const SteppedPlan& plan = stepped_plans()[task.plan];
  SteppedMachine machine(plan);
  Draw draw(task.seed + 1000 * task.plan);
  Errors summary, contexts;
  for (int i = 0; i < task.steps; ++i) {
    const DrawnStep step = draw_step(draw);
    const Picoseconds time = machine.pricer().time(step.shape());
    const Picoseconds replayed = machine.replayed(machine.pricer().program(step.shape()));
    summary.add(error_of(time, replayed));
    contexts.add(error_of(time, machine.replayed(machine.program(step))));
    if (task.verbose || error_of(time, replayed) > kMost) print_step(step, time, replayed);
  }
  std::printf("%-16s %-12s %-24s %5d  %6.3f %6.3f   %6.3f %6.3f\n", plan.model, plan.system,
              plan.plan, task.steps, 100 * summary.mean(), 100 * summary.worst,
              100 * contexts.mean(), 100 * contexts.worst);
  std::fflush(stdout);
  return summary.worst;
}

void run_trace(std::size_t place, int requests, double per_second) {
  const SteppedPlan& plan = stepped_plans()[place];
  SteppedMachine machine(plan);
  bench::TraceLoad load;
  load.requests = requests;
  load.per_second = per_second;
  const bench::Asked asked = bench::ask(machine.pricer(), load);
  std::printf("%-16s %-12s %8.0f steps, %6.3f %% hits of %6.3f us, misses of %7.1f us (%9.1f)\n",
              plan.model, plan.system, asked.hits + asked.misses,
              100 * asked.hits / (asked.hits + asked.misses), 1e6 * asked.hit_seconds / asked.hits,
              1e6 * asked.miss_seconds / asked.misses, 1e6 * asked.longest_miss);
  std::fflush(stdout);
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  std::uint64_t seed =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) %
      1000000007;
  int steps = 200, only = -1, requests = 0;
  double per_second = 5.5;
  bool verbose = false;
  CLI::App app("Times of steps without a graph beside replays");
  app.add_option("--steps", steps, "of all plans together");
  app.add_option("--seed", seed, "of the draws; default: the clock's");
  app.add_option("--plan", only, "one plan alone, by its place in the table from 0");
  app.add_flag("--verbose", verbose, "prints every step");
  app.add_option("--requests", requests, "of a trace");
  app.add_option("--rate", per_second, "requests of the trace in a second");
  CLI11_PARSE(app, argc, argv);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::printf("errors in %%: of the summary of contexts (mean, worst), of contexts as they are\n");
  const auto plans = static_cast<int>(orrery::stepped_plans().size());
  double worst = 0;
  for (int plan = 0; plan < plans; ++plan) {
    if (only >= 0 && plan != only) continue;
    if (requests > 0) {
      orrery::run_trace(static_cast<std::size_t>(plan), requests, per_second);
      continue;
    }
    const int of_plan = only >= 0 ? steps : steps / plans + (plan < steps % plans ? 1 : 0);
    worst = std::max(worst, orrery::run({static_cast<std::size_t>(plan), seed, of_plan, verbose}));
  }
  std::printf("worst %.3f %%\n", 100 * worst);
  return worst <= orrery::kMost ? 0 : 3;
}
