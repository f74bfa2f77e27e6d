// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/questions/points/attribution.h"
#include "sim/app/questions/points/export_points.h"
#include "sim/app/questions/points/shown_points.h"
#include "sim/results/json_table.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

/// Whether the intervals of both have nothing in common; none where one has no interval.
std::optional<bool> beyond_intervals(const Metric& a, const Metric& b) {
  if (!a.interval || !b.interval) return std::nullopt;
  return a.interval->second < b.interval->first || b.interval->second < a.interval->first;
}

std::string judgement(const Metric& a, const Metric& b) {
  const auto beyond = beyond_intervals(a, b);
  if (a.value == b.value) return "the same";
  if (!beyond) return "no interval";
  return *beyond ? "beyond the intervals" : "within the intervals";
}

std::string change(double a, double b) {
  return a != 0 ? format_difference((b - a) / std::abs(a)) : std::string("-");
}

struct CompareQuestion {
  std::string store, a, b;

  void take(Options& options) {
    options.positional("STORE", store, "store of results (SQLite)");
    options.positional("A", a, "a point: its name, or the begin of its identity");
    options.positional("B", b, "the point that is compared with it");
    options.examples({"compare sweep.db 84d41f852bb1 b7a21a01c3e5"});
  }

  Answer answer() const {
    const ResultStore opened = ResultStore::open_read_only(store);
    const RunRecord first = find_point(opened, a), second = find_point(opened, b);
    Answer answer;
    answer.json = {{"schema", "orrery.compare/1"}, {"store", store}};
    for (const auto& [key, record] : {std::pair{"a", &first}, std::pair{"b", &second}}) {
      answer.json[key] = {{"identity", record->identity},
                          {"name", record->name},
                          {"experiment", record->experiment},
                          {"status", to_string(record->status)},
                          {"reason", record->reason}};
      answer.add(
          fmt::format("{}  {}  {}{}\n", key[0] == 'a' ? "A" : "B", short_identity(record->identity),
                      record->name,
                      record->status == RunStatus::kOk
                          ? ""
                          : fmt::format("  {}: {}", to_string(record->status), record->reason)));
    }
    add_configuration(first, second, answer);
    add_metrics(first, second, answer);
    add_attribution(first, second, answer);
    add_links(first, second, answer);
    return answer;
  }

 private:
  static void add_configuration(const RunRecord& first, const RunRecord& second, Answer& answer) {
    const PointAxes axes = axes_of({first, second});
    ordered_json json = ordered_json::array();
    for (std::size_t i = 0; i < axes.paths.size(); ++i)
      json.push_back({{"path", axes.paths[i]}, {"a", axes.texts[i][0]}, {"b", axes.texts[i][1]}});
    if (json.empty()) answer.add("\nthe configuration is the same\n");
    answer.add_below(json_table(json, "input = path | >A = a | >B = b"));
    answer.json["configuration"] = std::move(json);
  }

  static void add_metrics(const RunRecord& first, const RunRecord& second, Answer& answer) {
    Table table = Table::titled("metric | >A | >B | >change | difference is");
    ordered_json json = ordered_json::array();
    for (const Metric& metric : first.metrics) {
      const Metric* other = second.find(metric.name);
      if (other == nullptr || metric.name == kWallTimeMetric) continue;
      const auto beyond = beyond_intervals(metric, *other);
      json.push_back({{"metric", metric.name},
                      {"unit", metric.unit},
                      {"a", metric.value},
                      {"b", other->value},
                      {"difference", other->value - metric.value},
                      {"interval_a", or_null(metric.interval)},
                      {"interval_b", or_null(other->interval)},
                      {"beyond_intervals", or_null(beyond)}});
      if (metric.value == other->value || metric.name.starts_with("breakdown.")) continue;
      table.add_row({metric.name, value_text(metric.value, metric.unit),
                     value_text(other->value, other->unit), change(metric.value, other->value),
                     judgement(metric, *other)});
    }
    answer.json["metrics"] = std::move(json);
    if (table.empty()) answer.add("\nno metric of both differs\n");
    answer.add_below(std::move(table));
  }

  static void add_attribution(const RunRecord& first, const RunRecord& second, Answer& answer) {
    answer.json["attribution"] = ordered_json::array();
    for (const Attribution& attribution : attributions(first, second)) {
      Table table =
          Table::titled(attribution.what + " | >A | >B | >difference | >of the difference");
      ordered_json parts = ordered_json::array();
      const auto row = [&](const AttributedPart& part) {
        const auto s = [](std::int64_t ps) {
          return format_si(1e-12 * static_cast<double>(ps), "s");
        };
        table.add_row(
            {part.name, s(part.a_ps), s(part.b_ps), s(part.difference_ps()),
             attribution.total.difference_ps() == 0
                 ? "-"
                 : format_percent(static_cast<double>(part.difference_ps()) /
                                  static_cast<double>(attribution.total.difference_ps()))});
        return ordered_json{{"name", part.name},
                            {"a_ps", part.a_ps},
                            {"b_ps", part.b_ps},
                            {"difference_ps", part.difference_ps()}};
      };
      for (const AttributedPart& part : attribution.parts) parts.push_back(row(part));
      const ordered_json total = row(attribution.total);
      answer.json["attribution"].push_back(
          {{"by", attribution.what}, {"total", total}, {"parts", std::move(parts)}});
      answer.add_below(std::move(table));
    }
  }

  static void add_links(const RunRecord& first, const RunRecord& second, Answer& answer) {
    std::map<std::string, std::pair<const LinkUse*, const LinkUse*>> links;
    for (const LinkUse& use : first.link_classes) links[use.name].first = &use;
    for (const LinkUse& use : second.link_classes) links[use.name].second = &use;
    ordered_json json = ordered_json::array(), other = ordered_json::array();
    const auto bytes = [](const LinkUse* use) { return use != nullptr ? use->bytes : 0; };
    const auto busy = [](const LinkUse* use) { return use != nullptr ? use->peak_share : 0; };
    for (const auto& [name, uses] : links) {
      const auto [a, b] = uses;
      json.push_back({{"name", name},
                      {"bytes_a", bytes(a)},
                      {"bytes_b", bytes(b)},
                      {"peak_share_a", busy(a)},
                      {"peak_share_b", busy(b)}});
      if (bytes(a) != bytes(b) || busy(a) != busy(b)) other.push_back(json.back());
    }
    answer.json["links"] = std::move(json);
    answer.add_below(json_table(other,
                                "links = name | bytes A = bytes_a B | bytes B = bytes_b B | "
                                "busy A = peak_share_a percent | busy B = peak_share_b percent"));
  }
};

const RegisterQuestion<CompareQuestion> registered_compare(
    "compare",
    "two points of a store: what differs in inputs and results, and where it comes from");

}  // namespace
}  // namespace orrery
