// SPDX-License-Identifier: Apache-2.0
// Random experiments against the laws of every result:
//   random_experiments [--count N] [--seed S] [--jobs J]
// tries experiments until N of them ran, prints those that break a law as command lines, and ends
// with 3 if there were any. Without a seed it takes one of the clock, and prints it.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>

#include "sim/app/cli/progress.h"
#include "tests/properties/random/fleets.h"
#include "tests/properties/random/memory_laws.h"

namespace orrery {
namespace {

/// Every ninth experiment is a fleet, whose law takes dozens of runs, and another ninth the start
/// of an engine.
constexpr std::uint64_t kFleets = 9, kStart = 4;

struct Tally {
  std::uint64_t ran = 0, refused = 0, infeasible = 0, violations = 0;
  Tally& operator+=(const Tally& other) {
    ran += other.ran;
    refused += other.refused;
    infeasible += other.infeasible;
    violations += other.violations;
    return *this;
  }
};

void report(const RandomExperiment& experiment, std::uint64_t seed, const Violation& violation) {
  std::string text =
      "BROKEN " + violation.law + ": " + violation.what + "\n  " + experiment.command_line() + "\n";
  for (const std::string& assignment : violation.compare)
    text += "  against --set '" + assignment + "'\n";
  text += "  seed " + std::to_string(seed) + "\n";
  std::cout << text << std::flush;
}

/// Tries the experiments of seeds first, first + stride, ... until `count` ran.
Tally work(std::uint64_t first, std::uint64_t stride, std::uint64_t count, bool shows) {
  Tally tally;
  std::optional<Progress> progress;
  if (shows) progress.emplace("random experiments", count);
  for (std::uint64_t seed = first; tally.ran < count; seed += stride) {
    Draw draw(seed);
    const bool fleet = seed % kFleets == 0, start = seed % kFleets == kStart;
    const RandomExperiment experiment = fleet   ? draw_fleet(draw)
                                        : start ? draw_start(draw)
                                                : draw_experiment(draw);
    const Trial trial = fleet   ? try_fleet(experiment)
                        : start ? try_start(experiment)
                                : try_experiment(experiment, draw);
    for (const Violation& violation : trial.violations) report(experiment, seed, violation);
    tally.violations += trial.violations.size();
    if (trial.outcome == Trial::Outcome::kRefused) ++tally.refused;
    if (trial.outcome == Trial::Outcome::kInfeasible) ++tally.infeasible;
    if (trial.outcome != Trial::Outcome::kRan) continue;
    ++tally.ran;
    if (progress) progress->step(experiment.base);
  }
  return tally;
}

/// The same on `jobs` processes.
Tally work_together(std::uint64_t seed, std::uint64_t count, std::uint64_t jobs) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("cannot open a pipe");
  for (std::uint64_t job = 0; job < jobs; ++job) {
    if (::fork() != 0) continue;
    const std::uint64_t share = count / jobs + (job < count % jobs ? 1 : 0);
    const Tally tally = work(seed + job, jobs, share, job == 0);
    if (::write(ends[1], &tally, sizeof tally) != static_cast<ssize_t>(sizeof tally)) ::_exit(1);
    ::_exit(0);
  }
  ::close(ends[1]);
  Tally all, one;
  std::uint64_t answers = 0;
  for (; ::read(ends[0], &one, sizeof one) == static_cast<ssize_t>(sizeof one); ++answers)
    all += one;
  while (::wait(nullptr) > 0) {
  }
  if (answers != jobs) throw std::runtime_error("a process did not come back");
  return all;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  std::uint64_t count = 300, jobs = 2;
  auto seed =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) %
      1000000007;
  CLI::App app("Random experiments against the laws of every result");
  app.add_option("--count", count, "experiments that run and are looked at");
  app.add_option("--seed", seed,
                 "of the first experiment, the next have the next ones; default: the clock's");
  app.add_option("--jobs", jobs, "processes");
  CLI11_PARSE(app, argc, argv);
  std::cout << "seed " << seed << "\n" << std::flush;
  const orrery::Tally tally = orrery::work_together(seed, count, jobs);
  std::cout << tally.ran << " ran, " << tally.infeasible << " infeasible, " << tally.refused
            << " refused, " << tally.violations << " broken laws\n";
  return tally.violations == 0 ? 0 : 3;
}
