// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <utility>

#include "sim/app/cli/progress.h"
#include "sim/app/cli/sweep_running.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/questions/sweep_report.h"
#include "sim/app/sweeps/run/run_sweep.h"

namespace orrery {
namespace {

struct SweepPlanArguments {
  std::string file, db, where;
  int jobs = 0;  ///< 0: one for each processor
  int excluded = 0;
  bool quick = false;

  void take(Options& options) {
    options.positional("SWEEP", file, "sweep file (YAML)");
    options.option("--db", db, "the store (SQLite); default: <name of the sweep>.db");
    take_where(options, where);
    options.number("--jobs", jobs,
                   "processes that the time is for; default: one for each processor", 1, 4096);
    options.number("--excluded", excluded, "excluded places to list, with their rule", 1, 1000000);
    options.flag("--quick", quick, "print an estimate alone, counting nothing");
  }

  Answer answer() const {
    expect_kind(file, "sweep");
    const Sweep sweep = load_sweep(file, where);
    ResultStore store = open_store(store_of(sweep, db));
    PlanReport report;
    report.jobs = processes(jobs);
    report.estimate = estimate_plan(sweep, store);
    if (!quick) {
      std::cerr << estimate_line(sweep, report.estimate, report.jobs) << "\n";
      Progress progress("places", static_cast<std::size_t>(sweep.places()));
      PlanCountOptions options;
      options.rows = static_cast<std::size_t>(excluded);
      options.progress = [&](std::uint64_t places) {
        progress.reach(static_cast<std::size_t>(places), "counting");
      };
      PlanListing listing = count_plan(sweep, store, options);
      if (listing.whole) report.exact = std::move(listing);
    }
    return plan_report(sweep, report);
  }
};

const RegisterQuestion<SweepPlanArguments> registered_sweep_plan(
    "sweep plan", "count the points of a sweep, and how long they will take");

}  // namespace
}  // namespace orrery
