// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/step_experiment.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/experiments/files/price_list.h"
#include "sim/app/experiments/keys/algorithm_names.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "sim/config/load.h"
#include "sim/config/place.h"

namespace orrery {

const config::Schema<StepContention>& StepContention::schema() {
  static const auto schema =
      config::Schema<StepContention>("contention", "slowdown of kernels by concurrent work")
          .optional("transfers", &StepContention::transfers,
                    "slow down kernels while communication runs concurrently");
  return schema;
}

std::string exposed_cell(const RunRecord& record) {
  const Metric* part = record.find("breakdown.exposed_communication_s");
  const Metric* step = record.find("step_time_s");
  return part != nullptr && step != nullptr ? format_percent(part->value / step->value) : "-";
}

bool StepExperiment::is_written(const config::Node& node, std::string_view key) {
  const config::Node* value = node.find(key);
  return value != nullptr && !value->is_null() &&
         value->origin().kind != config::Origin::Kind::kDefault;
}

void StepExperiment::complain(config::Diagnostics& diagnostics, const config::Node& node,
                              const std::vector<std::string>& keys, std::string message,
                              config::Advice advice) {
  const config::Place place = config::place_of(node, keys);
  diagnostics.error(place.where, place.length, std::move(message), std::move(advice.suggestion),
                    std::move(advice.notes));
}

void StepExperiment::complete(config::Node& node, config::Diagnostics& diagnostics) {
  complete_algorithms(algorithms, node.find("algorithms"), diagnostics);
  require_prices(prices, "prices", node);
}

void StepExperiment::check_names(const config::Node& node, config::Diagnostics& diagnostics) const {
  MachineExperiment::check_names(node, diagnostics);
  check_algorithms(algorithms, "algorithms", node, diagnostics);
}

void StepExperiment::check_step(const config::Node& node, config::Diagnostics& diagnostics) const {
  check_noise(*this, node, diagnostics);
}

void StepExperiment::check_machine(const config::Node& node,
                                   config::Diagnostics& diagnostics) const {
  machine().check(fidelity);
  check_faults(machine(), faults, node, diagnostics);
}

std::vector<InputFile> StepExperiment::input_files() const {
  std::vector<InputFile> files;
  if (const std::string list = price_file(prices); !list.empty())
    files.push_back(file_read_now("prices", list));
  add_kernel_files(machine(), measured, files);
  add_collective_files(machine(), files);
  add_algorithm_files(algorithms, "algorithms", files);
  return files;
}

void StepExperiment::strip_names(nlohmann::ordered_json& configuration) const {
  MachineExperiment::strip_names(configuration);
  erase_keys(configuration, {"prices"});
  strip_algorithm_paths(configuration["algorithms"]);
}

void StepExperiment::check_network() const { const MachineNetwork network(machine(), faults); }

}  // namespace orrery
