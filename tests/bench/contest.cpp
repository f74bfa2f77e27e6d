// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/contest.h"

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace orrery::bench {
namespace {

std::vector<Comparison>& comparisons() {
  static std::vector<Comparison> all;
  return all;
}

/// Runs in a child and returns what it reports.
Sample run_in_child(const std::function<Sample()>& run) {
  int ends[2];
  if (pipe(ends) != 0) {
    throw std::runtime_error("no pipe");
  }
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      const Sample sample = run();
      status = write(ends[1], &sample, sizeof sample) == sizeof sample ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    _exit(status);
  }
  close(ends[1]);
  Sample sample;
  const bool complete = read(ends[0], &sample, sizeof sample) == sizeof sample;
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || !complete) {
    throw std::runtime_error("a contestant failed");
  }
  return sample;
}

/// Keeps the samples by contestant and prints nothing on its own.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration && !run.error_occurred) {
        samples_[run.run_name.function_name].push_back(
            {run.real_accumulated_time, run.counters.at("bytes"), run.counters.at("count")});
        std::fprintf(stderr, ".");
      }
    }
  }

  /// Median of a contestant; negative if it did not run.
  double median(const std::string& name, Quantity quantity) const {
    const auto found = samples_.find(name);
    if (found == samples_.end()) {
      return -1;
    }
    std::vector<double> values;
    for (const Sample& sample : found->second) {
      values.push_back(quantity == Quantity::kSeconds ? sample.seconds
                       : quantity == Quantity::kBytes ? sample.bytes
                                                      : sample.count);
    }
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  void print_medians() const {
    std::printf("\n%-44s %14s %14s\n", "contestant (median per item)", "CPU ns", "bytes");
    for (const auto& entry : samples_) {
      std::printf("%-44s %14.1f %14.1f\n", entry.first.c_str(),
                  median(entry.first, Quantity::kSeconds) * 1e9,
                  median(entry.first, Quantity::kBytes));
    }
  }

 private:
  std::map<std::string, std::vector<Sample>> samples_;
};

/// Prints one line; false if the demand was missed.
bool print_comparison(const Comparison& c, const Collector& collector) {
  const double above = collector.median(c.numerator, c.quantity);
  const double below = c.denominator.empty() ? 1 : collector.median(c.denominator, c.quantity);
  if (above < 0 || below < 0) {
    return true;  // filtered out
  }
  const double value = above / below;
  const bool met = c.limit == Limit::kAtMost ? value <= c.demand : value >= c.demand;
  const char* const sign = c.limit == Limit::kAtMost ? "<=" : ">=";
  const char* const verdict = met ? "ok" : c.guide ? "off the guide" : "MISSED";
  std::printf("%-3s %-66s %10.3g  %s %-6g %s\n", c.id.c_str(), c.text.c_str(), value, sign,
              c.demand, verdict);
  return met || c.guide;
}

}  // namespace

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double allocated_bytes() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

void add_contestant(const std::string& name, std::function<Sample()> run) {
  const auto body = [run = std::move(run)](benchmark::State& state) {
    for ([[maybe_unused]] const auto iteration : state) {
      const Sample sample = run_in_child(run);
      state.SetIterationTime(sample.seconds);
      state.counters["bytes"] = sample.bytes;
      state.counters["count"] = sample.count;
    }
  };
  benchmark::RegisterBenchmark(name.c_str(), body)->UseManualTime()->Iterations(1)->Repetitions(5);
}

void add_comparison(Comparison comparison) { comparisons().push_back(std::move(comparison)); }

int run_contest(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  arguments.insert(arguments.begin() + 1, interleave.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) {
    return 2;
  }
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  collector.print_medians();
  std::printf("\n%-3s %-66s %10s  %s\n", "id", "comparison", "measured", "demand");
  bool met = true;
  for (const Comparison& comparison : comparisons()) {
    met = print_comparison(comparison, collector) && met;
  }
  return met ? 0 : 1;
}

}  // namespace orrery::bench
