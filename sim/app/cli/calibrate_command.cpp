// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "models/kernels/parameter_limits.h"
#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/calibrate.h"
#include "sim/app/cli/progress.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/describe/describe.h"
#include "sim/app/sweeps/base/clock.h"
#include "sim/config/input_files.h"
#include "sim/config/load.h"
#include "sim/results/json_table.h"
#include "sim/results/version.h"
#include "sim/units/text.h"
#include "validation/calibration/block_kernels.h"
#include "validation/calibration/calibrate.h"
#include "validation/calibration/error_json.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFolder = "calibrations";

/// The accelerators to fit: those asked for, or all of the tables that the library has.
std::vector<std::string> wanted(const CalibrateArguments& arguments,
                                const std::vector<CalibrationInput>& inputs) {
  if (!arguments.accelerators.empty()) return arguments.accelerators;
  std::set<std::string> systems;
  for (const CalibrationInput& input : inputs)
    systems.insert(input.table.systems.begin(), input.table.systems.end());
  const std::vector<std::string> known = config::default_library().names("accelerators");
  std::vector<std::string> names;
  for (const std::string& system : systems) {
    if (std::ranges::find(known, system) != known.end()) {
      names.push_back(system);
    } else {
      std::cerr << "left out: no accelerator is called '" << system << "'\n";
    }
  }
  if (names.empty()) throw UsageError("the tables have no accelerator of the library");
  return names;
}

std::string fit_name(const KernelFit& fit) {
  return fmt::format("{} {}", fit.table, to_string(fit.precision));
}

double mean(const MeasuredRatios& ratios) {
  double sum = 0;
  for (const MeasuredRatio& ratio : ratios) sum += ratio.ratio;
  return ratios.empty() ? 1 : sum / static_cast<double>(ratios.size());
}

/// How much ratios of the same kernels differ in the mean; everything where they are of others.
double apart(const std::vector<MeasuredRatio>& before, const std::vector<MeasuredRatio>& after) {
  constexpr double kOthers = 1;
  if (before.size() != after.size()) return kOthers;
  double sum = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].shape != after[i].shape) return kOthers;
    sum += std::abs(after[i].ratio / before[i].ratio - 1);
  }
  return before.empty() ? 0 : sum / static_cast<double>(before.size());
}

/// Parameters that are more than two standard errors (or a percent, where there is none) away, and
/// tables of ratios (by their mean) that differ by more than a percent.
Json moves(const Calibration& before, const Calibration& after) {
  Json moved = Json::array();
  for (const KernelFit& fit : after.fits) {
    const auto add = [&](const std::string& parameter, const std::optional<double>& was,
                         double standard_error, double is) {
      moved.push_back({{"fit", fit_name(fit)},
                       {"parameter", parameter},
                       {"was", or_null(was)},
                       {"standard_error", standard_error},
                       {"is", is}});
    };
    const auto old = std::ranges::find_if(before.fits, [&](const auto& other) {
      return other.table == fit.table && other.precision == fit.precision;
    });
    for (const auto& [name, parameter] : fit.parameters) {
      if (old == before.fits.end() || !old->parameters.contains(name)) {
        add(name, std::nullopt, 0, parameter.value);
        continue;
      }
      const CalibratedParameter& was = old->parameters.at(name);
      const double allowed = std::max(2 * was.standard_error, 0.01 * std::abs(was.value));
      if (std::abs(parameter.value - was.value) > allowed)
        add(name, was.value, was.standard_error, parameter.value);
    }
    if (old != before.fits.end() && apart(old->ratios.all(), fit.ratios.all()) > 0.01)
      add("measured_ratios", mean(old->ratios), 0, mean(fit.ratios));
  }
  return moved;
}

Json errors_of(const std::vector<Calibration>& calibrations) {
  Json errors = Json::array();
  for (const Calibration& calibration : calibrations)
    for (const KernelFit& fit : calibration.fits)
      errors.push_back({{"accelerator", calibration.accelerator},
                        {"table", fit.table},
                        {"precision", to_string(fit.precision)},
                        {"fitted", to_json(fit.fit_error)},
                        {"held_out", to_json(fit.held_out_error)},
                        {"held_out_without_ratios", to_json(fit.structure_error)},
                        {"whole_models", to_json(fit.whole_model_error)},
                        {"sibling", fit.sibling}});
  return errors;
}

