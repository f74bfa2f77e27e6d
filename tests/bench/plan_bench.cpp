// SPDX-License-Identifier: Apache-2.0
// Plans of sweeps: a plan of ten million points read, and the first of it found.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/app/sweeps/plan/plan_counts.h"
#include "sim/app/sweeps/plan/plan_cursor.h"
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"

namespace orrery::bench {
namespace {

/// Decode steps of Llama 8B: 4 plans x 500 batches x 5,000 contexts.
Sweep ten_million(const std::string& rules) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("orrery_plan_bench_" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(path)
      << "sweep: ten million\ncases:\n  - name: decode\n    base: {experiment: inference, system: "
         "dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: 1024, parallel: {tp: 8}, batch: "
         "{micro: 4}, precision: bf16}\n    axes:\n      grid:\n        parallel.tp: [1, 2, 4, 8]\n"
         "        batch.micro: {range: {from: 1, to: 500, step: 1}}\n"
         "        kv_length: {range: {from: 16, to: 80000, step: 16}}\n"
      << rules;
  Sweep sweep = load_sweep(path.string());
  std::filesystem::remove(path);
  return sweep;
}

/// From the file to the identity of the first point.
Sample first_point() {
  const double begin = cpu_seconds();
  const double bytes = allocated_bytes();
  const Sweep sweep = ten_million("");
  const PlanCursor cursor(sweep);
  const bool known = !cursor.identity().empty();
  return {known ? cpu_seconds() - begin : 1e9, allocated_bytes() - bytes};
}

/// Identities of points that follow each other; memory that they leave.
Sample identities() {
  constexpr std::uint64_t kPoints = 100'000;
  const Sweep sweep = ten_million("");
  PlanCursor cursor(sweep);
  for (int i = 0; i < 10'000; ++i) cursor.next();  // values of axes are kept, once each
  const double bytes = allocated_bytes();
  const double begin = cpu_seconds();
  std::size_t length = 0;
  for (std::uint64_t i = 0; i < kPoints; ++i, cursor.next()) length += cursor.identity().size();
  const double seconds = cpu_seconds() - begin;
  return {length > 0 ? seconds / kPoints : 1e9, (allocated_bytes() - bytes) / kPoints};
}

/// A place counted by `sweep plan`, with two rules and a store.
Sample counted(const std::string& rules, std::uint64_t places) {
  Sweep sweep = ten_million(rules);
  sweep.blocks.front().size = places;
  const ResultStore store = ResultStore::open(std::filesystem::temp_directory_path() /
                                              "orrery_plan_bench_without_store.db");
  const double begin = cpu_seconds();
  const PlanListing listing = count_plan(sweep, store, {});
  const double seconds = cpu_seconds() - begin;
  return {seconds / static_cast<double>(listing.counts.places)};
}

}  // namespace

void add_plan_contest() {
  add_contestant("plan/first", first_point);
  add_contestant("plan/identity", identities);
  add_contestant("plan/count", [] {
    return counted("    where: [parallel.tp * batch.micro <= 3000, kv_length % 32 == 0]\n",
                   200'000);
  });
  add_contestant("plan/count/memory", [] { return counted("    where: [memory.fits]\n", 50'000); });
  const auto compare = [](const char* text, const char* of, Quantity quantity, double demand,
                          bool guide) {
    add_comparison({"L1", text, of, "", quantity, Limit::kAtMost, demand, guide});
  };
  compare("the first of ten million points, from the file [s]", "plan/first", Quantity::kSeconds, 2,
          false);
  compare("the same, memory [B]", "plan/first", Quantity::kBytes, 100e6, false);
  compare("a further point and its identity [s]", "plan/identity", Quantity::kSeconds, 20e-6,
          false);
  compare("the same, memory [B]", "plan/identity", Quantity::kBytes, 200, false);
  compare("a place counted, two rules [s]", "plan/count", Quantity::kSeconds, 24e-6, false);
  compare("a place counted, memory.fits [s]", "plan/count/memory", Quantity::kSeconds, 24e-6, true);
}

}  // namespace orrery::bench
