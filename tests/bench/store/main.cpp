// SPDX-License-Identifier: Apache-2.0
// Questions to a store of many points, which is made first: CPU and wall time of the program for
// each. Usage: store_bench ORRERY STORE [POINTS]; a store that is there is used as it is.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/store/result_store.h"
#include "sim/units/hash.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

std::shared_ptr<const Configuration> base_of_points() {
  auto base = std::make_shared<Configuration>();
  base->parameters = {{"parallel.tp", "1", 1.0, "", "a_sweep.yaml:3:7"},
                      {"batch.micro", "1", 1.0, "", "a_sweep.yaml:4:7"},
                      {"system.accelerator.memory.bandwidth", "8 TB/s", 8e12, "B/s", "x.yaml:4:7"},
                      {"precision", "fp8", std::nullopt, "", "default"}};
  base->canonical = std::make_shared<const nlohmann::ordered_json>(
      nlohmann::ordered_json{{"experiment", "inference"}});
  return base;
}

/// As wide as those of inference: what a metric costs depends on how many there are.
RunRecord made_up(std::uint64_t n, const std::shared_ptr<const Configuration>& base) {
  std::uint64_t state = n;
  RunRecord record;
  record.identity = sha256_hex("point " + std::to_string(n));
  record.experiment = "inference";
  record.name = "made up";
  record.base = base;
  const auto micro = static_cast<double>(1 + n % 512);
  record.varied = {{{"batch.micro", std::to_string(1 + n % 512), micro, "", "a_sweep.yaml:4:7"},
                    std::to_string(1 + n % 512)},
                   {{"parallel.tp", std::to_string(1 + n / 512 % 64), 1.0, "", "a_sweep.yaml:3:7"},
                    std::to_string(1 + n / 512 % 64)}};
  if (n % 50 == 49) {
    record.status = n % 100 == 99 ? RunStatus::kFailed : RunStatus::kInfeasible;
    record.reason = "needs more memory than there is";
    return record;
  }
  const double time = 0.005 + 0.0001 * micro * (0.5 + next_uniform(state));
  const auto add = [&](const char* name, double value, const char* unit) {
    record.metrics.push_back({name, value, unit});
  };
  add("step_time_s", time, "s");
  record.metrics.back().interval = {0.9 * time, 1.1 * time};
  add("tokens_per_s", micro / time, "1/s");
  add("tokens_per_s_per_accelerator", micro / time / 8, "1/s");
  add("tokens_per_s_per_user", 1 / time, "1/s");
  for (int i = 0; i < 20; ++i) {
    const std::string name = "metric_" + std::to_string(i);
    record.metrics.push_back({name, next_uniform(state), "1"});
  }
  record.labels = {{"bound", "HBM"}};
  record.classes = {{"gemm", 60, 0.7 * time, 1e12, 1e9}, {"attention", 60, 0.3 * time, 1e11, 1e9}};
  record.provenance = {{"measured", 0.0}, {"calibrated", 1.0}, {"analytic", 0.0}};
  return record;
}

void make_store(const std::string& path, std::uint64_t points) {
  const auto base = base_of_points();
  ResultStore store = ResultStore::open(path);
  constexpr std::uint64_t kBatch = 20000;
  for (std::uint64_t first = 0; first < points; first += kBatch) {
    auto batch = store.begin();
    for (std::uint64_t n = first; n < std::min(points, first + kBatch); ++n)
      batch.save(made_up(n, base), {"2026-01-01T00:00:00.000Z", 0.005, "node1"});
    batch.commit();
  }
}

struct Times {
  double wall_s = 0, cpu_s = 0, peak_mb = 0;
};

/// The program's best of three runs, its output thrown away.
Times times_of(const std::string& program, const std::vector<std::string>& words) {
  Times best{1e9, 1e9, 0};
  for (int round = 0; round < 3; ++round) {
    std::fflush(stdout);  // or the child prints it again
    const auto begin = Clock::now();
    const pid_t child = ::fork();
    if (child == 0) {
      std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
      for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(1);
      ::execv(program.c_str(), arguments.data());
      ::_exit(1);
    }
    int status = 0;
    rusage usage{};
    ::wait4(child, &status, 0, &usage);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) std::abort();
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    best.wall_s =
        std::min(best.wall_s, std::chrono::duration<double>(Clock::now() - begin).count());
    best.cpu_s = std::min(best.cpu_s, seconds(usage.ru_utime) + seconds(usage.ru_stime));
    best.peak_mb = static_cast<double>(usage.ru_maxrss) / 1e3;
  }
  return best;
}

struct Demand {
  std::string what;
  std::vector<std::string> words;
  double most_s;  ///< demanded; 0: none
};

int run(int count, char** words) {
  if (count < 3) {
    std::fprintf(stderr, "usage: store_bench ORRERY STORE [POINTS]\n");
    return 2;
  }
  const std::string program = words[1], store = words[2];
  const std::uint64_t points = count > 3 ? std::strtoull(words[3], nullptr, 10) : 1000000;
  if (!std::filesystem::exists(store)) make_store(store, points);
  const auto bytes = static_cast<double>(std::filesystem::file_size(store));
  std::printf("%llu points, %.0f bytes each\n", static_cast<unsigned long long>(points),
              bytes / static_cast<double>(points));
  const std::string user = "tokens_per_s_per_user", device = "tokens_per_s_per_accelerator";
  const std::vector<Demand> demands = {
      {"pareto", {"pareto", store, "--maximize", user, "--maximize", device}, 1},
      {"pareto --where metric",
       {"pareto", store, "--maximize", user, "--maximize", device, "--where",
        "step_time_s <= 20 ms"},
       0},
      {"pareto --where axis",
       {"pareto", store, "--maximize", user, "--maximize", device, "--where", "batch.micro <= 64"},
       0},
      {"pareto of three",
       {"pareto", store, "--maximize", user, "--maximize", device, "--minimize", "metric_7"},
       0},
      {"best --top 100", {"best", store, "--minimize", "step_time_s", "--top", "100"}, 1},
      {"sweep status", {"sweep", "status", store}, 0.2},
      {"sensitivity", {"sensitivity", store, "step_time_s"}, 0},
  };
  bool missed = false;
  std::printf("%-24s %10s %10s %12s %8s\n", "question", "wall [s]", "CPU [s]", "memory [MB]",
              "demand");
  for (const Demand& demand : demands) {
    const Times times = times_of(program, demand.words);
    const bool late = demand.most_s > 0 && times.cpu_s > demand.most_s;
    missed = missed || late;
    std::printf(
        "%-24s %10.3f %10.3f %12.0f %8s%s\n", demand.what.c_str(), times.wall_s, times.cpu_s,
        times.peak_mb,
        demand.most_s > 0 ? ("<= " + std::to_string(demand.most_s).substr(0, 3)).c_str() : "",
        late ? " MISSED" : "");
  }
  return missed ? 1 : 0;
}

}  // namespace
}  // namespace orrery

int main(int count, char** words) { return orrery::run(count, words); }
