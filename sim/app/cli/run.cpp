// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/find.h"
#include "sim/app/cli/progress.h"
#include "sim/app/experiments/core/link_use.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/experiments/graphs/replay.h"
#include "sim/app/experiments/serving/metrics.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "sim/app/pricing/tile_store.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

struct RunArguments {
  std::string file, db, trace;
  std::string find, slo;  ///< capacity that is looked for, and its bounds; empty: one run
  std::vector<std::string> set;
  bool json = false;
  bool ignore_memory = false;

  void take(Options& options) {
    options.positional("EXPERIMENT", file, "experiment file (YAML)");
    options.set(set);
    options.option("--db", db, "append the result to this store (SQLite)");
    options.option("--trace", trace, "write a timeline for ui.perfetto.dev");
    options.option(
        "--find", find,
        "serving: max_rate (the highest rate that keeps the SLO) or instances (the fewest "
        "replicas for the given rate)");
    options.option("--slo", slo, "bounds of --find over serving.slo: ttft_p99=2s,tpot_p99=50ms");
    options.flag("--ignore-memory", ignore_memory,
                 "time a step that does not fit in memory; the exit code says that it does not");
    options.json(json);
  }
  ExitCode run() const;

 private:
  TimedRecord watched(const LoadedExperiment& loaded, TileStore& tiles) const;
};

std::string cell(double value, const std::string& unit) {
  return format_si(value, unit == "1" ? "" : unit);
}

/// "295 s to 331 s", or nothing.
std::string interval_cell(const Metric& metric) {
  if (!metric.interval) return "";
  return fmt::format("{} to {}", cell(metric.interval->first, metric.unit),
                     cell(metric.interval->second, metric.unit));
}

/// "calibration gb200: 81 % calibrated, 3 % extrapolated, 16 % analytic".
std::string provenance_line(const nlohmann::ordered_json& provenance) {
  const auto assumed = provenance.find("assumed");
  if (assumed != provenance.end()) return "assumed: " + assumed->get<std::string>();
  const auto found = provenance.find("calibration");
  if (found == provenance.end() || found->is_null())
    return "calibration: none (data sheets and priors; no measurement of this device is fitted)";
  const std::string calibration = *found;
  if (provenance.at("measured").is_null())
    return fmt::format("calibration {}: {}", calibration, provenance.at("note").get<std::string>());
  std::vector<std::string> shares;
  for (const char* kind : {"measured", "calibrated", "extrapolated", "analytic"})
    if (const double share = provenance.at(kind); share != 0)
      shares.push_back(fmt::format("{} {}", format_percent(share, 0), kind));
  return fmt::format("calibration {}: time {}", calibration, comma_joined(shares));
}

void print_summary(const TimedRecord& run) {
  const RunRecord& record = run.record;
  std::cout << record.experiment << (record.name.empty() ? "" : ": " + record.name) << "\n";
  if (record.status != RunStatus::kOk) std::cout << record.reason << "\n";
  Table table = Table::titled("metric | >value | >exact | unit | p10 to p90");
  for (const Label& label : record.labels) table.add_row({label.name, label.value, "", "", ""});
  for (const Metric& metric : record.metrics) {
    table.add_row({metric.name, cell(metric.value, metric.unit),
                   fmt::format("{:.9g}", metric.value), metric.unit, interval_cell(metric)});
  }
  print(table, std::cout);
  for (const auto& below : {link_use_table(record), replayed_class_table(record)}) {
    if (!below) continue;
    std::cout << "\n";
    print(*below, std::cout);
  }
  std::cout << provenance_line(record.provenance) << "\n";
  for (const auto& error : record.provenance.value("known_errors", nlohmann::ordered_json::array()))
    std::cout << "known error: " << error.get<std::string>() << "\n";
  std::cout << "point " << record.identity << "\n";
}

/// The store of a run. A store that cannot be used is known before the run; one that another
/// process locks costs the result its place in the store, not the run.
class RunStore {
 public:
  explicit RunStore(const std::string& path) {
    if (path.empty()) return;
    guarded([&] { store_.emplace(ResultStore::open(path)); }, StoreFault::kBusy);
    if (store_) guarded([&] { known_ = store_->tiles(); }, StoreFault::kBusy);
  }

