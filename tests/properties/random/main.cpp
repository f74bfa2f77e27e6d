// SPDX-License-Identifier: Apache-2.0
// Random experiments against the laws of every result:
//   random_experiments [--count N] [--seed S] [--jobs J] [--only KIND]
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
#include "tests/properties/random/alone.h"
#include "tests/properties/random/better_hardware.h"
#include "tests/properties/random/capacity.h"
#include "tests/properties/random/fleets.h"
#include "tests/properties/random/memory_laws.h"
#include "tests/properties/random/step_pairs.h"

namespace orrery {
namespace {

/// Kinds of laws, by the remainder of the seed; those with a name can be tried alone. A fleet and
/// its routers take dozens of runs. A search for a rate takes seconds: it comes on demand.
enum Kind : std::uint64_t {
  kFleet,
  kHardware = 2,
  kStart = 4,
  kAlone = 5,
  kPair = 6,
  kHardwareToo
};
constexpr std::uint64_t kKinds = 9, kCapacity = kKinds;
const std::map<std::string, std::uint64_t> kNamed = {
    {"alone", kAlone}, {"better_hardware", kHardware}, {"capacity", kCapacity}, {"pair", kPair}};

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

/// An experiment of one of the kinds, and what became of it.
std::pair<RandomExperiment, Trial> try_one(std::uint64_t seed, std::optional<std::uint64_t> only) {
  Draw draw(seed);
  const std::uint64_t kind = only.value_or(seed % kKinds);
  const auto drawn = [&](auto make, auto attempt) -> std::pair<RandomExperiment, Trial> {
    const RandomExperiment experiment = make(draw);
    return {experiment, attempt(experiment)};
  };
  if (kind == kFleet) return drawn(draw_fleet, try_fleet);
  if (kind == kStart) return drawn(draw_start, try_start);
  if (kind == kAlone) return drawn(draw_alone, try_alone);
  if (kind == kPair) return drawn(draw_pair, try_pair);
  if (kind == kCapacity) return drawn(draw_capacity, try_capacity);
  if (kind == kHardware || kind == kHardwareToo) {
    const RandomExperiment as_sold = draw_as_sold(draw);
    return {as_sold, try_better_hardware(as_sold, draw)};
  }
  const RandomExperiment experiment = draw_experiment(draw);
  return {experiment, try_experiment(experiment, draw)};
}

struct Work {
  std::uint64_t seed, stride, count;
  std::optional<std::uint64_t> only;  ///< kind of all experiments; none: by seed
};

/// Tries the experiments of seeds seed, seed + stride, ... until `count` ran.
Tally work(const Work& work, bool shows) {
  Tally tally;
  std::optional<Progress> progress;
  if (shows) progress.emplace("random experiments", work.count);
  for (std::uint64_t seed = work.seed; tally.ran < work.count; seed += work.stride) {
    const auto [experiment, trial] = try_one(seed, work.only);
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
Tally work_together(const Work& all_work, std::uint64_t jobs) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("cannot open a pipe");
  for (std::uint64_t job = 0; job < jobs; ++job) {
    if (::fork() != 0) continue;
    const std::uint64_t count = all_work.count / jobs + (job < all_work.count % jobs ? 1 : 0);
    const Tally tally = work({all_work.seed + job, jobs, count, all_work.only}, job == 0);
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
  std::optional<std::uint64_t> kind;
  app.add_option("--only", kind,
                 "one kind of law: alone (a served request and the steps of inference), "
                 "better_hardware, capacity (--find max_rate), or pair (training in fp8 and bf16, "
                 "and on twice the replicas)")
      ->transform(CLI::Transformer(orrery::kNamed));
  CLI11_PARSE(app, argc, argv);
  std::cout << "seed " << seed << "\n" << std::flush;
  const orrery::Tally tally = orrery::work_together({seed, 1, count, kind}, jobs);
  std::cout << tally.ran << " ran, " << tally.infeasible << " infeasible, " << tally.refused
            << " refused, " << tally.violations << " broken laws\n";
  return tally.violations == 0 ? 0 : 3;
}
