// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "models/kernels/parameter_limits.h"
#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/calibrate.h"
#include "sim/app/cli/progress.h"
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

fs::path output_path(const CalibrateArguments& arguments, const std::string& accelerator) {
  const fs::path output(arguments.output.empty() ? config::default_library().root() / "calibrations"
                                                 : fs::path(arguments.output));
  return output.extension() == ".yaml" ? output : output / (accelerator + ".yaml");
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

void print_errors(const std::vector<Calibration>& calibrations) {
  Table table = Table::titled(
      "accelerator | fit | >fitted n | >MAPE | >held out n | >without ratios | >MAPE | >p90 | "
      ">bias | >whole models");
  for (const Calibration& calibration : calibrations) {
    for (const KernelFit& fit : calibration.fits) {
      table.add_row({calibration.accelerator, fit_name(fit), std::to_string(fit.fit_error.count),
                     format_percent(fit.fit_error.mape), std::to_string(fit.held_out_error.count),
                     mape(fit.structure_error), format_percent(fit.held_out_error.mape),
                     format_percent(fit.held_out_error.p90),
                     format_percent(fit.held_out_error.bias), mape(fit.whole_model_error)});
    }
  }
  print(table, std::cout);
  std::cout << left_out_text(calibrations);
}

nlohmann::ordered_json errors_json(const std::vector<Calibration>& calibrations) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const Calibration& calibration : calibrations) {
    for (const KernelFit& fit : calibration.fits) {
      entries.push_back({{"accelerator", calibration.accelerator},
                         {"table", fit.table},
                         {"precision", to_string(fit.precision)},
                         {"fitted", to_json(fit.fit_error)},
                         {"held_out", to_json(fit.held_out_error)},
                         {"held_out_without_ratios", to_json(fit.structure_error)},
                         {"whole_models", to_json(fit.whole_model_error)},
                         {"sibling", fit.sibling}});
    }
  }
  return entries;
}

void print_moves(const std::string& path, const std::vector<Move>& moved) {
  if (moved.empty()) {
    std::cout << path << ": nothing moved\n";
    return;
  }
  Table table = Table::titled("fit | parameter | >was | >standard error | >is");
  for (const Move& move : moved) {
    table.add_row({move.fit, move.parameter,
                   std::isnan(move.before) ? "-" : print_number(move.before),
                   print_number(move.standard_error), print_number(move.after)});
  }
  std::cout << path << ": " << moved.size() << " parameters moved\n";
  print(table, std::cout);
}

nlohmann::ordered_json moves_json(const std::string& path, const std::vector<Move>& moved) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Move& move : moved) {
    list.push_back({{"fit", move.fit},
                    {"parameter", move.parameter},
                    {"was", std::isnan(move.before) ? nlohmann::ordered_json(nullptr)
                                                    : nlohmann::ordered_json(move.before)},
                    {"standard_error", move.standard_error},
                    {"is", move.after}});
  }
  return {{"file", path}, {"moved", std::move(list)}};
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
  const std::string date = arguments.date.empty() ? utc_now().substr(0, 10) : arguments.date;
  std::vector<CalibrationInput> inputs;
  for (const std::string& file : arguments.files) {
    inputs.push_back(read_calibration_input(file, date));
    inputs.back().file.source = arguments.source;
    inputs.back().only = arguments.only;
  }
  const std::string made_with = std::string("orrery ") + kEngineVersion + ", " + date;
  const config::Library& library = config::default_library();
  std::vector<Calibration> calibrations;
  const std::vector<std::string> names = wanted(arguments, inputs);
  Progress progress("devices", names.size());
  for (const std::string& name : names) {
    const auto accelerator = config::load<AcceleratorConfig>(
        library.locate("accelerators", name, ""), library, "accelerators");
    calibrations.push_back(calibrate(
        arguments.model, accelerator, inputs, made_with,
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
  options.json(json);
}

void require_own_file(const std::string& path, const std::string& key) {
  if (!fs::exists(path)) return;
  const std::string text = "\n" + config::input_files().read(path).text;
  if (text.find("\n" + key + ":") != std::string::npos) return;
  throw UsageError(path + " is there and is no " + key +
                   ", so it is not written over: take another folder or file for -o");
}

ExitCode CalibrateArguments::run() const {
  if (!engine.empty()) return calibrate_engine_command(*this);
  if (!systems.empty()) return calibrate_collectives_command(*this);
  for (const std::string& name : accelerators)
    require_own_file(output_path(*this, name).string(), "calibration");
  const std::vector<Calibration> calibrations = fit_all(*this);
  for (const Calibration& calibration : calibrations)
    require_own_file(output_path(*this, calibration.accelerator).string(), "calibration");
  if (output.ends_with(".yaml") && calibrations.size() > 1)
    throw UsageError("one output file for " + std::to_string(calibrations.size()) + " devices");
  nlohmann::ordered_json written = nlohmann::ordered_json::array();
  bool any_moved = false;
  for (const Calibration& calibration : calibrations) {
    const fs::path path = output_path(*this, calibration.accelerator);
    if (check) {
      const std::vector<Move> moved = moves(load_calibration(path.string()), calibration);
      any_moved = any_moved || !moved.empty();
      written.push_back(moves_json(path.string(), moved));
      if (!json) print_moves(path.string(), moved);
      continue;
    }
    fs::create_directories(path.parent_path());
    const bool renews = !only.empty() && fs::exists(path);
    AtomicFile file(path);
    file.stream() << to_yaml(renews ? renewed(load_calibration(path.string()), calibration)
                                    : calibration);
    file.commit();
    written.push_back({{"file", path.string()}});
    std::cerr << "written: " << path.string() << "\n";
  }
  if (json) {
    std::cout << nlohmann::ordered_json{{"schema", "orrery.calibration/1"},
                                        {"errors", errors_json(calibrations)},
                                        {"left_out", left_out_json(calibrations)},
                                        {"files", std::move(written)}}
                     .dump(2)
              << "\n";
  } else if (!check) {
    print_errors(calibrations);
  }
  return any_moved ? ExitCode::kPartial : ExitCode::kOk;
}

namespace {

const RegisterVerb<CalibrateArguments> registered_calibrate(
    "calibrate", "fit the kernel model to measurements of a device");

}  // namespace

}  // namespace orrery
