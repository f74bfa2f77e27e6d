// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/questions/points/stored_points.h"
#include "sim/app/sweeps/plan/plan_counts.h"
#include "sim/results/json_table.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

bool is_sweep(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

struct StatusQuestion {
  std::string what, db;
  bool failed = false;

  void take(Options& options) {
    options.positional(
        "STORE|SWEEP", what,
        "store of results (SQLite), or a sweep file: then its own points alone count");
    options.option("--db", db, "store of the sweep; default: <name of the sweep>.db");
    options.examples({"sweep status sweep.db --failed", "sweep status sweep.yaml --db sweep.db"});
    options.flag("--failed", failed, "every failure with its reason and what is known of it");
  }

  Answer answer() const {
    Answer answer;
    answer.json = {{"schema", "orrery.sweep-status/1"}};
    std::string path = what;
    if (is_sweep(what)) {
      expect_kind(what, "sweep");
      const Sweep sweep = load_sweep(what);
      path = db.empty() ? sweep.config.name + ".db" : db;
      add_sweep(sweep, path, answer);
    }
    answer.json["store"] = path;
    std::error_code ignored;
    if (is_sweep(what) && !std::filesystem::exists(path, ignored)) return answer;
    const ResultStore store = ResultStore::open_read_only(path);
    add_counts(*store.database(), answer);
    add_reasons(*store.database(), answer);
    if (failed) add_failures(*store.database(), answer);
    return answer;
  }

 private:
  /// Points of a sweep by what the store has of them.
  static void add_sweep(const Sweep& sweep, const std::string& path, Answer& answer) {
    const ResultStore store = ResultStore::open(path);  // which need not be there yet
    const PlanCounts counts = count_plan(sweep, store, {}).counts;
    std::string text = fmt::format("{}: {} points", sweep.config.name, counts.points());
    ordered_json states = ordered_json::object();
    for (const auto& [state, count] :
         {std::pair{"done", counts.done}, std::pair{"failed", counts.failed},
          std::pair{"to do", counts.to_do}, std::pair{"cannot be", counts.impossible}}) {
      states[state] = count;
      if (count > 0) text += fmt::format(", {} {}", count, state);
    }
    answer.json["sweep"] = {
        {"name", sweep.config.name}, {"points", counts.points()}, {"states", std::move(states)}};
    answer.add(text + "\n\n");
  }

  /// Points by kind, engine and status.
  static void add_counts(const Database& database, Answer& answer) {
    const PointTable points(database);
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> counts;
    for (std::size_t i = 0; i < points.groups().size(); ++i) {
      const PointTable::Group& group = points.groups()[i];
      counts[{group.status, group.experiment, group.engine_version}] += points.counts()[i];
    }
    ordered_json json = ordered_json::array();
    for (const auto& [group, count] : counts) {
      const auto& [status, experiment, engine] = group;
      json.push_back({{"experiment", experiment},
                      {"engine_version", engine},
                      {"status", status},
                      {"points", count}});
    }
    answer.json["points"] = points.size();
    if (!json.empty())
      answer.add(json_table(json,
                            "kind = experiment | >engine = engine_version | "
                            "status = status | points = points count"));
    answer.json["counts"] = std::move(json);
    answer.add(fmt::format("{} points in the store\n", points.size()));
  }

  /// Failures by reason, the commonest first.
  void add_reasons(const Database& database, Answer& answer) const {
    ToldRows rows{Table::titled(">failures | >exit code | reason")};
    Statement select = database.prepare(
        "SELECT count(*), exit_code, reason FROM points WHERE status = 'failed' GROUP BY 2, 3 "
        "ORDER BY 1 DESC, 3 LIMIT 20");
    while (select.step())
      rows.add({std::to_string(select.integer(0)), std::to_string(select.integer(1)),
                first_line(select.text(2))},
               {{"points", select.integer(0)},
                {"exit_code", select.integer(1)},
                {"reason", select.text(2)}});
    answer.json["reasons"] = std::move(rows.json);
    const bool any = !rows.table.empty();
    answer.add_below(std::move(rows.table));
    if (any && !failed) answer.add("--failed shows each; the next `sweep run` tries them again\n");
  }

  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

  static void add_failures(const Database& database, Answer& answer) {
    Table table = Table::titled(
        "point | name | >tries | >exit code | >signal | >CPU | >memory | host | last words");
    ordered_json json = ordered_json::array();
    Statement select = database.prepare(
        "SELECT identity, name, attempts, exit_code, signal, user_s, system_s, peak_bytes, host, "
        "stderr, reason, started, wall_s FROM v_failures ORDER BY identity");
    while (select.step()) {
      json.push_back({{"identity", select.text(0)},
                      {"name", select.text(1)},
                      {"attempts", select.integer(2)},
                      {"exit_code", select.integer(3)},
                      {"signal", select.integer(4)},
                      {"user_s", select.real(5)},
                      {"system_s", select.real(6)},
                      {"peak_bytes", select.integer(7)},
                      {"host", select.text(8)},
                      {"stderr", select.text(9)},
                      {"reason", select.text(10)},
                      {"started", select.text(11)},
                      {"wall_s", select.real(12)}});
      const std::string words = select.text(9).empty() ? select.text(10) : select.text(9);
      table.add_row({short_identity(select.text(0)), select.text(1),
                     std::to_string(select.integer(2)), std::to_string(select.integer(3)),
                     select.integer(4) == 0 ? "-" : std::to_string(select.integer(4)),
                     format_si(select.real(5) + select.real(6), "s"),
                     select.integer(7) == 0 ? "-" : format_si(select.real(7), "B"), select.text(8),
                     first_line(words)});
    }
    answer.json["failures"] = std::move(json);
    answer.add_below(std::move(table));
  }
};

const RegisterQuestion<StatusQuestion> registered_status(
    "sweep status", "points of a store or of a sweep: how many are done, failed and why, to do");

}  // namespace
}  // namespace orrery
