// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "models/kernels/calibrated_model.h"
#include "models/kernels/device/roofline.h"
#include "sim/app/cli/measured_devices.h"
#include "sim/app/cli/progress.h"
#include "sim/app/cli/validate.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/pricing/pricing.h"
#include "sim/app/questions/base/verb.h"
#include "sim/results/json_table.h"
#include "validation/calibration/error_json.h"
#include "validation/calibration/errors.h"
#include "validation/calibration/operator_kernels.h"
#include "validation/calibration/row_rules.h"

namespace orrery {
namespace {

struct OperatorsQuestion {
  std::vector<std::string> files;
  std::string rows;  ///< path for a CSV of rows and predictions, or empty
  KernelModels models;
  std::vector<std::string> where;  ///< conditions that rows meet: "version=0.24.0"
  bool held_out = false;           ///< only shape groups that fits leave out

  void take(Options& options) {
    options.positionals("FILE", files, "tables (CSV, plain or gzip)");
    options.option("--rows", rows, "write the rows with predictions to this CSV");
    options.option("--calibration", models.calibration,
                   "auto (default: the device's, and of rows of an engine also its own), none "
                   "(priors), a calibration of the library, or a path");
    options.option("--baseline", models.baseline,
                   "a calibration to compare with, or a folder of them by device (such as of "
                   "calibrate --model roofline)");
    options.choice("--fidelity", models.fidelity, "auto (default), closed or tile",
                   {"auto", "closed", "tile"});
    options.options("--where", where, kWhereHelp);
    options.flag("--held-out", held_out, "only shape groups that no fit has seen");
  }
  Answer answer() const;
};

constexpr double kMicro = 1e6;

/// One row with what each model says, in microseconds.
struct Prediction {
  double model = 0, baseline = 0, prior = 0, textbook = 0;
  Provenance provenance = Provenance::kMeasured;
  Bound bound = Bound::kMemory;
  Fidelity fidelity = Fidelity::kClosed;  ///< fidelity of the longest kernel, as the bound
};

/// Rows of one line of the report.
struct Group {
  std::vector<Comparison> model, baseline, prior, textbook;
  std::size_t extrapolated = 0;
  double worst_error = 0;  ///< largest absolute error of the model
  std::string worst_row;   ///< row of that error, as its file has it
};
/// Rows that belong together.
struct GroupKey {
  std::string table, system;
  MeasuredEngine engine;
  std::string precision;
  std::string of;  ///< class of the rows ("all", a size, or a name of its own), or a rule
  auto operator<=>(const GroupKey&) const = default;
};
using Groups = std::map<GroupKey, Group>;

Prediction predict(const MeasuredDevice& device, const std::vector<Kernel>& kernels) {
  static const CalibratedModel priors;
  Prediction prediction;
  Picoseconds total = 0, baseline = 0, prior = 0, longest = 0;
  const auto by = [&device](const KernelModel& model, const Kernel& kernel) {
    return in_step(kernel, device.accelerator, model.cost(kernel, device.accelerator));
  };
  for (const Kernel& kernel : kernels) {
    const KernelCost cost = by(*device.model, kernel);
    total += cost.duration;
    prior += by(priors, kernel).duration;
    if (device.baseline) baseline += by(*device.baseline, kernel).duration;
    prediction.textbook += textbook_roofline(kernel, device.accelerator);
    // The weakest counts. Streams beside the kernel that a row is about have no table of their own.
    if (kernel.kind != KernelClass::kElementwise)
      prediction.provenance = std::max(prediction.provenance, cost.provenance);
    if (cost.duration > longest) {
      longest = cost.duration;
      prediction.bound = cost.bound;
      prediction.fidelity = cost.fidelity;
    }
  }
  prediction.model = to_seconds(total).base() * kMicro;
  prediction.baseline = to_seconds(baseline).base() * kMicro;
  prediction.prior = to_seconds(prior).base() * kMicro;
  return prediction;
}

/// Classes beside the sizes that people ask for by name.
std::vector<std::string> extra_classes(OperatorTableKind kind, const OperatorRow& row) {
  std::vector<std::string> classes = {"all"};
  if (kind == OperatorTableKind::kGemm && row.m <= 64) classes.emplace_back("m <= 64");
  if (kind == OperatorTableKind::kAttentionDecode && row.heads <= 16 * row.kv_heads)
    classes.emplace_back("heads/kv_heads <= 16");
  if (kind == OperatorTableKind::kAttentionPrefill && row.latency_us > 1000)
    classes.emplace_back("> 1 ms");
  if (kind == OperatorTableKind::kAttentionPrefill && row.latency_us < 100)
    classes.emplace_back("< 0.1 ms");
  if (kind == OperatorTableKind::kMoe) classes.push_back(row.distribution);
  if (kind == OperatorTableKind::kRecurrent) classes.push_back(row.kernel);
  if (kind == OperatorTableKind::kSparseParts)
    classes.push_back(row.operation + (row.score_mode.empty() ? "" : ", " + row.score_mode));
  if (is_block(kind))
    classes.push_back(row.compress_ratio == 0
                          ? row.model
                          : fmt::format("{} 1:{}", row.model, row.compress_ratio));
  return classes;
}

std::string precision_label(const OperatorRow& row) {
  if (!row.gemm_precision.empty())
    return fmt::format("{}, {} KV{}", row.gemm_precision, row.kv_precision,
                       row.precision == "bf16" ? "" : ", " + row.precision + " scores");
  if (!row.state_precision.empty() && row.state_precision != row.precision)
    return fmt::format("{}, {} states", row.precision, row.state_precision);
  if (row.kv_precision.empty() || row.kv_precision == row.precision) return row.precision;
  return fmt::format("{}, {} KV", row.precision, row.kv_precision);
}

/// Precisions that are judged together as well: of products the two common ones, of attention all.
std::string pooled_label(OperatorTableKind kind, const OperatorRow& row) {
  using enum OperatorTableKind;
  if (kind == kGemm) return row.precision == "bf16" || row.precision == "fp8" ? "bf16 + fp8" : "";
  const std::set<OperatorTableKind> all = {kAttentionPrefill, kAttentionDecode, kMlaPrefill,
                                           kMlaDecode,        kRecurrent,       kBlockPrefill,
                                           kBlockDecode};
  return all.contains(kind) ? "all" : "";
}

void add(Groups& groups, GroupKey key, const Prediction& prediction, const OperatorRow& row) {
  Group& group = groups[std::move(key)];
  group.model.push_back({prediction.model, row.latency_us});
  if (prediction.baseline > 0) group.baseline.push_back({prediction.baseline, row.latency_us});
  group.prior.push_back({prediction.prior, row.latency_us});
  group.textbook.push_back({prediction.textbook, row.latency_us});
  if (prediction.provenance == Provenance::kExtrapolated) ++group.extrapolated;
  const double error = std::abs(group.model.back().error());
  if (error < group.worst_error) return;
  group.worst_error = error;
  group.worst_row = row.text;
}

struct Validation {
  Groups groups;
  std::map<std::string, std::size_t> left_out;  ///< rows by reason
  /// Rows that a written rule leaves out.
  std::map<GroupKey, std::size_t> by_rule;
  /// Calibrations of other devices by system: their parameters, transferred by data sheet.
  std::map<std::string, std::string> transferred;
  /// Calibrations of engines by "vllm 0.24.0 on h200_sxm".
  std::map<std::string, std::string> of_engines;
};

/// Why a row has no price.
std::string why_unknown(const OperatorRow& row, const std::string& system) {
  if (row.model.empty()) return fmt::format("no model of {} on {}", row.precision, system);
  const std::string fault = block_fault(row);
  return fault.empty() ? fmt::format("no model of {} on {}", row.gemm_precision, system) : fault;
}

void validate_table(const OperatorTable& table, const OperatorsQuestion& arguments,
                    PredictionRows& rows_file, Validation& validation) {
  MeasuredDevices devices(table, arguments.models);
  rows_file.header(table.header);
  const std::string name = to_string(table.kind);
  const std::vector<RowRule> rules = row_rules(
      table, [&devices](const std::string& system) { return devices.accelerator(system); });
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const OperatorRow& row = table.rows[i];
    const std::string& system = table.systems[row.system];
    const MeasuredEngine& engine = table.engines[row.engine];
    const MeasuredDevice* found = devices.of(row.system, row.engine);
    if (found == nullptr) {
      ++validation.left_out["no accelerator is called '" + system + "'"];
      continue;
    }
    const MeasuredDevice& device = *found;
    const auto precision = row_precision(table.kind, row);
    if (!precision || !find_precision(device.accelerator.compute.matrix, *precision)) {
      ++validation.left_out[name + ": " + why_unknown(row, system)];
      continue;
    }
    if (arguments.held_out && !is_held_out(shape_group(table.kind, row))) continue;
    if (!device.transferred.empty()) validation.transferred[system] = device.transferred;
    if (device.has_engine)
      validation.of_engines[engine.name() + " on " + system] = device.model->calibration();
    if (rules[i] != RowRule::kKept) {
      ++validation.by_rule[{name, system, engine, precision_label(row), to_string(rules[i])}];
      continue;
    }
    const Prediction prediction =
        predict(device, operator_kernels(table.kind, row, *precision, device.software));
    rows_file.row(row.text, {predicted_text(prediction.model), to_string(prediction.provenance),
                             to_string(prediction.bound), to_string(prediction.fidelity)});
    for (const std::string& label : {precision_label(row), pooled_label(table.kind, row)}) {
      if (label.empty()) continue;
      std::vector<std::string> classes = extra_classes(table.kind, row);
      classes.emplace_back(size_class(row.latency_us));
      for (const std::string& of : classes)
        add(validation.groups, {name, system, engine, label, of}, prediction, row);
    }
  }
}

/// "all" first, then sizes from small to large, then the rest by name.
int class_order(const std::string& name) {
  if (name == "all") return 0;
  const auto& sizes = size_classes();
  const auto at = std::ranges::find(sizes, name);
  return at == sizes.end() ? 100 : 1 + static_cast<int>(at - sizes.begin());
}

std::vector<Groups::const_iterator> ordered(const Groups& groups) {
  std::vector<Groups::const_iterator> order;
  for (auto it = groups.begin(); it != groups.end(); ++it) order.push_back(it);
  std::ranges::stable_sort(order, [](auto a, auto b) {
    const auto head = [](auto it) {
      const GroupKey& key = it->first;
      return std::tie(key.table, key.system, key.engine, key.precision);
    };
    if (head(a) != head(b)) return head(a) < head(b);
    return class_order(a->first.of) < class_order(b->first.of);
  });
  return order;
}

nlohmann::ordered_json head_of(const GroupKey& key, const char* of) {
  nlohmann::ordered_json head = {{"table", key.table}, {"system", key.system}};
  if (!key.engine.framework.empty()) {
    head["framework"] = key.engine.framework;
    head["version"] = key.engine.version;
  }
  head["precision"] = key.precision;
  head[of] = key.of;
  return head;
}

/// Lines before the table, and behind it.
std::pair<std::string, std::string> notes_of(const Validation& validation) {
  std::string before,
      behind =
          "MAPE of baselines: baseline, the calibration of --baseline; priors, the p-norm roofline "
          "without a calibration; textbook, FLOPs or bytes at the peak\n";
  for (const auto& [system, calibration] : validation.transferred)
    before += fmt::format(
        "{0}: parameters of '{1}', transferred by data sheet; no row of {0} was fitted\n", system,
        calibration);
  for (const auto& [of, calibrations] : validation.of_engines)
    behind += fmt::format("{}: calibrations {}\n", of, calibrations);
  for (const auto& [key, count] : validation.by_rule)
    behind += fmt::format("{} {} {}{}{}: left out by the written rule: {} rows, {}\n", key.table,
                          key.system, key.engine.name(), key.engine.framework.empty() ? "" : " ",
                          key.precision, count, key.of);
  return {before, behind + left_out_lines(validation.left_out)};
}

nlohmann::ordered_json entry_of(const GroupKey& key, const Group& group) {
  nlohmann::ordered_json entry = head_of(key, "class");
  entry.update(to_json(summarise(group.model)));
  entry["worst_row"] = group.worst_row;
  entry["extrapolated"] = group.extrapolated;
  entry["baselines"] = {{"priors", to_json(summarise(group.prior))},
                        {"textbook", to_json(summarise(group.textbook))}};
  if (!group.baseline.empty()) entry["baselines"]["baseline"] = to_json(summarise(group.baseline));
  return entry;
}

bool of_engines(const Groups& groups) {
  return std::ranges::any_of(
      groups, [](const auto& group) { return !group.first.engine.framework.empty(); });
}

Answer answer_of(const Validation& validation) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const auto it : ordered(validation.groups))
    entries.push_back(entry_of(it->first, it->second));
  nlohmann::ordered_json shown = entries;
  for (nlohmann::ordered_json& entry : shown)  // as a share of the rows
    entry["extrapolated"] = entry["extrapolated"].get<double>() / entry["count"].get<double>();
  nlohmann::ordered_json by_rule = nlohmann::ordered_json::array();
  for (const auto& [key, count] : validation.by_rule) {
    by_rule.push_back(head_of(key, "rule"));
    by_rule.back()["rows"] = count;
  }
  const auto [before, behind] = notes_of(validation);
  const std::string engine =
      of_engines(validation.groups) ? "engine = framework | version = version | " : "";
  const Table table = json_table(
      shown,
      "table = table | system = system | " + engine +
          "precision = precision | class = class | n = count count | "
          "MAPE = mape error | median = median error | p90 = p90 error | bias = bias error | "
          "worst = worst error | extrapolated = extrapolated percent | "
          "baseline = baselines.baseline.mape percent | priors = baselines.priors.mape percent | "
          "textbook = baselines.textbook.mape percent");
  return {.parts = {before, table, behind},
          .json = {{"schema", "orrery.operators/1"},
                   {"transferred", validation.transferred},
                   {"calibrations", validation.of_engines},
                   {"entries", std::move(entries)},
                   {"left_out_by_rule", std::move(by_rule)},
                   {"left_out", validation.left_out}}};
}

Answer OperatorsQuestion::answer() const {
  Validation validation;
  PredictionRows rows_file(rows, "predicted_us,provenance,bound,fidelity");
  {
    Progress progress("tables", files.size());
    for (const std::string& file : files) {
      validate_table(read_operator_table(file, row_conditions(where)), *this, rows_file,
                     validation);
      progress.step(file);
    }
  }
  if (validation.groups.empty()) {
    std::string reasons = "no row can be predicted";
    for (const auto& [reason, count] : validation.left_out) reasons += "\n  " + reason;
    throw UsageError(reasons);
  }
  rows_file.commit();
  return answer_of(validation);
}

const RegisterQuestion<OperatorsQuestion> registered_operators("validate operators",
                                                               "tables of measured kernel times");

}  // namespace
}  // namespace orrery
