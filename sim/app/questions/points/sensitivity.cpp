// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/questions/base/question.h"
#include "sim/app/questions/points/sensitivity.h"
#include "sim/store/store_file.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// "10%" or "0.1". @throws UsageError
double share_of(const std::string& text) {
  try {
    const bool percent = text.ends_with('%');
    std::string number = percent ? text.substr(0, text.size() - 1) : text;
    while (number.ends_with(' ')) number.pop_back();
    const double share = parse_number(number) / (percent ? 100 : 1);
    if (share > 0 && share < 1) return share;
  } catch (const UnitError&) {
  }
  throw UsageError("--by " + text + ": a share between 0 and 100 % is expected, such as 10%");
}

struct SensitivityQuestion {
  StoreChoice choice;
  std::string metric, by;
  int jobs = 0;
  std::vector<std::string> set;

  void take(Options& options) {
    options.positional("FILE", choice.store, "store of results (SQLite), or an experiment (YAML)");
    options.positional("METRIC", metric, "what inputs have an effect on");
    options.option("--where", choice.where, "condition on points of a store, as of `pareto`");
    options.option("--by", by,
                   "share by which each number of an experiment goes up and down; default: 10%");
    options.number("--jobs", jobs, "processes for an experiment; default: one for each processor",
                   1, 4096);
    options.set(set);
    options.examples(
        {"sensitivity sweep.db step_time_s",
         "sensitivity configs/experiments/deepseek_r1_decode.yaml step_time_s --by 10%"});
  }

  Answer answer() const {
    if (is_sqlite_file(choice.store)) {
      if (!by.empty() || jobs != 0 || !set.empty())
        throw UsageError("--by, --jobs and --set are of an experiment, not of a store");
      return swept_inputs(choice, metric);
    }
    if (!choice.where.empty()) throw UsageError("--where is of a store, not of an experiment");
    expect_kind(choice.store, "experiment");
    return scaled_inputs(load_experiment(choice.store, set), metric,
                         {by.empty() ? 0.1 : share_of(by), static_cast<std::size_t>(jobs)});
  }
};

const RegisterQuestion<SensitivityQuestion> registered_sensitivity(
    "sensitivity",
    "effect of each input on a metric: over the points of a store, or of each number of an "
    "experiment",
    true);

}  // namespace
}  // namespace orrery
