// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/sweep_report.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/results/table.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::string count_text(std::uint64_t count) { return print_grouped(static_cast<double>(count)); }

/// "0.3 ms", "40 s", "3.2 h", "12 days"
std::string duration_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  if (seconds < 1) return format_si(seconds, "s");
  if (seconds < 2 * kMinute) return print_grouped(seconds, seconds < 10 ? 1 : 0) + " s";
  if (seconds < 2 * kHour) return print_grouped(seconds / kMinute) + " min";
  if (seconds < 2 * kDay) return print_grouped(seconds / kHour, 1) + " h";
  return print_grouped(seconds / kDay, 1) + " days";
}

std::optional<double> run_seconds(const PlanCounts& counts, const PlanReport& report) {
  if (!report.estimate.point_s) return std::nullopt;
  return static_cast<double>(counts.to_do + counts.failed) * *report.estimate.point_s /
         static_cast<double>(report.jobs);
}

Table counts_table(const Sweep& sweep, const PlanCounts& counts) {
  Table table = Table::titled("what | >places");
  const auto add = [&table](const std::string& what, std::uint64_t count) {
    table.add_row({what, count_text(count)});
  };
  add("cross product", counts.places);
  for (std::size_t i = 0; i < counts.excluded.size(); ++i)
    for (std::size_t rule = 0; rule < counts.excluded[i].size(); ++rule)
      add(fmt::format(
              "  excluded by {}{}", sweep.rules[i].where[rule].explained(),
              counts.excluded.size() > 1 ? fmt::format(" ({})", sweep.config.cases[i].name) : ""),
          counts.excluded[i][rule]);
  if (counts.none > 0) add("  no points, by 'when'", counts.none);
  add("points", counts.points());
  if (counts.impossible > 0) add("  cannot be", counts.impossible);
  add("  done", counts.done);
  if (counts.failed > 0) add("  failed, to be tried again", counts.failed);
  add("  to do", counts.to_do);
  return table;
}

Json to_json(const Sweep& sweep, const PlanCounts& counts) {
  Json excluded = Json::array();
  for (std::size_t i = 0; i < counts.excluded.size(); ++i)
    for (std::size_t rule = 0; rule < counts.excluded[i].size(); ++rule)
      excluded.push_back({{"case", sweep.config.cases[i].name},
                          {"rule", sweep.rules[i].where[rule].text},
                          {"places", counts.excluded[i][rule]}});
  return {{"cross_product", counts.places},  {"excluded", std::move(excluded)},
          {"no_points", counts.none},        {"points", counts.points()},
          {"impossible", counts.impossible}, {"done", counts.done},
          {"failed", counts.failed},         {"to_do", counts.to_do}};
}

std::string time_line(const PlanCounts& counts, const PlanReport& report) {
  const auto seconds = run_seconds(counts, report);
  if (!seconds) return "No point could be timed.\n";
  return fmt::format("About {} on {} processors: {} a point, by {}.\n", duration_text(*seconds),
                     report.jobs, duration_text(*report.estimate.point_s),
                     report.estimate.point_s_from);
}

ToldRows excluded_places(const Sweep& sweep, const std::vector<ExcludedPlace>& places) {
  ToldRows rows{Table::titled(">place | >places | excluded by | first of them")};
  for (const ExcludedPlace& place : places) {
    const std::string& rule = sweep.rules[place.case_index].where[place.rule].text;
    rows.add({count_text(place.place), count_text(place.covers), rule, place.axes},
             {{"place", place.place},
              {"places", place.covers},
              {"case", sweep.config.cases[place.case_index].name},
              {"rule", rule},
              {"axes", place.axes}});
  }
  return rows;
}

Json to_json(const Sweep& sweep, const PlanReport& report) {
  const PlanCounts& counts = report.exact ? report.exact->counts : report.estimate.counts;
  Json json = {{"schema", "orrery.sweep_plan/1"}, {"sweep", sweep.config.name}};
  json["estimate"] = to_json(sweep, report.estimate.counts);
  json["estimate"]["looked_at"] = report.estimate.looked_at;
  json["exact"] = report.exact ? to_json(sweep, report.exact->counts) : Json(nullptr);
  json["seconds_per_point"] = or_null(report.estimate.point_s);
  json["jobs"] = report.jobs;
  json["seconds"] = or_null(run_seconds(counts, report));
  Json objectives = Json::array();
  for (const SweepCaseConfig& described : sweep.config.cases)
    for (const ObjectiveConfig& o : sweep.config.objectives_of(described))
      objectives.push_back(
          {{"case", described.name}, {o.maximize.empty() ? "minimize" : "maximize", o.name()}});
  json["objectives"] = std::move(objectives);
  json["tags"] = sweep.config.tags;
  json["notes"] = sweep.config.notes;
  if (report.exact) json["excluded_places"] = excluded_places(sweep, report.exact->excluded).json;
  return json;
}

}  // namespace

std::string estimate_line(const Sweep& sweep, const PlanEstimate& estimate, std::size_t jobs) {
  const auto seconds = run_seconds(estimate.counts, {estimate, std::nullopt, jobs});
  return fmt::format(
      "about {} points of {} places, {} to do{}", count_text(estimate.counts.points()),
      count_text(sweep.places()), count_text(estimate.counts.to_do),
      seconds ? fmt::format(", {} on {} processors", duration_text(*seconds), jobs) : "");
}

Answer plan_report(const Sweep& sweep, const PlanReport& report) {
  Answer answer;
  const PlanCounts& counts = report.exact ? report.exact->counts : report.estimate.counts;
  if (!sweep.config.notes.empty()) answer.add(sweep.config.notes + "\n");
  if (!report.exact)
    answer.add(fmt::format("Estimated from {} places:\n", count_text(report.estimate.looked_at)));
  answer.add(counts_table(sweep, counts));
  answer.add(time_line(counts, report));
  if (report.exact && !report.exact->excluded.empty())
    answer.add(excluded_places(sweep, report.exact->excluded).table);
  answer.json = to_json(sweep, report);
  return answer;
}

}  // namespace orrery
