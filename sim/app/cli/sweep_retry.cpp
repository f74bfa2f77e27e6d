// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/app/cli/sweep_running.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/questions/points/stored_points.h"

namespace orrery {
namespace {

struct RetryArguments {
  SweepRunning running;
  std::string where;
  std::vector<std::string> points;

  void take(Options& options) {
    running.take(options);
    options.option("--where", where,
                   "condition on the failures that are tried again: their exit_code, reason, name, "
                   "paths of the configuration");
    options.repeatable("--point", points,
                       "begin of the identity of a failed point; repeatable; default: all");
    options.examples({"sweep retry sweep.yaml --db sweep.db",
                      "sweep retry sweep.yaml --where \"exit_code == 6 and parallel.tp <= 8\"",
                      "sweep retry sweep.yaml --point 3f2a91 --progress json"});
  }

  Answer answer() const {
    const Sweep sweep = running.load();
    const std::set<std::string> chosen = failures(running.store_of(sweep));
    SweepResults results;
    if (!chosen.empty())
      running.with_store(sweep, [&](std::optional<ResultStore>& store, SweepOptions& options) {
        options.only = chosen;
        results = run_sweep(sweep, *store, options);
      });
    return answer_of(sweep, chosen.size(), results);
  }

 private:
  /// Identities of the failed points of a store that are to be tried again.
  std::set<std::string> failures(const std::string& store) const {
    const StoredPoints stored({store, where}, StoredPoints::Scope::kFailures);
    const PointColumn identities = stored.column("identity");
    std::set<std::string> all, chosen;
    for (const std::size_t row : stored.rows()) all.insert(identities.word(row));
    if (points.empty()) return all;
    for (const std::string& point : points) {
      const auto first = all.lower_bound(point);
      if (first == all.end() || !first->starts_with(point))
        throw UsageError(
            fmt::format("no failed point of {0} begins with '{1}'; `sweep status {0} --failed` "
                        "lists them",
                        store, point));
      for (auto found = first; found != all.end() && found->starts_with(point); ++found)
        chosen.insert(*found);
    }
    return chosen;
  }

  Answer answer_of(const Sweep& sweep, std::size_t chosen, const SweepResults& results) const {
    const std::uint64_t others = chosen - results.points;
    const std::uint64_t done = results.points - results.failed;
    std::string text = fmt::format("{} failed points tried again: {} done, {} failed\n",
                                   results.points, done, results.failed);
    if (others > 0)
      text += fmt::format("{} failed points of the store are not of this sweep{}\n", others,
                          results.stopped.empty() ? "" : ", or left");
    if (!results.stopped.empty()) text += "stopped: " + results.stopped + "\n";
    for (const PointResult& result : results.kept)
      if (result.record.status == RunStatus::kFailed)
        text += fmt::format("failed: {}: {}\n", result.record.name, result.record.reason);
    return {.parts = {text},
            .json = {{"schema", "orrery.sweep-retry/1"},
                     {"sweep", sweep.config.name},
                     {"store", running.store_of(sweep)},
                     {"retried", results.points},
                     {"done", done},
                     {"failed", results.failed},
                     {"not_of_this_sweep", others},
                     {"stopped", results.stopped}},
            .code = exit_code_of(results)};
  }
};

const RegisterQuestion<RetryArguments> registered_retry(
    "sweep retry", "simulate failed points of a store again, all of them or some");

}  // namespace
}  // namespace orrery