Table error_table(Json errors) {
  for (Json& row : errors)
    row["fit"] =
        fmt::format("{} {}", row["table"].get<std::string>(), row["precision"].get<std::string>());
  return json_table(
      errors,
      "accelerator = accelerator | fit = fit | fitted n = fitted.count count | "
      "MAPE = fitted.mape percent | held out n = held_out.count count | "
      "without ratios = held_out_without_ratios.mape error | MAPE = held_out.mape percent | "
      "p90 = held_out.p90 percent | bias = held_out.bias percent | "
      "whole models = whole_models.mape error");
}

/// Adds what moved to the text of an answer. @return the same for programs
Json add_moves(const std::string& path, Json moved, Answer& answer) {
  answer.add(moved.empty() ? path + ": nothing moved\n"
                           : fmt::format("{}: {} parameters moved\n", path, moved.size()));
  if (!moved.empty())
    answer.add(json_table(moved,
                          "fit = fit | parameter = parameter | was = was number | "
                          "standard error = standard_error number | is = is number"));
  return {{"file", path}, {"moved", std::move(moved)}};
}

/// Calibrations of other devices in the library, those of an engine's own kernels left out.
std::vector<CalibratedDevice> calibrated_devices() {
  const config::Library& library = config::default_library();
  std::vector<CalibratedDevice> devices;
  for (const std::string& name : library.names("calibrations")) {
    Calibration calibration = load_calibration(library.locate("calibrations", name, ""));
    const std::string path = library.locate("accelerators", calibration.accelerator, "");
    const bool of_engine = calibration.id != calibration.accelerator;
    if (of_engine || !fs::exists(path)) continue;
    devices.push_back(
        {config::load<AcceleratorConfig>(path, library, "accelerators"), std::move(calibration)});
  }
  return devices;
}

/// Kernels of two engines take other times for the same shape. Of two versions they may be the
/// same: a user who names both says so.
void require_one_engine(const OperatorTable& table, const std::vector<RowCondition>& where) {
  const bool names_versions = std::ranges::any_of(
      where, [](const RowCondition& condition) { return condition.column == "version"; });
  const auto of_other = [&](const MeasuredEngine& engine) {
    return engine.framework != table.engines.front().framework || !names_versions;
  };
  const auto other = std::ranges::find_if(table.engines, of_other);
  if (table.engines.size() < 2 || other == table.engines.end()) return;
  throw UsageError(fmt::format(
      "{} has rows of {} and {}: name one with --where framework=NAME --where version=NUMBER",
      table.path, table.engines.front().name(),
      (other == table.engines.begin() ? table.engines[1] : *other).name()));
}

std::vector<Calibration> fit_all(const CalibrateArguments& arguments) {
  std::vector<CalibrationInput> inputs;
  const std::vector<RowCondition> where = row_conditions(arguments.where);
  for (const std::string& file : arguments.files) {
    inputs.push_back(read_calibration_input(file, arguments.measured(), where));
    require_one_engine(inputs.back().table, where);
    if (is_block(inputs.back().table.kind))
      throw UsageError(file +
                       ": a row is a block of several kernels, to which nothing is fitted; "
                       "'orrery validate operators' compares such rows");
    inputs.back().file.source = arguments.source;
    inputs.back().only = arguments.only;
  }
  const config::Library& library = config::default_library();
  std::vector<Calibration> calibrations;
  const std::vector<std::string> names = wanted(arguments, inputs);
  Progress progress("devices", names.size());
  for (const std::string& name : names) {
    const auto accelerator = config::load<AcceleratorConfig>(
        library.locate("accelerators", name, ""), library, "accelerators");
    calibrations.push_back(calibrate(
        arguments.model, accelerator, inputs, arguments.made_with(),
        [&](const std::string& what, std::size_t rows) {
          std::cerr << name << ": " << what << ", " << rows << " rows\n";
        },
        calibrated_devices));
    if (fs::path(arguments.output).extension() == ".yaml")
      calibrations.back().id = fs::path(arguments.output).stem();
    for (const ParameterAtLimit& limit : parameters_at_limits(calibrations.back()))
      std::cerr << name << ": warning: " << limit.fit->table << " "
                << to_string(limit.fit->precision) << ": " << limit.name << " ended at its limit, "
                << print_number(limit.value) << ": no estimate\n";
    progress.step(name);
  }
  return calibrations;
}

}  // namespace

