// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/cli/sweep_running.h"
#include "sim/app/questions/base/question.h"
#include "sim/app/sweeps/run/run_sweep.h"
#include "sim/store/merge.h"

namespace orrery {
namespace {

struct MergeArguments {
  std::string store;
  std::vector<std::string> shards;

  void take(Options& options) {
    options.positional("STORE", store,
                       "the store that is to have all points; made where there is none");
    options.positionals("SHARD", shards, "stores whose points it gets; they are only read");
  }

  Answer answer() const {
    std::optional<ResultStore> into;
    wait_for_store([&] { into.emplace(ResultStore::open(store)); }, tell_locked);
    MergeReport report;
    for (const std::string& shard : shards)
      merge(*into, shard, report,
            [&](const std::function<void()>& work) { wait_for_store(work, tell_locked); });
    for (const std::string& damage : report.damaged) std::cerr << "damaged: " << damage << "\n";
    const std::string text = std::to_string(report.added) + " points added to " + store + ", " +
                             std::to_string(report.replaced_failures) + " in place of failures, " +
                             std::to_string(report.known) + " were there, " +
                             std::to_string(report.damaged.size()) + " damaged\n";
    return {.parts = {text},
            .json = {{"schema", "orrery.merge/1"},
                     {"added", report.added},
                     {"replaced_failures", report.replaced_failures},
                     {"known", report.known},
                     {"damaged", report.damaged}},
            .code = report.damaged.empty() ? ExitCode::kOk : ExitCode::kPartial};
  }
};

const RegisterQuestion<MergeArguments> registered_merge(
    "sweep merge",
    "bring the points of other stores into one, at any time and any number of times");

}  // namespace
}  // namespace orrery
