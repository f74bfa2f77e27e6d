// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/run_point.h"

#include <unistd.h>

#include <array>
#include <chrono>

#include "sim/app/pricing/tile_store.h"
#include "sim/app/sweeps/clock.h"
#include "sim/app/sweeps/isolate.h"
#include "sim/results/metric_table.h"

namespace orrery {
namespace {

const DeclaredMetric kWallTime{
    {std::string(kWallTimeMetric), "s", "time that the simulation took", "all"}};

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

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

TimedRecord simulate_isolated(const LoadedExperiment& loaded, std::vector<TileRow>* known) {
  const auto outcome = run_isolated([&loaded, known] {
    TileStore tiles = known ? TileStore(*known) : TileStore();
    const TimedRecord run = simulate_timed(loaded, {"", &tiles});
    const nlohmann::ordered_json json = {{"record", orrery::to_json(run.record)},
                                         {"started", run.times.started},
                                         {"wall_s", run.times.wall_s},
                                         {"host", run.times.host},
                                         {"tiles", orrery::to_json(tiles.played())}};
    return json.dump();
  });
  if (const auto* failure = std::get_if<Failure>(&outcome)) throw PointFailure(*failure);
  const auto json = nlohmann::ordered_json::parse(std::get<std::string>(outcome));
  TimedRecord run{run_record_from_json(json.at("record")),
                  {json.at("started"), json.at("wall_s"), json.at("host")},
                  tile_rows_from_json(json.at("tiles"))};
  if (known) known->insert(known->end(), run.tiles.begin(), run.tiles.end());
  return run;
}

nlohmann::ordered_json to_json(const TimedRecord& run) {
  RunRecord record = run.record;
  add_metric(record, kWallTime, run.times.wall_s);
  return to_json(record);
}

}  // namespace orrery
