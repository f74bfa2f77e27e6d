// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/verb.h"
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
  bool yes = false, json = false;

  void take(Options& options) {
    options.positional("STORE", store, "store of results (SQLite)");
    options.flag("--failures", kinds.failures, "failures go; the next run of a sweep tries them");
    options.flag("--older-engines", kinds.older_engines,
                 "results of other engines than this one go");
    options.flag("--yes", yes, "does it; without it, says what would be done");
    options.json(json);
    options.examples({"sweep gc sweep.db --failures", "sweep gc sweep.db --older-engines --yes"});
  }

  ExitCode run() const {
    Garbage garbage;
    {
      const ResultStore opened = ResultStore::open_read_only(store);
      garbage = find_garbage(*opened.database(), kinds);
    }
    const std::int64_t bytes = yes ? drop_garbage(store, kinds) : 0;
    if (json) {
      print_json(garbage, bytes);
    } else {
      print_text(garbage, bytes);
    }
    return ExitCode::kOk;
  }

 private:
  void print_json(const Garbage& garbage, std::int64_t bytes) const {
    const nlohmann::ordered_json answer = {{"schema", "orrery.gc/1"},
                                           {"store", store},
                                           {"done", yes},
                                           {"failures", garbage.failures},
                                           {"older_results", garbage.older_results},
                                           {"older_tiles", garbage.older_tiles},
                                           {"unused_configurations", garbage.unused_configurations},
                                           {"store_version", kStoreVersion},
                                           {"bytes", bytes}};
    std::cout << answer.dump(2) << "\n";
  }

  void print_text(const Garbage& garbage, std::int64_t bytes) const {
    const char* verb = yes ? "dropped " : "would drop ";
    if (kinds.failures) std::cout << verb << garbage.failures << " failures\n";
    if (kinds.older_engines)
      std::cout << verb << garbage.older_results << " results and " << garbage.older_tiles
                << " times of thread blocks of engines other than " << kEngineVersion << "\n";
    std::cout << verb << garbage.unused_configurations << " configurations that no point has\n";
    if (yes) {
      std::cout << "the file is " << format_si(static_cast<double>(std::abs(bytes)), "B")
                << (bytes >= 0 ? " smaller\n" : " larger\n");
    } else {
      std::cout << "nothing was changed: --yes does it\n";
    }
  }
};

const RegisterVerb<GcArguments> registered_gc(
    "sweep gc", "drop failures or results of older engines from a store, and give space back");

}  // namespace
}  // namespace orrery
