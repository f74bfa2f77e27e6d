// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/sweep_running.h"
#include "sim/app/questions/base/verb.h"
#include "sim/results/table.h"
#include "sim/results/version.h"
#include "sim/store/garbage.h"
#include "sim/store/merge.h"
#include "sim/store/result_store.h"
#include "sim/store/schema.h"

namespace orrery {
namespace {

struct GcArguments {
  std::string store;
  GarbageKinds kinds;
  bool yes = false;

  void take(Options& options) {
    options.positional("STORE", store, "store of results (SQLite)");
    options.flag("--failures", kinds.failures, "failures go; the next run of a sweep tries them");
    options.flag("--older-engines", kinds.older_engines,
                 "results of other engines than this one go");
    options.flag("--yes", yes, "does it; without it, says what would be done");
    options.examples({"sweep gc sweep.db --failures", "sweep gc sweep.db --older-engines --yes"});
  }

  Answer answer() const {
    const Garbage garbage = find_garbage(*ResultStore::open_read_only(store).database(), kinds);
    const std::int64_t bytes = yes ? drop_garbage(store, kinds) : 0;
    return {.parts = {text_of(garbage, bytes)},
            .json = {{"schema", "orrery.gc/1"},
                     {"store", store},
                     {"done", yes},
                     {"failures", garbage.failures},
                     {"older_results", garbage.older_results},
                     {"older_tiles", garbage.older_tiles},
                     {"unused_configurations", garbage.unused_configurations},
                     {"store_version", kStoreVersion},
                     {"bytes", bytes}}};
  }

 private:
  std::string text_of(const Garbage& garbage, std::int64_t bytes) const {
    const std::string verb = yes ? "dropped" : "would drop";
    std::string text;
    if (kinds.failures) text += fmt::format("{} {} failures\n", verb, garbage.failures);
    if (kinds.older_engines)
      text += fmt::format("{} {} results and {} times of thread blocks of engines other than {}\n",
                          verb, garbage.older_results, garbage.older_tiles, kEngineVersion);
    text += fmt::format("{} {} configurations that no point has\n", verb,
                        garbage.unused_configurations);
    if (!yes) return text + "nothing was changed: --yes does it\n";
    return text + fmt::format("the file is {} {}\n",
                              format_si(static_cast<double>(std::abs(bytes)), "B"),
                              bytes >= 0 ? "smaller" : "larger");
  }
};

const RegisterQuestion<GcArguments> registered_gc(
    "sweep gc", "drop failures or results of older engines from a store, and give space back");

struct MergeArguments {
  std::string store;
  std::vector<std::string> shards;

  void take(Options& options) {
    options.positional("STORE", store,
                       "the store that is to have all points; made where there is none");
    options.positionals("SHARD", shards, "stores whose points it gets; they are only read");
  }

  Answer answer() const {
    ResultStore into = open_store(store);
    MergeReport report;
    for (const std::string& shard : shards)
      merge(into, shard, report,
            [&](const std::function<void()>& work) { wait_for_store(work, tell_locked); });
    for (const std::string& damage : report.damaged) std::cerr << "damaged: " << damage << "\n";
    const std::string text = fmt::format(
        "{} points added to {}, {} in place of failures, {} were there, {} damaged\n", report.added,
        store, report.replaced_failures, report.known, report.damaged.size());
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
