// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/sensitivity.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/questions/points/main_effects.h"
#include "sim/app/questions/points/shown_points.h"
#include "sim/store/store_file.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

/// An input whose values are numbered in their order.
struct SweptInput {
  std::string path;
  std::string unit;
  std::vector<std::string> texts;    ///< texts of values by code
  std::vector<std::uint32_t> codes;  ///< codes by point
};

SweptInput input_of(const std::string& path, const PointColumn& column,
                    const std::vector<std::size_t>& rows) {
  SweptInput input{path, column.unit, {}, {}};
  const bool words = column.kind == PointColumn::Kind::kWord;
  std::map<std::pair<double, std::string>, std::uint32_t> codes;
  const auto value = [&](std::size_t row) {
    if (!column.has(row)) return std::pair(-HUGE_VAL, std::string("-"));
    return words ? std::pair(0.0, column.word(row)) : std::pair(column.numbers[row], std::string());
  };
  for (const std::size_t row : rows) codes.emplace(value(row), 0);
  for (auto& [key, code] : codes) {
    code = static_cast<std::uint32_t>(input.texts.size());
    const bool flag = column.kind == PointColumn::Kind::kFlag;
    if (!key.second.empty()) {
      input.texts.push_back(key.second);
    } else if (flag) {
      input.texts.emplace_back(key.first != 0 ? "true" : "false");
    } else {
      input.texts.push_back(value_text(key.first, column.unit));
    }
  }
  input.codes.reserve(rows.size());
  for (const std::size_t row : rows) input.codes.push_back(codes.find(value(row))->second);
  return input;
}

/// Inputs that differ between the points, without what follows from others.
std::vector<SweptInput> inputs_of(const StoredPoints& stored,
                                  const std::vector<std::size_t>& rows) {
  std::map<std::string, SweptInput> inputs;
  std::vector<std::string> paths;
  for (const std::string& path : stored.table().axes()) {
    const auto column = stored.table().column(path);
    if (!column) continue;
    SweptInput input = input_of(path, *column, rows);
    if (input.texts.size() < 2) continue;
    paths.push_back(path);
    inputs.emplace(path, std::move(input));
  }
  paths = without_followers(paths, [&](const std::string& name, const std::string& path) {
    const SweptInput &of_name = inputs.at(name), &other = inputs.at(path);
    std::vector<std::int64_t> seen(of_name.texts.size(), -1);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::int64_t& known = seen[of_name.codes[i]];
      if (known >= 0 && known != other.codes[i]) return false;
      known = other.codes[i];
    }
    return true;
  });
  std::vector<SweptInput> told;
  told.reserve(paths.size());
  for (const std::string& path : paths) told.push_back(std::move(inputs.at(path)));
  return told;
}

struct SweptEffect {
  const SweptInput* input;
  MainEffect effect;
};

const MainEffect::Level& end_of(const MainEffect& effect, bool most) {
  return most ? *std::ranges::max_element(effect.levels, {}, &MainEffect::Level::effect)
              : *std::ranges::min_element(effect.levels, {}, &MainEffect::Level::effect);
}

Table table_of(const std::vector<SweptEffect>& effects, const std::string& unit, double mean) {
  Table table = Table::titled(
      "input | >values | >least at | >most at | >effect | >of the mean | >in single groups | "
      ">groups");
  for (const auto& [input, effect] : effects) {
    const std::string values = std::to_string(input->texts.size());
    if (effect.groups == 0) {
      table.add_row({input->path, values, "-", "-", "never changes alone", "-", "-", "0"});
      continue;
    }
    table.add_row(
        {input->path, values, input->texts[end_of(effect, false).code],
         input->texts[end_of(effect, true).code], value_text(effect.swing, unit),
         mean != 0 ? format_percent(effect.swing / std::abs(mean)) : "-",
         fmt::format("{} to {}", value_text(effect.least, unit), value_text(effect.most, unit)),
         std::to_string(effect.groups)});
  }
  return table;
}

ordered_json json_of(const SweptEffect& of) {
  ordered_json levels = ordered_json::array();
  for (const MainEffect::Level& level : of.effect.levels)
    levels.push_back({{"value", of.input->texts[level.code]},
                      {"effect", level.effect},
                      {"groups", level.groups}});
  return {{"path", of.input->path}, {"swing", of.effect.swing},   {"least", of.effect.least},
          {"most", of.effect.most}, {"groups", of.effect.groups}, {"levels", std::move(levels)}};
}

/// What each input that points of a store differ in does to a metric, all others being equal; the
/// largest first.
/// @throws UsageError for no such metric
Answer swept_inputs(const StoreChoice& choice, const std::string& metric) {
  const StoredPoints stored(choice);
  const PointColumn column = std::move(stored.numbers({metric}).front());
  std::vector<std::size_t> rows;
  std::vector<double> values;
  double sum = 0;
  for (const std::size_t row : stored.rows()) {
    if (!column.has(row)) continue;
    rows.push_back(row);
    values.push_back(column.numbers[row]);
    sum += values.back();
  }
  const double mean = values.empty() ? 0 : sum / static_cast<double>(values.size());
  const std::vector<SweptInput> inputs = inputs_of(stored, rows);
  std::vector<std::vector<std::uint32_t>> codes;
  codes.reserve(inputs.size());
  for (const SweptInput& input : inputs) codes.push_back(input.codes);
  std::vector<MainEffect> found = main_effects(codes, values);
  std::vector<SweptEffect> effects;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    effects.push_back({&inputs[i], std::move(found[i])});
  std::ranges::stable_sort(effects, std::greater<>(),
                           [](const SweptEffect& e) { return e.effect.swing; });
  Answer answer;
  if (!effects.empty()) answer.add(table_of(effects, column.unit, mean));
  answer.add(fmt::format(
      "effect of an input on {0} where all others are equal: mean over groups of points that "
      "differ in it alone\n{1} points, mean {2}\n{3}draw it: scripts/plot_sensitivity.py {4} {0}\n",
      metric, rows.size(), value_text(mean, column.unit), stored.left_out(), choice.store));
  ordered_json list = ordered_json::array();
  answer.csv = {{"input", "value", "effect", "groups"}};
  for (const SweptEffect& effect : effects) {
    list.push_back(json_of(effect));
    for (const MainEffect::Level& level : effect.effect.levels)
      answer.csv.push_back({effect.input->path, effect.input->texts[level.code],
                            print_number(level.effect), std::to_string(level.groups)});
  }
  answer.json = {{"schema", "orrery.sensitivity/1"},
                 {"store", choice.store},
                 {"where", choice.where},
                 {"metric", metric},
                 {"unit", column.unit},
                 {"mean", mean},
                 {"points", rows.size()},
                 {"inputs", std::move(list)}};
  return answer;
}

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