void CalibrateArguments::take(Options& options) {
  options.positionals("FILE", files, "tables of measurements (CSV, plain or gzip)");
  options.options("--accelerator", accelerators,
                  "only these devices; default: all that the tables have");
  options.options("--system", systems,
                  "fit the collective protocols of these systems instead, such as dgx_h200");
  options.option("--engine", engine,
                 "fit what the host of this serving engine takes instead (vllm, sglang, "
                 "tensorrt_llm), on tables of measured runs");
  options.option(
      "--given", given,
      "what the host of --engine is known to take, such as '{request: 20 ms}': not fitted");
  options.options("--versions", versions,
                  "rows that --engine takes: what its versions begin with, such as 0.11, none for "
                  "rows that do not say theirs; default: all");
  options.options("--fit-on", fit_on,
                  "rows that --engine fits on, as MODEL@SYSTEM; the others judge the fit");
  options.option("--models", models,
                 "folder with config.json files (org--name.json) of models that the library lacks");
  options.options("--where", where, kWhereHelp);
  options.options("--only", only,
                  "make only these fits, such as moe_w4; others of the file stay as they are");
  options.option("-o,--output", output,
                 "folder or file to write; default: configs/calibrations, for systems "
                 "configs/network_calibrations");
  options.option("--source", source, "who measured, and with what");
  options.option("--date", date, "date of the measurement; default: today");
  options.option("--model", model, "kernel model: tiles (default) or roofline");
  options.flag("--check", check, "fit again and tell what moved; writes nothing");
}

std::string CalibrateArguments::measured() const {
  return date.empty() ? utc_now().substr(0, 10) : date;
}

std::string CalibrateArguments::made_with() const {
  return fmt::format("orrery {}, {}", kEngineVersion, measured());
}

fs::path CalibrateArguments::file_of(const std::string& name, const std::string& folder) const {
  const fs::path path =
      output.empty() ? config::default_library().root() / folder : fs::path(output);
  return path.extension() == ".yaml" ? path : path / (name + ".yaml");
}

void CalibrateArguments::require_files_for(std::size_t calibrations, const std::string& of) const {
  if (output.ends_with(".yaml") && calibrations > 1)
    throw UsageError(fmt::format("one output file for {} {}", calibrations, of));
}

void require_own_file(const fs::path& path, const std::string& key) {
  if (!fs::exists(path)) return;
  const std::string text = "\n" + config::input_files().read(path.string()).text;
  if (text.find("\n" + key + ":") != std::string::npos) return;
  throw UsageError(fmt::format(
      "{} is there and is no {}, so it is not written over: take another folder or file for -o",
      path.string(), key));
}

void write_calibration(const fs::path& path, const std::string& yaml) {
  fs::create_directories(path.parent_path());
  write_to(path.string(), [&](std::ostream& out) { out << yaml; });
  std::cerr << "written: " << path.string() << "\n";
}

Answer CalibrateArguments::answer() const {
  if (!engine.empty()) return calibrate_engine(*this);
  if (!systems.empty()) return calibrate_collectives(*this);
  for (const std::string& name : accelerators)
    require_own_file(file_of(name, kFolder), "calibration");
  const std::vector<Calibration> calibrations = fit_all(*this);
  for (const Calibration& calibration : calibrations)
    require_own_file(file_of(calibration.accelerator, kFolder), "calibration");
  require_files_for(calibrations.size(), "devices");
  Answer answer;
  Json written = Json::array();
  for (const Calibration& calibration : calibrations) {
    const fs::path path = file_of(calibration.accelerator, kFolder);
    if (check) {
      Json moved = moves(load_calibration(path.string()), calibration);
      if (!moved.empty()) answer.code = ExitCode::kPartial;
      written.push_back(add_moves(path.string(), std::move(moved), answer));
      continue;
    }
    const bool renews = !only.empty() && fs::exists(path);
    write_calibration(path, to_yaml(renews ? renewed(load_calibration(path.string()), calibration)
                                           : calibration));
    written.push_back({{"file", path.string()}});
  }
  Json errors = errors_of(calibrations);
  if (!check) {
    answer.add(error_table(errors));
    answer.add(left_out_text(calibrations));
  }
  answer.json = {{"schema", "orrery.calibration/1"},
                 {"errors", std::move(errors)},
                 {"left_out", left_out_json(calibrations)},
                 {"files", std::move(written)}};
  return answer;
}

const RegisterQuestion<CalibrateArguments> registered_calibrate(
    "calibrate", "fit the kernel model to measurements of a device");

}  // namespace orrery
