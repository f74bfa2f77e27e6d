// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "models/kernels/parameter_limits.h"
#include "sim/app/cli/calibrate.h"
#include "sim/app/cli/progress.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/describe/describe_calibration.h"
#include "sim/app/sweeps/base/clock.h"
#include "sim/config/input_files.h"
#include "sim/config/load.h"
#include "sim/results/version.h"
#include "sim/trace/atomic_file.h"
#include "sim/units/text.h"
#include "validation/calibration/calibrate.h"
#include "validation/calibration/error_json.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "calibrations";

/// What a second fit found elsewhere than the first.
struct Move {
  std::string fit, parameter;
  double before = 0, after = 0, standard_error = 0;
};

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
    if (std::find(known.begin(), known.end(), system) != known.end()) {
      names.push_back(system);
    } else {
      std::cerr << "left out: no accelerator is called '" << system << "'\n";
    }
  }
  if (names.empty()) throw UsageError("the tables have no accelerator of the library");
  return names;
}

std::string fit_name(const KernelFit& fit) { return fit.table + " " + to_string(fit.precision); }

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
std::vector<Move> moves(const Calibration& before, const Calibration& after) {
  std::vector<Move> moved;
  for (const KernelFit& fit : after.fits) {
    const auto old = std::find_if(before.fits.begin(), before.fits.end(), [&](const auto& other) {
      return other.table == fit.table && other.precision == fit.precision;
    });
    for (const auto& [name, parameter] : fit.parameters) {
      if (old == before.fits.end() || !old->parameters.contains(name)) {
        moved.push_back({fit_name(fit), name, std::nan(""), parameter.value, 0});
        continue;
      }
      const CalibratedParameter& was = old->parameters.at(name);
      const double allowed = std::max(2 * was.standard_error, 0.01 * std::abs(was.value));
      if (std::abs(parameter.value - was.value) > allowed)
        moved.push_back({fit_name(fit), name, was.value, parameter.value, was.standard_error});
    }
    if (old != before.fits.end() && apart(old->ratios.all(), fit.ratios.all()) > 0.01)
      moved.push_back({fit_name(fit), "measured_ratios", mean(old->ratios), mean(fit.ratios), 0});
  }
  return moved;
}

ToldRows errors_of(const std::vector<Calibration>& calibrations) {
  ToldRows rows{Table::titled(
      "accelerator | fit | >fitted n | >MAPE | >held out n | >without ratios | >MAPE | "
      ">p90 | >bias | >whole models")};
  for (const Calibration& calibration : calibrations) {
    for (const KernelFit& fit : calibration.fits)
      rows.add({calibration.accelerator, fit_name(fit), std::to_string(fit.fit_error.count),
                format_percent(fit.fit_error.mape), std::to_string(fit.held_out_error.count),
                mape(fit.structure_error), format_percent(fit.held_out_error.mape),
                format_percent(fit.held_out_error.p90), format_percent(fit.held_out_error.bias),
                mape(fit.whole_model_error)},
               {{"accelerator", calibration.accelerator},
                {"table", fit.table},
                {"precision", to_string(fit.precision)},
                {"fitted", to_json(fit.fit_error)},
                {"held_out", to_json(fit.held_out_error)},
                {"held_out_without_ratios", to_json(fit.structure_error)},
                {"whole_models", to_json(fit.whole_model_error)},
                {"sibling", fit.sibling}});
  }
  return rows;
}

/// Adds what moved to the text of an answer. @return the same for programs
nlohmann::ordered_json add_moves(const std::string& path, const std::vector<Move>& moved,
                                 Answer& answer) {
  ToldRows rows{Table::titled("fit | parameter | >was | >standard error | >is")};
  for (const Move& move : moved) {
    const bool was = !std::isnan(move.before);
    rows.add({move.fit, move.parameter, was ? print_number(move.before) : "-",
              print_number(move.standard_error), print_number(move.after)},
             {{"fit", move.fit},
              {"parameter", move.parameter},
              {"was", was ? nlohmann::ordered_json(move.before) : nlohmann::ordered_json()},
              {"standard_error", move.standard_error},
              {"is", move.after}});
  }
  answer.add(path + (moved.empty() ? ": nothing moved\n"
                                   : ": " + std::to_string(moved.size()) + " parameters moved\n"));
  if (!moved.empty()) answer.add(std::move(rows.table));
  return {{"file", path}, {"moved", std::move(rows.json)}};
}

/// What the library has of other devices.
std::vector<CalibratedDevice> calibrated_devices() {
  const config::Library& library = config::default_library();
  std::vector<CalibratedDevice> devices;
  for (const std::string& name : library.names("calibrations")) {
    Calibration calibration = load_calibration(library.locate("calibrations", name, ""));
    const std::string path = library.locate("accelerators", calibration.accelerator, "");
    if (!fs::exists(path)) continue;
    devices.push_back(
        {config::load<AcceleratorConfig>(path, library, "accelerators"), std::move(calibration)});
  }
  return devices;
}

std::vector<Calibration> fit_all(const CalibrateArguments& arguments) {
  std::vector<CalibrationInput> inputs;
  for (const std::string& file : arguments.files) {
    inputs.push_back(read_calibration_input(file, arguments.measured()));
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
                 "tensorrt_llm), "
                 "on tables of measured runs");
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
  return std::string("orrery ") + kEngineVersion + ", " + measured();
}

fs::path CalibrateArguments::file_of(const std::string& name, const std::string& folder) const {
  const fs::path path =
      output.empty() ? config::default_library().root() / folder : fs::path(output);
  return path.extension() == ".yaml" ? path : path / (name + ".yaml");
}

void CalibrateArguments::require_files_for(std::size_t calibrations, const std::string& of) const {
  if (output.ends_with(".yaml") && calibrations > 1)
    throw UsageError("one output file for " + std::to_string(calibrations) + " " + of);
}

void require_own_file(const fs::path& path, const std::string& key) {
  if (!fs::exists(path)) return;
  const std::string text = "\n" + config::input_files().read(path.string()).text;
  if (text.find("\n" + key + ":") != std::string::npos) return;
  throw UsageError(path.string() + " is there and is no " + key +
                   ", so it is not written over: take another folder or file for -o");
}

void write_calibration(const fs::path& path, const std::string& yaml) {
  fs::create_directories(path.parent_path());
  AtomicFile file(path);
  file.stream() << yaml;
  file.commit();
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
  nlohmann::ordered_json written = nlohmann::ordered_json::array();
  for (const Calibration& calibration : calibrations) {
    const fs::path path = file_of(calibration.accelerator, kFolder);
    if (check) {
      const std::vector<Move> moved = moves(load_calibration(path.string()), calibration);
      if (!moved.empty()) answer.code = ExitCode::kPartial;
      written.push_back(add_moves(path.string(), moved, answer));
      continue;
    }
    const bool renews = !only.empty() && fs::exists(path);
    write_calibration(path, to_yaml(renews ? renewed(load_calibration(path.string()), calibration)
                                           : calibration));
    written.push_back({{"file", path.string()}});
  }
  ToldRows errors = errors_of(calibrations);
  if (!check) {
    answer.add(std::move(errors.table));
    answer.add(left_out_text(calibrations));
  }
  answer.json = {{"schema", "orrery.calibration/1"},
                 {"errors", std::move(errors.json)},
                 {"left_out", left_out_json(calibrations)},
                 {"files", std::move(written)}};
  return answer;
}

namespace {

const RegisterQuestion<CalibrateArguments> registered_calibrate(
    "calibrate", "fit the kernel model to measurements of a device");

}  // namespace

}  // namespace orrery
