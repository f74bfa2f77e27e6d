// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <iostream>

#include "sim/app/commands.h"
#include "sim/app/file_kind.h"
#include "sim/app/isolate.h"
#include "sim/results/metric_table.h"
#include "sim/results/table.h"

namespace orrery {
namespace {

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string cell(const Metric& metric) {
  const bool share = metric.unit.empty() || metric.unit == "1";
  return share ? format_si(metric.value, "") : format_si(metric.value, metric.unit);
}

void print_summary(const TimedRecord& run) {
  const RunRecord& record = run.record;
  std::cout << record.experiment << ": " << (record.name.empty() ? "unnamed" : record.name) << "\n";
  if (record.status != RunStatus::kOk) std::cout << record.reason << "\n";
  Table table(
      {{"metric"}, {"value", Table::Align::kRight}, {"exact", Table::Align::kRight}, {"unit"}});
  for (const Label& label : record.labels) table.add_row({label.name, label.value, "", ""});
  for (const Metric& metric : record.metrics) {
    std::array<char, 40> exact{};
    std::snprintf(exact.data(), exact.size(), "%.9g", metric.value);
    table.add_row({metric.name, cell(metric), exact.data(), metric.unit});
  }
  table.print(std::cout);
  std::cout << "intervals: none (no measurement of this device has been fitted)\npoint "
            << record.identity << "\n";
}

}  // namespace

ExitCode run_command(const RunArguments& arguments) {
  expect_kind(arguments.file, FileKind::kExperiment);
  const LoadedExperiment loaded = load_experiment(arguments.file, arguments.set);
  std::cerr << loaded.warnings;
  std::optional<ResultStore>
      store;  // opened first: a store that cannot be used is known before the run
  if (!arguments.db.empty()) store.emplace(ResultStore::open(arguments.db));
  const TimedRecord run = simulate_timed(loaded, {arguments.trace});
  if (store) store->save(run.record, run.times);
  if (arguments.json) {
    std::cout << to_json(run).dump(2) << "\n";
  } else {
    print_summary(run);
  }
  return run.record.status == RunStatus::kInfeasible ? ExitCode::kInfeasible : ExitCode::kOk;
}

TimedRecord simulate_timed(const LoadedExperiment& loaded, const SimulateOptions& options) {
  TimedRecord run;
  run.times.started = utc_now();
  run.times.host = host_name();
  const auto begin = std::chrono::steady_clock::now();
  run.record = simulate(loaded, options);
  run.times.wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return run;
}

TimedRecord simulate_isolated(const LoadedExperiment& loaded) {
  const auto outcome = run_isolated([&loaded] {
    const TimedRecord run = simulate_timed(loaded);
    const nlohmann::ordered_json json = {{"record", orrery::to_json(run.record)},
                                         {"started", run.times.started},
                                         {"wall_s", run.times.wall_s},
                                         {"host", run.times.host}};
    return json.dump();
  });
  if (const auto* failure = std::get_if<Failure>(&outcome)) throw PointFailure(*failure);
  const auto json = nlohmann::ordered_json::parse(std::get<std::string>(outcome));
  return {run_record_from_json(json.at("record")),
          {json.at("started"), json.at("wall_s"), json.at("host")}};
}

nlohmann::ordered_json to_json(const TimedRecord& run) {
  RunRecord record = run.record;
  add_metric(record, kWallTimeMetric, run.times.wall_s);
  return to_json(record);
}

}  // namespace orrery
