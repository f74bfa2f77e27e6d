// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/axis.h"

#include <cmath>

#include "sim/app/sweeps/plan/amount.h"
#include "sim/app/sweeps/plan/random_axis.h"
#include "sim/config/csv.h"
#include "sim/config/input_files.h"
#include "sim/config/library.h"
#include "sim/units/spelling.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// More values than that of one axis are drawn, not listed.
constexpr double kMostValues = 1e5;
constexpr std::size_t kMostTableBytes = 256 * config::InputFiles::kMebibyte;
/// Digits of made values: sums of steps such as 0.1 end as they began.
constexpr int kDigits = 12;

/// A table of points: its cells are texts until one is asked for, as there may be a million.
class TableAxis final : public Axis {
 public:
  struct Cell {
    std::string text;
    int line = 0;
  };
  TableAxis(std::vector<AxisKey> keys, std::vector<Cell> cells)
      : Axis(std::move(keys)), cells_(std::move(cells)) {}
  std::uint64_t size() const override { return cells_.size() / keys().size(); }
  config::Node value(std::uint64_t step, std::size_t key) const override {
    const Cell& cell = cells_[static_cast<std::size_t>(step) * keys().size() + key];
    config::Origin origin = keys()[key].origin;
    origin.line = cell.line;
    origin.column = 1;
    return config::Node::scalar(cell.text, std::move(origin));
  }

 private:
  std::vector<Cell> cells_;
};

config::Node number_node(const Amount& amount, const config::Node& written) {
  return config::Node::scalar(print_amount(amount), written.origin());
}

}  // namespace

std::vector<AxisKey> keys_of(const config::Node& map) {
  std::vector<AxisKey> keys;
  for (const auto& entry : map.entries()) keys.push_back({entry.key, entry.key_origin});
  return keys;
}

void AxisReader::error(const config::Node& node, std::string message, std::string suggestion) {
  diagnostics_.error(node.where(), node.length(), std::move(message), std::move(suggestion));
}

void AxisReader::add_grid(const config::Node& written,
                          const std::map<std::string, AxisConfig>& grid, Axes& axes) {
  for (const auto& entry : written.entries()) {
    std::vector<std::vector<config::Node>> steps;
    for (config::Node& value : values(entry.key, entry.value, grid.at(entry.key)))
      steps.push_back({std::move(value)});
    axes.push_back(std::make_shared<ListedAxis>(std::vector<AxisKey>{{entry.key, entry.key_origin}},
                                                std::move(steps)));
  }
}

void AxisReader::add_zip(const config::Node& written,
                         const std::vector<std::map<std::string, AxisConfig>>& zip, Axes& axes) {
  for (std::size_t i = 0; i < zip.size(); ++i) {
    const config::Node& item = written.items()[i];
    std::vector<AxisKey> keys;
    std::vector<std::vector<config::Node>> steps;
    for (const auto& entry : item.entries()) {
      const std::vector<config::Node> column = values(entry.key, entry.value, zip[i].at(entry.key));
      if (!keys.empty() && column.size() != steps.size()) {
        error(entry.value, "'" + entry.key + "' has " + std::to_string(column.size()) +
                               " values, '" + keys.front().path + "' has " +
                               std::to_string(steps.size()) + ": they move together");
        return;
      }
      steps.resize(column.size());
      for (std::size_t step = 0; step < column.size(); ++step) steps[step].push_back(column[step]);
      keys.push_back({entry.key, entry.key_origin});
    }
    if (keys.empty()) {
      error(item, "an item of zip needs keys");
    } else {
      axes.push_back(std::make_shared<ListedAxis>(std::move(keys), std::move(steps)));
    }
  }
}

void AxisReader::add_random(const config::Node& written, const RandomConfig& random, Axes& axes) {
  const config::Node& space = *written.find("space");
  std::vector<AxisKey> keys;
  std::vector<Draw> draws;
  for (const auto& entry : space.entries()) {
    const DrawConfig& config = random.space.at(entry.key);
    Draw draw{.low = {},
              .high = {},
              .log = config.log,
              .integer = is_integer_(entry.key),
              .values = config.values,
              .written = entry.value};
    try {
      if (draw.values.empty()) {
        draw.low = parse_amount(config.min);
        draw.high = parse_amount(config.max);
        const std::string fault = fault_of(draw);
        if (!fault.empty()) error(entry.value, entry.key + ": " + fault);
      }
    } catch (const UnitError& unit) {
      error(entry.value, entry.key + ": " + unit.what(), unit.suggestion());
    }
    keys.push_back({entry.key, entry.key_origin});
    draws.push_back(std::move(draw));
  }
  if (keys.empty()) return error(space, "a random axis needs keys in its space");
  axes.push_back(std::make_shared<RandomAxis>(
      std::move(keys), std::move(draws),
      RandomPoints{static_cast<std::uint64_t>(random.n), random.sampler, seed_}));
}

AxisReader::Axes AxisReader::list(const config::Node& written) {
  Axes axes;
  std::vector<AxisKey> keys;
  std::vector<std::vector<config::Node>> steps;
  const auto close = [&] {
    if (!steps.empty()) axes.push_back(std::make_shared<ListedAxis>(keys, std::move(steps)));
    steps.clear();
  };
  for (const config::Node& item : written.items()) {
    const std::vector<AxisKey> own = keys_of(item);
    if (own.size() == 1 && own.front().path == "csv") {
      close();
      if (auto rows = table(*item.find("csv"))) axes.push_back(std::move(rows));
      continue;
    }
    if (steps.empty() || !std::ranges::equal(own, keys, {}, &AxisKey::path, &AxisKey::path)) {
      close();
      keys = own;
    }
    steps.emplace_back();
    for (const auto& entry : item.entries()) steps.back().push_back(entry.value);
  }
  close();
  return axes;
}

