// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/calibration.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "sim/config/input_files.h"
#include "sim/config/load.h"
#include "sim/machine/precision_names.h"

namespace orrery {

using config::at_least;
using config::between;
using config::Schema;

namespace {

constexpr int kRatioColumn = 7;  // at which lines of a text block in a fit begin

}  // namespace

const char* to_string(ParameterProvenance provenance) {
  return config::EnumNames<ParameterProvenance>::values[static_cast<std::size_t>(provenance)]
      .second;
}

const Schema<CalibratedParameter>& CalibratedParameter::schema() {
  using C = CalibratedParameter;
  static const auto schema =
      Schema<C>("parameter", "a parameter of a kernel model")
          .required("value", &C::value, "number in the unit beside it", between(0, 1e6))
          .required("unit", &C::unit, "1 or us")
          .optional("standard_error", &C::standard_error,
                    "standard error in that unit, by shape group", at_least(0))
          .required("provenance", &C::provenance, "what the value rests on");
  return schema;
}

const Schema<MeasurementFile>& MeasurementFile::schema() {
  using C = MeasurementFile;
  static const auto schema =
      Schema<C>("measurement", "a file of measurements")
          .required("file", &C::file, "name of the file")
          .required("sha256", &C::sha256, "SHA-256 of the file's bytes")
          .required("date", &C::date, "date of the measurement, or of the fit")
          .optional("source", &C::source, "who measured, and with what")
          .required("rows", &C::rows, "rows of this device", at_least(0));
  return schema;
}

const Schema<ErrorSummary>& ErrorSummary::schema() {
  using C = ErrorSummary;
  static const auto schema =
      Schema<C>("errors", "predicted against measured")
          .required("count", &C::count, "number of rows", at_least(0))
          .required("mape", &C::mape, "mean absolute error", at_least(0))
          .required("median", &C::median, "median absolute error", at_least(0))
          .required("p90", &C::p90, "ninth decile of the absolute error", at_least(0))
          .required("bias", &C::bias, "mean signed error")
          .required("worst", &C::worst, "signed error of the worst row");
  return schema;
}

const Schema<LeftOutRows>& LeftOutRows::schema() {
  using C = LeftOutRows;
  static const auto schema =
      Schema<C>("left_out", "rows that a written rule left out")
          .required("table", &C::table, "gemm, attention_prefill, ...")
          .required("precision", &C::precision, "number format of the matrix operands")
          .required("rule", &C::rule, "rule that left them out")
          .required("rows", &C::rows, "number of rows", at_least(1));
  return schema;
}

const Schema<ResidualClass>& ResidualClass::schema() {
  using C = ResidualClass;
  static const auto schema =
      Schema<C>("residuals", "log(measured / predicted) of rows that were not fitted")
          .optional("below_us", &C::below_us, "predictions below this; 0: all others", at_least(0))
          .required("count", &C::count, "number of rows", at_least(0))
          .required("median", &C::median, "median of the logarithm")
          .required("sigma", &C::sigma, "spread of the logarithm", at_least(0));
  return schema;
}

const Schema<ShapeRange>& ShapeRange::schema() {
  using C = ShapeRange;
  static const auto schema =
      Schema<C>("shapes", "least and greatest dimension that was fitted")
          .required("batch", &C::batch, "independent products or sequences times heads",
                    at_least(0))
          .required("m", &C::m, "rows, or query length", at_least(0))
          .required("n", &C::n, "columns, or key length", at_least(0))
          .required("k", &C::k, "summed dimension, or width of a head", at_least(0))
          .check(
              "each dimension needs two numbers, the smaller one first",
              [](const C& c) {
                for (const auto* range : {&c.batch, &c.m, &c.n, &c.k})
                  if (range->size() != 2 || (*range)[0] > (*range)[1]) return false;
                return true;
              },
              "batch");
  return schema;
}

namespace {

bool covariance_is_square(const KernelFit& fit) {
  if (fit.covariance.size() != fit.fitted.size()) return false;
  for (const auto& row : fit.covariance)
    if (row.size() != fit.fitted.size()) return false;
  return true;
}

bool fitted_parameters_exist(const KernelFit& fit) {
  for (const std::string& name : fit.fitted)
    if (!fit.parameters.contains(name)) return false;
  return true;
}

}  // namespace

const Schema<KernelFit>& KernelFit::schema() {
  using C = KernelFit;
  static const auto schema =
      Schema<C>("fit", "what one set of measurements tells about kernels")
          .required("table", &C::table, "what was measured: gemm, attention_prefill, ...")
          .required("precision", &C::precision, "number format of the matrix operands")
          .required("measurements", &C::measurements, "files, by name")
          .required("parameters", &C::parameters, "fitted or prior values by kernel class and name")
          .optional("fitted", &C::fitted, "the order of the covariance")
          .optional("covariance", &C::covariance,
                    "covariance of the logarithms of the fitted parameters")
          .required("shapes", &C::shapes, "what was fitted, by kernel class")
          .required("fit_error", &C::fit_error, "errors on the shape groups that were fitted")
          .required("held_out_error", &C::held_out_error, "errors on the other shape groups")
          .optional("structure_error", &C::structure_error,
                    "errors of the parameters alone on the other shape groups")
          .optional("whole_model_error", &C::whole_model_error,
                    "errors on each model of the table, by a fit of the others")
          .optional(
              "sibling", &C::sibling,
              "the device that gave, by data sheet, the parameters that no row tells; absent: none")
          .required("residuals", &C::residuals,
                    "spread on the other shape groups, by predicted time")
          .optional("measured_ratios", &C::measured_ratios,
                    "measured over predicted at fitted shapes; lines of numbers, see the README of "
                    "configs/calibrations")
          .check("must name parameters of this fit", fitted_parameters_exist, "fitted")
          .check("must have a row and a column for each name of 'fitted'", covariance_is_square,
                 "covariance")
          .check(
              "at least one class of residuals is needed",
              [](const C& c) { return !c.residuals.empty(); }, "residuals");
  return schema;
}

const Schema<CalibratedRates>& CalibratedRates::schema() {
  using C = CalibratedRates;
  static const auto schema =
      Schema<C>("rates", "what efficiencies are shares of, per package")
          .required("matrix", &C::matrix, "dense peak by precision", config::positive())
          .required("memory", &C::memory, "memory bandwidth", config::positive())
          .optional("units", &C::units, "units of the package; 0: not recorded", at_least(0))
          .optional("clock", &C::clock, "clock of the units; 0: not recorded", at_least(Hertz(0)))
          .optional("cache", &C::cache, "capacity of the last cache; 0: not recorded, or none",
                    at_least(Bytes(0)))
          .optional("power", &C::power, "power cap; 0: not recorded", at_least(Watts(0)));
  return schema;
}

const Schema<Calibration>& Calibration::schema() {
  using C = Calibration;
  static const auto schema =
      Schema<C>("calibration", "parameters of the kernel model of one device, from measurements")
          .named("calibration", &C::id)
          .required("accelerator", &C::accelerator, "the configuration it was fitted with")
          .required("model", &C::model, "kernel model that the parameters belong to")
          .required("made_with", &C::made_with, "program version and date")
          .required("rates", &C::rates, "what efficiencies are shares of")
          .required("measurements", &C::measurements, "files that it rests on")
          .optional("left_out", &C::left_out, "rows that a written rule left out")
          .required("fits", &C::fits, "parameters by what was measured");
  return schema;
}

namespace {

/// A calibration file without its texts of measured ratios, nineteen twentieths of it, which take
/// the YAML parser ten times as long as parse_ratios(). Empty lines stand in their place.
struct Abridged {
  std::string file;
  std::map<int, std::string>
      texts;  ///< blocks of text by the line of their key, as a YAML parser reads them
};

/// Takes out what is written as `orrery calibrate` writes it; other spellings stay.
Abridged abridge(const std::string& file) {
  constexpr std::string_view kKey = "    measured_ratios: |";
  constexpr std::string_view kEmpty = "    measured_ratios: ''";
  constexpr std::string_view kIndent = "      ";
  static_assert(kIndent.size() + 1 == kRatioColumn);
  Abridged abridged;
  std::string* text = nullptr;
  int number = 1;
  for (std::string_view rest = file; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text != nullptr && line.starts_with(kIndent)) {
      text->append(line.substr(kIndent.size())).append("\n");
      abridged.file += '\n';
      continue;
    }
    const bool key = line == kKey;
    text = key ? &abridged.texts[number] : nullptr;
    abridged.file.append(key ? kEmpty : line).append("\n");
  }
  return abridged;
}

/// Turns the text of a fit into its ratios.
void take_ratios(const config::Node& file, std::size_t index, Abridged& abridged, KernelFit& fit) {
  const config::Node* key = file.at_path("fits." + std::to_string(index) + ".measured_ratios");
  if (key == nullptr) return;
  config::Location first = key->where();
  const auto text = abridged.texts.find(first.line);
  if (text != abridged.texts.end()) fit.measured_ratios = std::move(text->second);
  ++first.line;  // a text block begins below its key
  first.column = kRatioColumn;
  fit.ratios = {std::move(fit.measured_ratios), std::move(first), fit.precision};
  fit.measured_ratios.clear();
}

/// Reads the device of a calibration from the library.
void read_device(Calibration& calibration, const config::Library& library,
                 config::Diagnostics& diagnostics) {
  if (calibration.accelerator.empty()) return;
  const std::string path = library.locate("accelerators", calibration.accelerator, "");
  if (!std::filesystem::exists(path)) return;
  const config::Record& record = AcceleratorConfig::schema().record();
  const config::Node node = config::load_file(path, diagnostics, library, "accelerators");
  diagnostics.throw_if_errors();
  calibration.device_configuration = config::complete(node, record, diagnostics, library);
  AcceleratorConfig device;
  config::fill(&device, calibration.device_configuration, record, diagnostics);
  diagnostics.throw_if_errors();
  calibration.device = at_fitted_rates(std::move(device), calibration.rates);
}

}  // namespace

AcceleratorConfig at_fitted_rates(AcceleratorConfig device, const CalibratedRates& rates) {
  device.memory.bandwidth.value = rates.memory;
  for (const auto& [precision, rate] : rates.matrix) device.compute.matrix[precision].value = rate;
  return device;
}

Calibration load_calibration(const std::string& path, const config::Library& library,
                             RatiosRead ratios) {
  config::Diagnostics diagnostics;
  const config::FileText file = config::input_files().read(path);
  Abridged abridged = abridge(file.text);
  const config::Node node = file.fault.empty()
                                ? config::load_text(abridged.file, path, diagnostics, library)
                                : config::load_file(path, diagnostics, library);
  diagnostics.throw_if_errors();
  Calibration calibration = config::read<Calibration>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  for (std::size_t i = 0; i < calibration.fits.size(); ++i)
    take_ratios(node, i, abridged, calibration.fits[i]);
  if (ratios == RatiosRead::kNow)
    for (const KernelFit& fit : calibration.fits) fit.ratios.all();
  read_device(calibration, library, diagnostics);
  return calibration;
}

}  // namespace orrery