  std::vector<TileRow> known() const { return known_; }
  /// Whatever goes wrong is said, and the exit code of the run.
  void save(const TimedRecord& run, const std::vector<TileRow>& tiles) {
    if (store_ && !failure_)
      guarded([&] { store_->save(run.record, run.times, tiles); }, std::nullopt);
  }
  const std::optional<ExitCode>& failure() const { return failure_; }

 private:
  /// @param survived the one fault that costs the run nothing but its exit code; none given: any
  void guarded(const std::function<void()>& work, std::optional<StoreFault> survived) {
    try {
      work();
    } catch (const StoreError& error) {
      if (survived && error.fault() != *survived) throw;
      const Failure failure = classify(std::current_exception());
      std::cerr << failure.message << "\nthe result will not be in the store\n";
      failure_ = failure.code;
    }
  }

  std::optional<ResultStore> store_;
  std::vector<TileRow> known_;
  std::optional<ExitCode> failure_;
};

/// Watches a long run: shows how far it is, and ends it at Ctrl-C. Only a run that asks is watched;
/// for others Ctrl-C is what it always is.
class RunWatch {
 public:
  RunWatch() = default;
  ~RunWatch() {
    if (started_) std::signal(SIGINT, SIG_DFL);
  }
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  /// @param all how many there will be; 0: not known
  /// @return false once the user wants it to end
  bool go_on(std::size_t done, std::size_t all) {
    constexpr std::chrono::seconds kQuiet{2};  // shorter runs show nothing
    const auto now = Clock::now();
    if (!started_) {
      started_ = now;
      std::signal(SIGINT, [](int) { ctrl_c = 1; });
    }
    if (all > 0 && done <= all && now - *started_ > kQuiet) {
      if (!progress_) progress_.emplace("requests", all);
      progress_->reach(done, "answered");
    }
    return ctrl_c == 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static inline volatile std::sig_atomic_t ctrl_c = 0;
  std::optional<Clock::time_point> started_;
  std::optional<Progress> progress_;
};

TimedRecord RunArguments::watched(const LoadedExperiment& loaded, TileStore& tiles) const {
  RunWatch watch;
  const auto go_on = [&](std::size_t done, std::size_t all) { return watch.go_on(done, all); };
  const auto warn = [](const std::string& line) { std::cerr << line << "\n"; };
  return simulate_timed(loaded, {.trace = trace,
                                 .tiles = &tiles,
                                 .beyond_memory = ignore_memory,
                                 .watch = go_on,
                                 .warn = warn});
}

ExitCode RunArguments::run() const {
  expect_kind(file, "experiment");
  if (!slo.empty() && find.empty()) throw UsageError("--slo is of --find");
  if (!find.empty()) {
    if (!db.empty() || !trace.empty()) throw UsageError("--find has no --db and no --trace");
    const Answer found = find_answer(file, set, find, slo);
    print_answer(found, json);
    return found.code;
  }
  const LoadedExperiment loaded = load_experiment(file, set);
  std::cerr << loaded.warnings << check_plan(loaded);
  RunStore store(db);
  TileStore tiles = TileStore(store.known());
  const TimedRecord run = watched(loaded, tiles);
  const bool stopped = was_stopped(run.record);
  if (!stopped) store.save(run, tiles.played());
  if (json) {
    std::cout << to_json(run).dump(2) << "\n";
  } else {
    print_summary(run);
  }
  if (stopped) {
    std::cerr << "stopped: the result is that of the requests answered until then"
              << (db.empty() ? "" : ", and is not stored") << "\n";
    return ExitCode::kResource;
  }
  if (store.failure()) return *store.failure();
  return run.record.status == RunStatus::kInfeasible ? ExitCode::kInfeasible : ExitCode::kOk;
}

const RegisterVerb<RunArguments> registered_run("run", "simulate one experiment");

}  // namespace
}  // namespace orrery
