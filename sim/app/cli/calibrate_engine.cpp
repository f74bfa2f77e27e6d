// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/calibrate.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/config/load.h"
#include "validation/calibration/error_json.h"
#include "validation/checks/host_fit.h"

namespace orrery {
namespace {

HostCosts given_host(const std::string& text) {
  if (text.empty()) return {};
  config::Diagnostics diagnostics;
  const config::Node node = config::parse_yaml(text, "--given", diagnostics);
  diagnostics.throw_if_errors();
  const auto host = config::read<HostCosts>(node, diagnostics, config::default_library());
  diagnostics.throw_if_errors();
  return host;
}

HostFit fit_engine(const CalibrateArguments& arguments) {
  if (arguments.fit_on.empty())
    throw UsageError("--engine needs --fit-on MODEL@SYSTEM: rows to fit on");
  std::vector<ServingRow> rows;
  for (const std::string& file : arguments.files) {
    const ServingRows table = read_serving_rows(file);
    rows.insert(rows.end(), table.rows.begin(), table.rows.end());
  }
  // Tables of measured runs call TensorRT-LLM by its old name, which --engine takes too.
  const std::string backend = arguments.engine == "tensorrt_llm" ? "trtllm" : arguments.engine;
  const HostFitRows split = host_fit_rows(rows, backend, arguments.fit_on, arguments.versions);
  std::cerr << arguments.engine << ": " << split.fitted.size() << " rows to fit on, "
            << split.held_out.size() << " to judge by\n";
  ServingValidation validation(arguments.models);
  validation.learn_protocols(rows);
  return fit_host(
      validation, split, given_host(arguments.given), [](const HostCosts& host, double mean) {
        std::cerr << fmt::format(
                         "request {}, launch {}, gap {}, iteration {}, sequence {}: mean of |log| ",
                         format_si(host.request.base(), "s"), format_si(host.launch.base(), "s"),
                         format_si(host.gap.base(), "s"), format_si(host.iteration.base(), "s"),
                         format_si(host.sequence.base(), "s"))
                  << mean << "\n";
      });
}

Table table_of(const HostFit& fit) {
  Table table = Table::titled(
      "rows | host | >n | >TPOT MAPE | >median | >bias | >n | >TTFT MAPE | >median | "
      ">bias");
  const auto add = [&](const std::string& rows, const char* host, const ServingTarget& errors) {
    std::vector<std::string> cells = {rows, host};
    for (const ErrorSummary& e : {errors.tpot, errors.ttft}) {
      cells.push_back(std::to_string(e.count));
      for (const double error : {e.mape, e.median, e.bias}) cells.push_back(format_percent(error));
    }
    table.add_row(cells);
  };
  add("fitted", "none", fit.fitted_before);
  add("fitted", "fitted", fit.fitted);
  add("held out", "none", fit.held_out_before);
  add("held out", "fitted", fit.held_out);
  for (const auto& [group, errors] : fit.groups_before) {
    add(group, "none", errors);
    add(group, "fitted", fit.groups.at(group));
  }
  return table;
}

nlohmann::ordered_json errors_json(const ServingTarget& errors) {
  return {{"tpot", to_json(errors.tpot)}, {"ttft", to_json(errors.ttft)}};
}

}  // namespace

Answer calibrate_engine(const CalibrateArguments& arguments) {
  const HostFit fit = fit_engine(arguments);
  nlohmann::ordered_json host;
  std::string line;
  for (const auto& [key, time] : {std::pair{"iteration", fit.host.iteration},
                                  {"sequence", fit.host.sequence},
                                  {"request", fit.host.request},
                                  {"launch", fit.host.launch},
                                  {"gap", fit.host.gap}}) {
    host[fmt::format("{}_s", key)] = time.base();
    line += fmt::format("{}{}: {}", line.empty() ? "" : ", ", key, format_si(time.base(), "s"));
  }
  return {.parts = {table_of(fit), fmt::format("host: {{{}}}\n", line)},
          .json = {{"schema", "orrery.calibration/1"},
                   {"engine", arguments.engine},
                   {"fitted_on", arguments.fit_on},
                   {"host", std::move(host)},
                   {"fitted", errors_json(fit.fitted)},
                   {"fitted_before", errors_json(fit.fitted_before)},
                   {"held_out", errors_json(fit.held_out)},
                   {"held_out_before", errors_json(fit.held_out_before)}}};
}

}  // namespace orrery
