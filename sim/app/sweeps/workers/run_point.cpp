// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/workers/run_point.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "sim/app/sweeps/base/clock.h"
#include "sim/app/sweeps/workers/isolate.h"
#include "sim/results/metric_table.h"
#include "sim/results/record_bytes.h"

namespace orrery {
namespace {

const DeclaredMetric kWallTime{
    {std::string(kWallTimeMetric), "s", "time that the simulation took", "all"}};

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

RunTimes times_now() {
  static const std::string host = host_name();
  return {utc_now(), 0, host};
}

TimedRecord simulate_timed(const LoadedExperiment& loaded, const SimulateOptions& options) {
  TimedRecord run;
  run.times = times_now();
  const auto begin = std::chrono::steady_clock::now();
  run.record = simulate(loaded, options);
  run.times.wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return run;
}

std::string to_bytes(const TimedRecord& run) {
  ByteWriter bytes;
  add(bytes, run.record);
  bytes.add(run.times.started);
  bytes.add(run.times.wall_s);
  bytes.add(run.times.host);
  add(bytes, run.tiles);
  return bytes.bytes();
}

TimedRecord timed_record(std::string_view text) {
  ByteReader bytes(text);
  TimedRecord run;
  run.record = read_record(bytes);
  run.times.started = bytes.text();
  run.times.wall_s = bytes.real();
  run.times.host = bytes.text();
  run.tiles = read_tiles(bytes);
  return run;
}

TimedRecord simulate_isolated(const LoadedExperiment& loaded, const SimulateOptions& options) {
  const auto outcome = run_isolated([&] { return to_bytes(simulate_timed(loaded, options)); });
  if (const auto* failure = std::get_if<Failure>(&outcome)) throw PointFailure(*failure);
  TimedRecord run = timed_record(std::get<std::string>(outcome));
  run.record.base = configuration_of(loaded);
  return run;
}

nlohmann::ordered_json to_json(const TimedRecord& run) {
  RunRecord record = run.record;
  add_metric(record, kWallTime, run.times.wall_s);
  return to_json(record);
}

}  // namespace orrery
