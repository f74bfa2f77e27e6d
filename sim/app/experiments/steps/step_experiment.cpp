// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/step_experiment.h"

#include <nlohmann/json.hpp>

#include "sim/app/experiments/files/price_list.h"
#include "sim/app/experiments/keys/algorithm_names.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "sim/config/load.h"

namespace orrery {

const config::Schema<StepContention>& StepContention::schema() {
  static const auto schema =
      config::Schema<StepContention>("contention", "slowdown of kernels by concurrent work")
          .optional("transfers", &StepContention::transfers,
                    "slow down kernels while communication runs concurrently");
  return schema;
}

const config::Record& StepExperiment::keys() {
  using S = StepExperiment;
  static const auto schema =
      config::Schema<S>("step", "keys that all steps have", nullptr)
          .optional("precision", &S::precision,
                    "number format of weights and matrix operands (MXFP8 is fp8, in training with "
                    "software.fp8_scaling: blocks); where inference is given none, that of the "
                    "checkpoint (quantization_config of the model's file)")
          .optional("fidelity", &S::fidelity, kFidelityHelp)
          .optional("measured", &S::measured,
                    "operator tables (CSV) of this accelerator: kernels that they have take the "
                    "measured time")
          .optional("contention", &S::contention, "slowdown of kernels by concurrent work")
          .optional("fold", &S::fold,
                    "auto: ranks that do the same at the same time are replayed as one; off: each "
                    "on its own")
          .optional("noise", &S::noise,
                    "what makes kernels differ by rank and by run; none by default. With it every "
                    "rank is replayed on its own")
          .optional("steps", &S::steps,
                    "steps that are replayed, each with draws of its own for noise.kernels; the "
                    "result is that of the step with the median time, and quantiles over all",
                    config::between(1, 100000))
          .optional("memory_reserve", &S::memory_reserve,
                    "share of device memory left to contexts and communication buffers: 0.1, as "
                    "vLLM leaves by default (gpu_memory_utilization 0.9); in training 0.02, as an "
                    "H100 shows with a communicator before anything is loaded",
                    config::between(0, 0.9))
          .optional("unused", &S::unused,
                    "accelerators of the systems (`nodes`) without a rank. idle: they draw idle "
                    "power, hosts are charged whole, and usd_per_hour is the price of all "
                    "accelerators. absent: host power and price are those of the used share")
          .optional("algorithms", &S::algorithms, kAlgorithmsHelp)
          .optional("prices", &S::prices,
                    "price list of accelerators: a name in configs/prices, a path, or none")
          .optional("carbon_intensity", &S::carbon_intensity, kCarbonIntensityHelp,
                    config::at_least(0));
  return schema.record();
}

DeclaredMetric step_metric(const std::string& name, const char* unit, const std::string& meaning,
                           Follows follows) {
  return DeclaredMetric{{name, unit, meaning, "training, inference, layers", follows}};
}

std::string exposed_cell(const RunRecord& record) {
  const Metric* part = record.find("breakdown.exposed_communication_s");
  const Metric* step = record.find("step_time_s");
  return part != nullptr && step != nullptr ? format_percent(part->value / step->value) : "-";
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
