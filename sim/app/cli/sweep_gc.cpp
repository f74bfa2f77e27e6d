// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sim/app/questions/base/question.h"
#include "sim/results/table.h"
#include "sim/results/version.h"
#include "sim/store/garbage.h"
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
    const std::string verb = yes ? "dropped " : "would drop ";
    std::string text;
    if (kinds.failures) text += verb + std::to_string(garbage.failures) + " failures\n";
    if (kinds.older_engines)
      text += verb + std::to_string(garbage.older_results) + " results and " +
              std::to_string(garbage.older_tiles) +
              " times of thread blocks of engines other than " + kEngineVersion + "\n";
    text += verb + std::to_string(garbage.unused_configurations) +
            " configurations that no point has\n";
    if (!yes) return text + "nothing was changed: --yes does it\n";
    return text + "the file is " + format_si(static_cast<double>(std::abs(bytes)), "B") +
           (bytes >= 0 ? " smaller\n" : " larger\n");
  }
};

const RegisterQuestion<GcArguments> registered_gc(
    "sweep gc", "drop failures or results of older engines from a store, and give space back");

}  // namespace
}  // namespace orrery
