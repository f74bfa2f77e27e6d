// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/sensitivity.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/pricing/tile_store.h"
#include "sim/app/questions/explain/effects.h"
#include "sim/app/questions/points/shown_points.h"
#include "sim/app/sweeps/workers/local_workers.h"
#include "sim/units/spelling.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

/// A number of the configuration, and the metric where it is less and where it is more.
struct Scaled {
  config::Leaf leaf;
  std::array<double, 2> inputs = {};  ///< values tried, in SI base units
  std::array<std::string, 2> texts;
  std::array<std::optional<double>, 2> metrics = {};
  std::array<std::string, 2> refusals;  ///< why there is no metric

  /// Share by which the input was changed.
  double step(std::size_t up) const { return (inputs[up] - *leaf.value) / *leaf.value; }

  /// The larger change of the metric for a change of the input by 1: inputs that go by whole
  /// numbers are changed by more than others.
  double largest(double now) const {
    double largest = 0;
    for (const std::size_t up : {0U, 1U})
      if (metrics[up]) largest = std::max(largest, std::abs((*metrics[up] - now) / step(up)));
    return largest;
  }
};

std::optional<double> metric_of(const RunRecord& record, const std::string& metric) {
  const Metric* found = record.find(metric);
  return found != nullptr ? std::optional(found->value) : std::nullopt;
}

/// A whole number goes to the nearest whole one, and by one at least.
double scaled(const config::Leaf& leaf, double factor) {
  const double value = *leaf.value * factor;
  if (leaf.type->kind != config::TypeKind::kInteger) return value;
  const double whole = std::nearbyint(value);
  return whole != *leaf.value ? whole : *leaf.value + (factor > 1 ? 1 : -1);
}

