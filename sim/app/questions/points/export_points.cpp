// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/export_points.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/explain/effects.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

/// Texts of a point's values by path; those of a base are looked up once.
class Texts {
 public:
  std::string at(const RunRecord& record, const std::string& path) {
    for (const Variation& varied : record.varied)
      if (varied.parameter.path == path) return varied.parameter.text;
    if (!record.base) return {};
    auto& texts = bases_[record.base.get()];
    if (texts.empty())
      for (const Parameter& parameter : record.base->parameters)
        texts[parameter.path] = parameter.text;
    const auto found = texts.find(path);
    return found != texts.end() ? found->second : std::string();
  }

 private:
  std::map<const Configuration*, std::map<std::string, std::string>> bases_;
};

/// Calls `visit` with each point that was chosen, by identity.
void for_each_point(
    const StoredPoints& stored,
    const std::function<void(const RunRecord& record, const PointTable::Group& group)>& visit) {
  const PointColumn identities = stored.column("identity");
  std::vector<std::size_t> rows = stored.rows();
  std::ranges::sort(
      rows, [&](std::size_t a, std::size_t b) { return identities.word(a) < identities.word(b); });
  for (const std::size_t row : rows)
    if (const auto record = stored.store().find(identities.word(row)))
      visit(*record, stored.table().group(row));
}

std::vector<std::string> told_axes(const PointTable& table) {
  std::vector<std::string> axes = table.axes();
  std::erase_if(axes, is_label);
  // Of machine and model the name is enough, and is wanted where there is one alone, too.
  const std::vector<std::string> paths = table.paths();
  for (const char* name : {"system.system", "model.model"})
    if (std::ranges::find(paths, name) != paths.end()) axes.emplace_back(name);
  return axes;
}

}  // namespace

void export_rows(const StoreChoice& choice,
                 const std::function<void(const std::vector<std::string>& cells)>& write) {
  const StoredPoints stored(choice, StoredPoints::Scope::kAll);
  const std::vector<std::string> axes = told_axes(stored.table());
  const std::vector<std::string> metrics = stored.table().metrics();
  const std::vector<std::string> labels = stored.table().labels();
  std::vector<std::string> cells = {"identity", "experiment",     "name",
                                    "status",   "engine_version", "reason"};
  cells.insert(cells.end(), axes.begin(), axes.end());
  for (const std::string& metric : metrics)
    for (const char* ending : {"", ".p10", ".p90"}) cells.push_back(metric + ending);
  cells.insert(cells.end(), labels.begin(), labels.end());
  write(cells);
  Texts texts;
  for_each_point(stored, [&](const RunRecord& record, const PointTable::Group& group) {
    cells = {record.identity,          record.experiment,    record.name,
             to_string(record.status), group.engine_version, record.reason};
    for (const std::string& path : axes) cells.push_back(texts.at(record, path));
    for (const std::string& name : metrics) {
      const Metric* metric = record.find(name);
      const bool interval = metric != nullptr && metric->interval;
      cells.push_back(metric != nullptr ? print_number(metric->value) : "");
      cells.push_back(interval ? print_number(metric->interval->first) : "");
      cells.push_back(interval ? print_number(metric->interval->second) : "");
    }
    for (const std::string& name : labels) {
      const auto label = std::ranges::find(record.labels, name, &Label::name);
      cells.push_back(label != record.labels.end() ? label->value : "");
    }
    write(cells);
  });
}

void export_lines(const StoreChoice& choice,
                  const std::function<void(const std::string& line)>& write) {
  const StoredPoints stored(choice, StoredPoints::Scope::kAll);
  const std::vector<std::string> axes = told_axes(stored.table());
  Texts texts;
  for_each_point(stored, [&](const RunRecord& record, const PointTable::Group& group) {
    RunRecord told = record;
    told.base = nullptr;  // what tells it from others is enough
    told.varied.clear();
    ordered_json json = to_json(told);
    for (const char* key : {"configuration", "parameters", "components"}) json.erase(key);
    json["engine_version"] = group.engine_version;
    ordered_json of_axes = ordered_json::object();
    for (const std::string& path : axes) of_axes[path] = texts.at(record, path);
    json["axes"] = std::move(of_axes);
    write(json.dump());
  });
}

RunRecord find_point(const ResultStore& store, const std::string& word) {
  std::vector<std::string> found;
  const auto look = [&](const std::string& condition) {
    Statement select = store.database()->prepare("SELECT identity FROM points WHERE " + condition +
                                                 " ORDER BY identity LIMIT 3");
    select.bind(1, word);
    while (select.step()) found.push_back(select.text(0));
  };
  const bool digits = word.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (digits && !word.empty()) look("identity >= ?1 AND identity < ?1 || 'g'");
  if (found.empty()) look("name = ?1");
  if (found.empty()) throw UsageError("no point of this store is called '" + word + "'");
  if (found.size() > 1) {
    std::string text = "'" + word + "' is not one point:";
    for (const std::string& identity : found) text += " " + short_identity(identity);
    throw UsageError(text + (found.size() == 3 ? " ..." : "") + "; give the begin of an identity");
  }
  return store.find(found.front()).value();
}

}  // namespace orrery