std::vector<config::Node> AxisReader::values(const std::string& path, const config::Node& written,
                                             const AxisConfig& axis) {
  const int ways = (axis.values.empty() ? 0 : 1) + (axis.range ? 1 : 0) + (axis.logrange ? 1 : 0) +
                   (axis.csv.empty() ? 0 : 1);
  if (ways > 1) {
    error(written, "the axis '" + path + "' has values, a range, a logrange or a csv: one of them");
    return {};
  }
  std::vector<config::Node> values = axis.values;
  if (axis.range) values = range(*written.find("range"), *axis.range);
  if (axis.logrange) values = logrange(path, *written.find("logrange"), *axis.logrange);
  if (!axis.csv.empty()) values = column(written, axis);
  if (values.empty() && !diagnostics_.has_errors())
    error(written, "the axis '" + path + "' has no values: there is no point");
  return values;
}

std::vector<config::Node> AxisReader::range(const config::Node& written, const RangeConfig& range) {
  std::vector<config::Node> values;
  try {
    const Amount from = parse_amount(range.from), to = parse_amount(range.to),
                 step = parse_amount(range.step);
    const double steps = std::floor((to.value - from.value) / step.value * (1 + 1e-12) + 1e-9);
    if (from.dimension != to.dimension || from.dimension != step.dimension) {
      error(written, "from, to and step of a range have one unit, or units of one kind");
    } else if (!(step.value != 0 && steps >= 0)) {
      error(written, "no step of " + range.step + " leads from " + range.from + " to " + range.to);
    } else if (steps >= kMostValues) {
      error(written, "a range has at most 100000 values; more are drawn (axes.random)");
    } else {
      for (double i = 0; i <= steps; ++i)
        values.push_back(number_node(
            rounded({from.value + i * step.value, from.dimension}, kDigits, false), written));
    }
  } catch (const UnitError& unit) {
    error(written, std::string("range: ") + unit.what(), unit.suggestion());
  }
  return values;
}

std::vector<config::Node> AxisReader::logrange(const std::string& path, const config::Node& written,
                                               const LogRangeConfig& range) {
  std::vector<config::Node> values;
  try {
    const Amount from = parse_amount(range.from), to = parse_amount(range.to);
    if (from.dimension != to.dimension || !(from.value > 0) || to.value < from.value) {
      error(written, "a logrange goes from a value above 0 to one as large or larger, in one unit");
      return values;
    }
    const double ratio = std::log(to.value / from.value);
    const double steps = range.count > 1 ? static_cast<double>(range.count - 1)
                                         : std::floor(ratio / std::log(range.factor) + 1e-9);
    const double growth = range.count > 1 ? ratio / steps : std::log(range.factor);
    if (steps >= kMostValues) {
      error(written, "a logrange has at most 100000 values; more are drawn (axes.random)");
      return values;
    }
    const bool integer = is_integer_(path);
    for (double i = 0; i <= steps; ++i) {
      const double value = from.value * std::exp(growth * i);
      config::Node node = number_node(rounded({value, from.dimension}, kDigits, integer), written);
      if (values.empty() || values.back().text() != node.text()) values.push_back(std::move(node));
    }
  } catch (const UnitError& unit) {
    error(written, std::string("logrange: ") + unit.what(), unit.suggestion());
  }
  return values;
}

std::vector<config::Node> AxisReader::column(const config::Node& written, const AxisConfig& axis) {
  std::vector<config::Node> values;
  const config::FileText text = config::input_files().read(axis.csv.path, kMostTableBytes);
  if (!text.fault.empty()) {
    error(*written.find("csv"), axis.csv.path + " " + text.fault);
    return values;
  }
  diagnostics_.add_source(axis.csv.path, text.text);
  config::CsvReader reader(axis.csv.path, text.text);
  const auto index = reader.find(axis.column);
  if (!index) {
    const config::Node* named = written.find("column");
    error(named != nullptr ? *named : written,
          axis.csv.path + " has no column '" + axis.column + "'",
          nearest_name(axis.column, reader.columns()));
    return values;
  }
  const auto file = std::make_shared<const std::string>(axis.csv.path);
  while (reader.next())
    values.push_back(config::Node::scalar(std::string(reader.cell(*index)),
                                          {config::Origin::Kind::kFile, file, reader.line(), 1}));
  reader.throw_if_errors();
  return values;
}

std::shared_ptr<const Axis> AxisReader::table(const config::Node& csv) {
  const std::string from = csv.origin().file ? *csv.origin().file : std::string();
  const std::string path = config::relative_to(csv.text(), from);
  const config::FileText file = config::input_files().read(path, kMostTableBytes);
  if (!file.fault.empty()) {
    error(csv, "'" + csv.text() + "': " + file.fault + " (looked for " + path + ")");
    return nullptr;
  }
  diagnostics_.add_source(path, file.text);
  const auto name = std::make_shared<const std::string>(path);
  config::CsvReader reader(path, file.text);
  std::vector<AxisKey> keys;
  for (const std::string& column : reader.columns())
    keys.push_back({column, {config::Origin::Kind::kFile, name, 1, 1}});
  std::vector<TableAxis::Cell> cells;
  while (reader.next())
    for (std::size_t i = 0; i < keys.size(); ++i)
      cells.push_back({std::string(reader.cell(i)), reader.line()});
  reader.throw_if_errors();
  if (cells.empty()) error(csv, "'" + csv.text() + "' has no rows: there is no point");
  if (cells.empty()) return nullptr;
  return std::make_shared<TableAxis>(std::move(keys), std::move(cells));
}

}  // namespace orrery
