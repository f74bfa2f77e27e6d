// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/calibrate.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "models/kernels/calibrated_model.h"
#include "sim/config/diagnostics.h"
#include "sim/config/input_files.h"
#include "validation/calibration/cross_validation.h"
#include "validation/calibration/errors.h"
#include "validation/calibration/fit.h"
#include "validation/calibration/operator_kernels.h"
#include "validation/calibration/row_ratios.h"
#include "validation/calibration/row_rules.h"

namespace orrery {
namespace {

/// Digits that a value keeps in the file: more than its standard error ever tells.
constexpr int kDigits = 6;
/// A fit on fewer rows, or judged by fewer, says little about a class of kernels.
constexpr std::size_t kFewestFitted = 30, kFewestHeldOut = 8;
/// More rows hardly move a fit of some twenty parameters, and take minutes; errors are stated on
/// all.
constexpr std::size_t kMostFitted = 2500;
/// Rows of one precision whose ratios a file keeps. Products vary in three dimensions and with
/// every tile that a library has, decode in five and with three kernels; on H200, 9,000 instead of
/// 5,000 lower the held-out error of products by 0.15 %.
constexpr std::size_t kMostRatios = 3000, kMostDecodeRatios = 6000, kMostGemmRatios = 9000;

std::size_t most_ratios(const CalibrationInput& input) {
  if (input.table.kind == OperatorTableKind::kGemm) return kMostGemmRatios;
  return input.table.kind == OperatorTableKind::kAttentionDecode ? kMostDecodeRatios : kMostRatios;
}

/// Kernels of which only the traffic counts.
bool is_stream(const Kernel& kernel) {
  return kernel.kind == KernelClass::kElementwise || kernel.kind == KernelClass::kSoftmax ||
         kernel.kind == KernelClass::kNormalization;
}

/// Whether rows with a kernel can tell a parameter at all.
bool is_told(const Kernel& kernel, bool stream, const std::string& parameter) {
  if (parameter == "memory_efficiency" || parameter == "launch") return true;
  if (stream) return parameter == "write_cost" || parameter == "turnaround";
  if (parameter == "matrix_efficiency" || parameter == "exponent")
    return kernel.kind != KernelClass::kQuantize;
  return parameter != "vector_efficiency" && parameter != "write_cost" && parameter != "turnaround";
}

/// What a table tells about its kernels, but for what is known already. Quantisation comes with
/// every narrow GEMM, so that only the sum of the two launches is told: a GEMM that needs none, of
/// the same table, tells its own first.
std::vector<std::string> free_parameters(const std::string& model,
                                         const AcceleratorConfig& accelerator,
                                         const std::vector<FitRow>& rows, const KernelFit& known) {
  std::vector<std::string> free;
  const std::vector<Kernel>& kernels = rows.front().kernels;
  for (const Kernel& kernel : kernels) {
    const bool stream = is_stream(kernel);
    if (stream && kernels.size() > 1) continue;  // beside what the row is about
    const FamilyOf of = family_of(model, kernel);
    for (std::size_t i = 0; i < of.family->parameters().size(); ++i) {
      const ParameterInfo& info = of.family->parameters()[i];
      const std::string name = of.group + "." + info.name;
      if (!info.fitted || !is_told(kernel, stream, info.name) || known.parameters.contains(name) ||
          std::find(free.begin(), free.end(), name) != free.end() ||
          !moves(*of.family, i, kernel.kind, rows, accelerator))
        continue;
      free.push_back(name);
    }
  }
  return free;
}

/// What one more empty kernel of a graph costs, where it was measured: the launch of streams.
void measure_launch(const AcceleratorConfig& accelerator,
                    const std::vector<CalibrationInput>& inputs, KernelFit& fit) {
  constexpr std::int64_t kManyKernels = 100;
  std::vector<double> times;
  for (const CalibrationInput& input : inputs) {
    if (input.table.kind != OperatorTableKind::kLaunch) continue;
    for (const OperatorRow& row : input.table.rows)
      if (input.table.systems[row.system] == accelerator.id && row.test == "graph" &&
          row.kernel == "empty" && row.kernels >= kManyKernels)
        times.push_back(row.latency_us);
    if (times.empty()) continue;
    fit.measurements.push_back(input.file.file);
    std::sort(times.begin(), times.end());
    fit.parameters["stream.launch"] = {times[times.size() / 2], "us",
                                       (times.back() - times.front()) / 2,
                                       ParameterProvenance::kMeasured};
  }
}

/// What earlier fits have told: the launch of the matrix kernel, and of fp8 what its tiles wait
/// for, where a wide format of the same table has told it, and the memory's share for row kernels,
/// where the stream benchmark has.
void keep_known(const KernelFits& fits, const FittedRows& rows, KernelFit& fit) {
  for (const KernelFit& other : fits) {
    if (fit.table != "row_kernels" || other.table != "hbm_stream") continue;
    fit.parameters = other.parameters;
    fit.parameters.erase("stream.launch");
  }
  const std::vector<Kernel>& kernels = rows.fitted.front().kernels;
  if (kernels.front().kind != KernelClass::kQuantize) return;
  // One scale for a tensor takes several kernels, whose time a product's waits would take over: on
  // a B200 5 us until it is filled, of a kernel that takes 2.2 us in bf16.
  std::vector<std::string> shared = {"launch"};
  if (fit.precision == Precision::kFp8) shared.insert(shared.end(), {"fill", "memory_latency"});
  for (const KernelFit& other : fits) {
    if (other.table != fit.table || other.precision != Precision::kBf16) continue;
    for (const std::string& name : shared) {
      const auto known = other.parameters.find(to_string(kernels.at(1).kind) + ("." + name));
      if (known != other.parameters.end()) fit.parameters[known->first] = known->second;
    }
  }
}

void widen(std::vector<std::int64_t>& range, std::int64_t value) {
  if (range.empty()) range = {value, value};
  range[0] = std::min(range[0], value);
  range[1] = std::max(range[1], value);
}

std::map<KernelClass, ShapeRange> shapes_of(const std::vector<FitRow>& rows) {
  std::map<KernelClass, ShapeRange> shapes;
  for (const FitRow& row : rows) {
    for (const Kernel& kernel : row.kernels) {
      if (is_stream(kernel) && row.kernels.size() > 1) continue;
      ShapeRange& range = shapes[kernel.kind];
      widen(range.batch, kernel.batch);
      widen(range.m, kernel.m);
      widen(range.n, kernel.n);
      widen(range.k, kernel.k);
    }
  }
  return shapes;
}

void round_values(KernelFit& fit) {
  for (auto& [name, parameter] : fit.parameters) {
    parameter.value = rounded(parameter.value, kDigits);
    parameter.standard_error = rounded(parameter.standard_error, kDigits);
  }
  for (auto& row : fit.covariance)
    for (double& value : row) value = rounded(value, kDigits);
}

std::vector<Comparison> compare(const KernelModel& model, const AcceleratorConfig& accelerator,
                                const std::vector<FitRow>& rows) {
  const auto prices = model.on(accelerator);
  std::vector<Comparison> comparisons;
  comparisons.reserve(rows.size());
  for (const FitRow& row : rows)
    comparisons.push_back({predicted_us(*prices, row), row.measured_us});
  return comparisons;
}

/// Errors of the fit alone, then of the fit with its ratios.
void judge(Calibration alone, const AcceleratorConfig& accelerator, const FittedRows& rows,
           KernelFit& fit) {
  fit.residuals = {{}};
  alone.fits = {fit};
  alone.fits.front().ratios = {};
  fit.structure_error =
      rounded(summarise(compare(CalibratedModel(alone), accelerator, rows.held_out)), kDigits);
  alone.fits = {fit};
  const CalibratedModel model(alone);
  const auto held_out = compare(model, accelerator, rows.held_out);
  fit.fit_error = rounded(summarise(compare(model, accelerator, rows.fitted)), kDigits);
  fit.held_out_error = rounded(summarise(held_out), kDigits);
  fit.residuals = rounded(residual_classes(held_out), kDigits);
}

/// Each model by a fit of the others. Where the hash of their names leaves none out, that is also
/// what residuals and errors are told by.
void judge_models(const Calibration& calibration, const AcceleratorConfig& accelerator,
                  const std::vector<std::string>& free, const FittedRows& rows, std::size_t ratios,
                  KernelFit& fit) {
  std::vector<FitRow> all = rows.fitted;
  all.insert(all.end(), rows.held_out.begin(), rows.held_out.end());
  const auto models = leave_models_out(calibration, accelerator, fit, free, all, ratios);
  fit.whole_model_error = rounded(summarise(models), kDigits);
  if (!rows.held_out.empty()) return;
  fit.held_out_error = fit.whole_model_error;
  fit.residuals = rounded(residual_classes(models), kDigits);
}

struct LibraryRule {
  std::string name;  ///< name in fits: "attention_decode.most_together"
  const ParameterInfo* info;
};

/// The rule of a library that the kernels of these rows follow.
std::optional<LibraryRule> library_rule(const std::string& model, const FitRow& row) {
  for (const Kernel& kernel : row.kernels) {
    const FamilyOf of = family_of(model, kernel);
    for (const ParameterInfo& info : of.family->parameters())
      if (!info.choices.empty()) return LibraryRule{of.group + "." + info.name, &info};
  }
  return {};
}

/// Fits with each choice of a rule and keeps the best; of equal ones the first, which priors have,
/// and which a fit need not say.
void fit_choices(const std::string& model, const std::vector<FitRow>& rows,
                 const AcceleratorConfig& accelerator, const std::vector<std::string>& free,
                 const LibraryRule& rule, KernelFit& fit) {
  const KernelFit known = fit;
  double least = std::numeric_limits<double>::infinity();
  for (const double choice : rule.info->choices) {
    KernelFit tried = known;
    if (choice != rule.info->choices.front())
      tried.parameters[rule.name] = {choice, rule.info->unit, 0, ParameterProvenance::kFitted};
    fit_parameters(model, rows, accelerator, free, tried);
    const double deviation = mean_deviation(model, rows, accelerator, tried);
    if (deviation >= least) continue;
    least = deviation;
    fit = std::move(tried);
  }
}

CalibratedRates rates_of(const AcceleratorConfig& accelerator) {
  CalibratedRates rates;
  for (const auto& [precision, rate] : accelerator.compute.matrix)
    rates.matrix[precision] = rate.value;
  rates.memory = accelerator.memory.bandwidth.value;
  rates.units = accelerator.compute.units.value;
  rates.clock = accelerator.compute.clock.value;
  if (accelerator.cache) rates.cache = accelerator.cache->capacity.value;
  rates.power = accelerator.power.cap();
  return rates;
}

}  // namespace

MeasurementFile measurement_file(const std::string& path, const std::string& date) {
  MeasurementFile file;
  file.file = std::filesystem::path(path).filename().string();
  file.sha256 = config::input_files().sha256(path);
  file.date = date;
  return file;
}

CalibrationInput read_calibration_input(const std::string& path, const std::string& date,
                                        const std::vector<RowCondition>& where) {
  return {read_operator_table(path, where), measurement_file(path, date)};
}

namespace {

/// In the order of kinds, so that what one table tells is known to the next, whatever the order of
/// the files.
std::vector<const CalibrationInput*> ordered(const std::vector<CalibrationInput>& inputs) {
  std::vector<const CalibrationInput*> order;
  order.reserve(inputs.size());
  for (const CalibrationInput& input : inputs) order.push_back(&input);
  std::stable_sort(order.begin(), order.end(),
                   [](auto a, auto b) { return a->table.kind < b->table.kind; });
  return order;
}

bool is_wanted(const CalibrationInput& input, const std::string& table) {
  const auto& only = input.only;
  return only.empty() || std::find(only.begin(), only.end(), table) != only.end();
}

std::int64_t rows_of_device(const AcceleratorConfig& accelerator, const OperatorTable& table) {
  return std::count_if(table.rows.begin(), table.rows.end(), [&](const OperatorRow& row) {
    return table.systems[row.system] == accelerator.id;
  });
}

void fit_rows(const Calibration& calibration, const AcceleratorConfig& accelerator,
              const std::vector<CalibrationInput>& inputs, const CalibrationInput& input,
              const FittedRows& rows, KernelFit& fit) {
  keep_known(calibration.fits, rows, fit);
  if (input.table.kind == OperatorTableKind::kHbmStream) measure_launch(accelerator, inputs, fit);
  const std::vector<FitRow> some = thinned(rows.fitted, kMostFitted);
  const std::vector<std::string> free = free_parameters(calibration.model, accelerator, some, fit);
  if (const auto rule = library_rule(calibration.model, some.front())) {
    fit_choices(calibration.model, some, accelerator, free, *rule, fit);
  } else {
    fit_parameters(calibration.model, some, accelerator, free, fit);
  }
  round_values(fit);
  fit.shapes = shapes_of(rows.fitted);
  fit.ratios = row_ratios(calibration, fit, rows.fitted, accelerator, most_ratios(input));
  judge(calibration, accelerator, rows, fit);
  // Groups of other tables are shapes that many models share, or plans of one.
  if (fit.table == to_string(OperatorTableKind::kMoe))
    judge_models(calibration, accelerator, free, rows, most_ratios(input), fit);
}

/// Whether rows can be fitted, and judged: by those held out, or of experts by whole models.
bool enough(const CalibrationInput& input, const FittedRows& rows) {
  const bool models = input.table.kind == OperatorTableKind::kMoe && rows.held_out.empty() &&
                      groups_of(rows.fitted).size() >= kFewestModels;
  return rows.fitted.size() >= kFewestFitted && (models || rows.held_out.size() >= kFewestHeldOut);
}

/// Fits what is kept; what breaks physics takes the parameters of a sibling.
std::optional<KernelFit> fit_of(const Calibration& calibration,
                                const std::vector<CalibrationInput>& inputs,
                                const CalibrationInput& input, const TablePart& part,
                                const FittedRows& rows, const CalibratedDevices& others) {
  const AcceleratorConfig& accelerator = *calibration.device;
  std::optional<KernelFit> sibling;
  if (!rows.at_fault.empty() && others)
    sibling = sibling_fit(others(), calibration.model, accelerator,
                          table_name(input.table.kind, part), part.precision);
  if (!enough(input, rows) && !sibling) return {};
  KernelFit fit;
  if (enough(input, rows)) {
    fit.table = table_name(input.table.kind, part);
    fit.precision = part.precision;
    fit.measurements = {input.file.file};
    fit_rows(calibration, accelerator, inputs, input, rows, fit);
    if (sibling) borrow(calibration.model, accelerator, rows.at_fault, rows.fitted, *sibling, fit);
  } else {
    fit = *std::move(sibling);
    fit.measurements = {input.file.file};
  }
  round_values(fit);
  return fit;
}

bool same_rates(const CalibratedRates& a, const CalibratedRates& b) {
  return a.matrix == b.matrix && a.memory == b.memory && a.units == b.units && a.clock == b.clock &&
         a.cache == b.cache && a.power == b.power;
}

}  // namespace

Calibration calibrate(const std::string& model, const AcceleratorConfig& accelerator,
                      const std::vector<CalibrationInput>& inputs, const std::string& made_with,
                      const FitProgress& progress, const CalibratedDevices& others) {
  Calibration calibration;
  calibration.id = accelerator.id;
  calibration.accelerator = accelerator.id;
  calibration.model = model;
  calibration.made_with = made_with;
  calibration.rates = rates_of(accelerator);
  calibration.device = accelerator;
  for (const CalibrationInput* input : ordered(inputs)) {
    MeasurementFile file = input->file;
    file.rows = rows_of_device(accelerator, input->table);
    for (const auto& [part, rows] : fitted_rows(accelerator, input->table)) {
      const std::string name = table_name(input->table.kind, part);
      if (!is_wanted(*input, name)) continue;
      for (const auto& [rule, count] : rows.left_out)
        calibration.left_out.push_back({name, part.precision, to_string(rule), count});
      if (enough(*input, rows))
        progress(name + " " + to_string(part.precision), std::min(rows.fitted.size(), kMostFitted));
      if (auto fit = fit_of(calibration, inputs, *input, part, rows, others))
        calibration.fits.push_back(*std::move(fit));
    }
    if (file.rows > 0) calibration.measurements.push_back(std::move(file));
  }
  if (calibration.fits.empty())
    throw config::ConfigError("no table has enough rows of '" + accelerator.id + "' to fit");
  return calibration;
}

Calibration renewed(Calibration known, const Calibration& made) {
  if (known.model != made.model || !same_rates(known.rates, made.rates))
    throw config::ConfigError("calibration '" + known.id +
                              "' was made by another model or at other rates: make all of it anew");
  std::set<std::string> tables;
  for (const KernelFit& fit : made.fits) {
    tables.insert(fit.table);
    const auto same = std::find_if(known.fits.begin(), known.fits.end(), [&](const KernelFit& f) {
      return f.table == fit.table && f.precision == fit.precision;
    });
    if (same == known.fits.end()) {
      known.fits.push_back(fit);
    } else {
      *same = fit;
    }
  }
  std::erase_if(known.left_out,
                [&](const LeftOutRows& rows) { return tables.contains(rows.table); });
  known.left_out.insert(known.left_out.end(), made.left_out.begin(), made.left_out.end());
  for (const MeasurementFile& file : made.measurements) {
    std::erase_if(known.measurements,
                  [&](const MeasurementFile& f) { return f.file == file.file; });
    known.measurements.push_back(file);
  }
  for (const std::string& table : tables) known.made_with += "; " + table + " by " + made.made_with;
  return known;
}

}  // namespace orrery
