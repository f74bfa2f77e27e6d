// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/app/cli/sweep_running.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/question.h"
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
    if (!chosen.empty()) results = running.run(sweep, chosen);
    return answer_of(sweep, chosen.size(), results);
  }

 private:
  bool is_asked_for(const std::string& identity) const {
    return points.empty() || std::any_of(points.begin(), points.end(), [&](const std::string& p) {
             return identity.starts_with(p);
           });
  }

  /// Identities of the failed points of a store that are to be tried again.
  std::set<std::string> failures(const std::string& store) const {
    const StoredPoints stored({store, where}, StoredPoints::Scope::kFailures);
    const PointColumn identities = stored.column("identity");
    std::set<std::string> chosen;
    for (const std::size_t row : stored.rows())
      if (is_asked_for(identities.word(row))) chosen.insert(identities.word(row));
    for (const std::string& point : points) {
      const auto found = chosen.lower_bound(point);
      if (found == chosen.end() || !found->starts_with(point)) refuse(store, point);
    }
    return chosen;
  }

  [[noreturn]] static void refuse(const std::string& store, const std::string& point) {
    throw UsageError("no failed point of " + store + " begins with '" + point +
                     "'; `sweep status " + store + " --failed` lists them");
  }

  Answer answer_of(const Sweep& sweep, std::size_t chosen, const SweepResults& results) const {
    const std::uint64_t others = chosen - results.points;
    const std::uint64_t done = results.points - results.failed;
    std::string text = std::to_string(results.points) +
                       " failed points tried again: " + std::to_string(done) + " done, " +
                       std::to_string(results.failed) + " failed\n";
    if (others > 0)
      text += std::to_string(others) + " failed points of the store are not of this sweep" +
              (results.stopped.empty() ? "" : ", or left") + "\n";
    if (!results.stopped.empty()) text += "stopped: " + results.stopped + "\n";
    for (const PointResult& result : results.kept)
      if (result.record.status == RunStatus::kFailed)
        text += "failed: " + result.record.name + ": " + result.record.reason + "\n";
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