std::vector<Scaled> inputs_of(const LoadedExperiment& loaded, double share) {
  std::vector<Scaled> inputs;
  for (const config::Leaf& leaf : loaded.leaves()) {
    if (!leaf.value || *leaf.value == 0 || leaf.path == "seed" || is_label(leaf.path)) continue;
    if (leaf.type->kind == config::TypeKind::kFlag || leaf.type->kind == config::TypeKind::kEnum)
      continue;
    Scaled input;
    input.leaf = leaf;
    for (const std::size_t up : {0U, 1U}) {
      input.inputs[up] = scaled(leaf, up == 1 ? 1 + share : 1 - share);
      input.texts[up] = print_number(input.inputs[up]) + (leaf.unit.empty() ? "" : " " + leaf.unit);
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

RunRecord simulated(const LoadedExperiment& loaded, TileStore& tiles) {
  // That a step does not fit is not what was asked.
  return simulate(loaded,
                  {.trace = {}, .tiles = &tiles, .configuration = false, .beyond_memory = true});
}

/// The metric with another value as text that reads back as the same number.
std::string tried(const LoadedExperiment& loaded, const Scaled& input, bool up,
                  const std::string& metric, TileStore& tiles) {
  config::Diagnostics diagnostics;
  const LoadedExperiment other =
      load_experiment(loaded.node, {input.leaf.path + "=" + input.texts[up ? 1 : 0]}, diagnostics);
  const RunRecord record = simulated(other, tiles);
  const auto value = metric_of(record, metric);
  if (!value) throw UsageError(record.reason.empty() ? "no such metric" : record.reason);
  return print_number(*value);
}

void run_all(const LoadedExperiment& loaded, const std::string& metric, std::size_t jobs,
             TileStore& tiles, std::vector<Scaled>& inputs) {
  LocalWorkers workers(jobs > 0 ? jobs : available_processors(), [&](std::size_t point) {
    return tried(loaded, inputs[point / 2], point % 2 == 1, metric, tiles);
  });
  workers.submit({0, 2 * inputs.size()});
  for (auto outcomes = workers.poll(); !outcomes.empty(); outcomes = workers.poll()) {
    for (const PointOutcome& outcome : outcomes) {
      Scaled& input = inputs[outcome.point / 2];
      if (const auto* failure = std::get_if<Failure>(&outcome.result)) {
        const std::string& text = failure->message;
        input.refusals[outcome.point % 2] = text.substr(0, text.find('\n'));
      } else {
        input.metrics[outcome.point % 2] = parse_number(std::get<std::string>(outcome.result));
      }
    }
  }
}

std::string changed_share(const std::optional<double>& metric, double now) {
  if (!metric) return "cannot be";
  if (now == 0) return print_number(*metric);
  return *metric == now ? "0" : format_difference((*metric - now) / std::abs(now));
}

/// The change, and the value where that is not the one that was asked for.
std::string tried_cell(const Scaled& input, std::size_t up, double now) {
  const bool whole = input.leaf.type->kind == config::TypeKind::kInteger;
  const std::string text = changed_share(input.metrics[up], now);
  return whole && input.metrics[up] ? fmt::format("{} at {}", text, input.texts[up]) : text;
}

Table table_of(const std::vector<Scaled>& inputs, double share, double now) {
  const std::string by = format_percent(share, 0);
  Table table = Table::titled(fmt::format("input | >value | >-{0} | >+{0}", by));
  for (const Scaled& input : inputs) {
    if (input.largest(now) == 0) continue;
    table.add_row(
        {input.leaf.path, input.leaf.text, tried_cell(input, 0, now), tried_cell(input, 1, now)});
  }
  return table;
}

/// What became of inputs that are not in the table.
std::string others(const std::vector<Scaled>& inputs, double now) {
  std::size_t without = 0, refused = 0;
  for (const Scaled& input : inputs) {
    if (input.largest(now) > 0) continue;
    const bool none = !input.metrics[0] && !input.metrics[1];
    ++(none ? refused : without);
  }
  std::string text = fmt::format("{} numbers have no effect", without);
  if (refused > 0)
    text += fmt::format(", {} cannot be changed alone (--json has the reasons)", refused);
  return text + "\n";
}

ordered_json json_of(const Scaled& input, double now) {
  ordered_json json = {{"path", input.leaf.path},
                       {"text", input.leaf.text},
                       {"value", *input.leaf.value},
                       {"unit", input.leaf.unit}};
  for (const std::size_t up : {0U, 1U}) {
    const auto& metric = input.metrics[up];
    json[up == 1 ? "more" : "less"] = {
        {"value", input.inputs[up]},
        {"metric", or_null(metric)},
        {"change", metric ? ordered_json(*metric - now) : ordered_json()},
        // Percent of the metric for a percent of the input.
        {"elasticity", metric && now != 0 ? ordered_json((*metric - now) / now / input.step(up))
                                          : ordered_json()},
        {"refusal", input.refusals[up]}};
  }
  return json;
}

}  // namespace

Answer scaled_inputs(const LoadedExperiment& loaded, const std::string& metric,
                     const ScalingOptions& options) {
  TileStore tiles;
  const RunRecord record = simulated(loaded, tiles);
  const auto now = metric_of(record, metric);
  if (!now) {
    std::vector<std::string> names;
    for (const Metric& known : record.metrics) names.push_back(known.name);
    throw UsageError(fmt::format("this experiment has no metric '{}'{}", metric,
                                 did_you_mean(nearest_name(metric, names))));
  }
  std::vector<Scaled> inputs = inputs_of(loaded, options.share);
  run_all(loaded, metric, options.jobs, tiles, inputs);
  std::ranges::stable_sort(
      inputs, [&](const Scaled& a, const Scaled& b) { return a.largest(*now) > b.largest(*now); });
  Answer answer;
  const Table table = table_of(inputs, options.share, *now);
  if (!table.empty()) answer.add(table);
  answer.add(fmt::format("{} is {}; {} numbers, one at a time, all others as they are\n{}", metric,
                         value_text(*now, record.find(metric)->unit), inputs.size(),
                         others(inputs, *now)));
  ordered_json list = ordered_json::array();
  answer.csv = {{"input", "value", "unit", "less", "metric_less", "more", "metric_more"}};
  for (const Scaled& input : inputs) {
    list.push_back(json_of(input, *now));
    answer.csv.push_back({input.leaf.path, print_number(*input.leaf.value), input.leaf.unit,
                          print_number(input.inputs[0]), number_text(input.metrics[0]),
                          print_number(input.inputs[1]), number_text(input.metrics[1])});
  }
  answer.json = {{"schema", "orrery.sensitivity/1"},
                 {"metric", metric},
                 {"unit", record.find(metric)->unit},
                 {"value", *now},
                 {"share", options.share},
                 {"inputs", std::move(list)}};
  return answer;
}

}  // namespace orrery
