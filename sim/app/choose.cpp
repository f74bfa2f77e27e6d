// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweep_config.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// The value of a metric or, failing that, of a numeric configuration path.
std::optional<double> value_of(const RunRecord& record, const std::string& name) {
  if (const Metric* metric = record.find(name)) return metric->value;
  for (const Parameter& parameter : record.parameters) {
    if (parameter.path == name) return parameter.value;
  }
  return std::nullopt;
}

/// A limit is a plain number in the metric's unit, or a quantity: times and memory are what people
/// limit.
double limit_of(const std::string& text, const std::string& unit) {
  if (unit == "s") return parse<Seconds>(text).base();
  if (unit == "B") return parse<Bytes>(text).base();
  if (unit == "W") return parse<Watts>(text).base();
  return parse_number(text);
}

bool keeps(const RunRecord& record, const std::map<std::string, config::Node>& limits, bool upper) {
  for (const auto& [name, limit] : limits) {
    const Metric* metric = record.find(name);
    if (metric == nullptr) return false;
    const double bound = limit_of(limit.text(), metric->unit);
    if (upper ? metric->value > bound : metric->value < bound) return false;
  }
  return true;
}

bool better(const ChooseConfig& choice, const RunRecord& candidate, const RunRecord& best) {
  const std::string& name = choice.maximize.empty() ? choice.minimize : choice.maximize;
  if (name.empty()) return false;
  const auto a = value_of(candidate, name), b = value_of(best, name);
  if (!a || !b) return a.has_value();
  return choice.maximize.empty() ? *a < *b : *a > *b;
}

}  // namespace

const RunRecord* choose(const ChooseConfig& choice, const std::vector<const RunRecord*>& row) {
  const RunRecord* best = nullptr;
  for (const RunRecord* record : row) {
    if (record->status != RunStatus::kOk) continue;
    if (!keeps(*record, choice.at_most, true) || !keeps(*record, choice.at_least, false)) continue;
    if (best == nullptr || better(choice, *record, *best)) best = record;
  }
  return best;
}

}  // namespace orrery
