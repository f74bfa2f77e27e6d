// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/explain/effects.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "sim/app/experiments/core/simulate.h"
#include "sim/config/leaf.h"
#include "sim/config/output.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// Values to try for quantities that are 0: of the size that the key would have in a device.
std::vector<double> instead_of_nothing(const std::string& unit) {
  if (unit == "s") return {1e-6, 1e-3};
  if (unit == "B/s" || unit == "FLOP/s") return {1e9, 1e12};
  if (unit == "B") return {1e6, 1e9};
  return {1, 1000};
}

std::vector<std::string> other_numbers(const config::Leaf& leaf) {
  // Shares below 1 are refused at 16 times; a quarter of it is still far.
  const bool share = leaf.type->kind == config::TypeKind::kReal && *leaf.value < 1;
  const std::array<double, 4> factors = {2, 0.5, share ? 4.0 : 16.0, 1.0 / 16};
  const std::string unit = leaf.unit.empty() ? "" : " " + leaf.unit;
  const bool whole = leaf.type->kind == config::TypeKind::kInteger;
  std::vector<double> values;
  if (*leaf.value != 0) {
    for (const double factor : factors) values.push_back(*leaf.value * factor);
  } else if (unit.empty()) {
    values = whole ? std::vector<double>{1, 2, 8, 1024} : std::vector<double>{0.5, 1, 2};
  } else {
    values = instead_of_nothing(leaf.unit);
  }
  std::vector<std::string> texts;
  for (const double value : values) {
    const double written = whole ? std::nearbyint(value) : value;
    if (written != *leaf.value) texts.push_back(print_number(written) + unit);
  }
  return texts;
}

}  // namespace

bool is_label(std::string_view path) {
  constexpr std::array<std::string_view, 7> kLabels = {"name",
                                                       "model.model",
                                                       "model.source",
                                                       "system.system",
                                                       "system.name",
                                                       "system.accelerator.accelerator",
                                                       "system.accelerator.name"};
  constexpr std::string_view kSource = ".source";
  if (std::ranges::find(kLabels, path) != kLabels.end()) return true;
  if (path.starts_with("system.remarks.") || path.starts_with("system.installation.") ||
      path.starts_with("system.accelerator.approximations.") ||
      path.starts_with("system.accelerator.known_errors.") ||
      path == "system.accelerator.architecture" || path == "system.accelerator.year")
    return true;
  return path.size() > kSource.size() && path.ends_with(kSource);
}

std::vector<std::string> other_values(const config::Leaf& leaf) {
  switch (leaf.type->kind) {
    case config::TypeKind::kFlag:
      return {leaf.text == "true" ? "false" : "true"};
    case config::TypeKind::kEnum: {
      const config::EnumTable& table = *leaf.type->names;
      std::set<std::int64_t> tried = {config::find_enumerator(table, leaf.text).value_or(-1)};
      std::vector<std::string> names;
      for (const auto& [name, value] : table)  // some values have several names
        if (tried.insert(value).second) names.push_back(name);
      return names;
    }
    case config::TypeKind::kText:
      return {leaf.text + "_"};
    default:
      return leaf.value ? other_numbers(leaf) : std::vector<std::string>();
  }
}

Trials::Trials(const LoadedExperiment& loaded) : loaded_(loaded) {
  result_ = result_of(loaded, replay_, record_);
}

/// All that the result says, without what it repeats of its inputs.
std::string Trials::result_of(const LoadedExperiment& loaded, ReplayStandIn& replay,
                              RunRecord& record) {
  record = simulate(loaded,
                    {.trace = {}, .tiles = &tiles_, .stand_in = &replay, .configuration = false});
  RunRecord result = record;
  result.identity.clear();
  result.name.clear();
  return to_json(result).dump();
}

Trials::Answer Trials::with(const std::string& path, const std::string& text) {
  TriedReplay replay(replay_);
  RunRecord record;
  try {
    config::Diagnostics diagnostics;
    const LoadedExperiment other = load_experiment(loaded_.node, {path + "=" + text}, diagnostics);
    return result_of(other, replay, record) == result_ ? Answer::kSame : Answer::kOther;
  } catch (LeftOut why) {
    return why == LeftOut::kTooLong ? Answer::kTooLong : Answer::kOther;
  } catch (const std::exception&) {
    return Answer::kRefused;  // out of its bounds, or tied to another value
  }
}

Trials::Answer Trials::examine(const config::Leaf& leaf) {
  Answer answer = Answer::kRefused;
  for (const std::string& text : other_values(leaf)) {
    const Answer one = with(leaf.path, text);
    if (one == Answer::kOther) return one;
    // Too long to tell outweighs the same, the same a refusal.
    if (answer != Answer::kTooLong && one != Answer::kRefused) answer = one;
  }
  return answer;
}

Effects Trials::effects() {
  Effects effects;
  for (const config::Leaf& leaf : loaded_.leaves()) {
    if (is_label(leaf.path)) continue;
    const Answer answer = examine(leaf);
    if (answer == Answer::kSame) effects.none.push_back(leaf.path);
    if (answer == Answer::kTooLong) effects.not_examined.push_back(leaf.path);
  }
  return effects;
}

}  // namespace orrery
