// SPDX-License-Identifier: Apache-2.0
#include "sim/app/explain.h"

#include <iostream>

#include "sim/app/commands.h"
#include "sim/app/experiment_network.h"
#include "sim/app/file_kind.h"
#include "sim/app/kernel_pricing.h"
#include "sim/app/model_step.h"
#include "sim/app/operator_power.h"
#include "sim/app/simulate.h"
#include "sim/config/output.h"
#include "sim/machine/limits.h"
#include "sim/results/table.h"
#include "workloads/fusion.h"
#include "workloads/statistics.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;
using Align = Table::Align;

ordered_json explain_configuration(const LoadedExperiment& loaded) {
  ordered_json rows = ordered_json::array();
  for (const config::Leaf& leaf : config::flatten(loaded.node, Experiment::schema().record())) {
    rows.push_back({{"path", leaf.path}, {"value", leaf.text}, {"origin", leaf.origin}});
  }
  return rows;
}

ordered_json explain_memory(const std::vector<MemoryUse>& stages, const Experiment& e) {
  const MemoryUse& worst = worst_stage(stages);
  ordered_json memory = {
      {"weights", worst.weights.base()},     {"gradients", worst.gradients.base()},
      {"optimizer", worst.optimizer.base()}, {"activations", worst.activations.base()},
      {"working", worst.working.base()},     {"kv_cache", worst.kv_cache.base()},
      {"logits", worst.logits.base()},       {"total", worst.total().base()},
      {"usable", usable_memory(e).base()},   {"fits", worst.total() <= usable_memory(e)}};
  return memory;
}

/// What a model experiment is made of: its program, sizes and memory.
struct Explained {
  Program program;
  ordered_json sizes;
};

Explained explain_model(const Experiment& e) {
  const LlmConfig model = e.model.build();
  const ParameterCount count = count_parameters(model);
  Explained explained;
  Flops useful;
  ordered_json memory;
  if (e.kind == ExperimentKind::kTraining) {
    const TrainingConfig training = training_config(e);
    explained.program = build_training(model, training).program;
    memory = explain_memory(training_memory(model, training), e);
    useful = model_flops(model, training);
  } else {
    const InferenceConfig inference = inference_config(e);
    explained.program = build_inference(model, inference);
    memory = explain_memory(inference_memory(model, inference), e);
    useful = model_flops(model, inference);
  }
  const ProgramStatistics statistics = program_statistics(explained.program);
  Bytes traffic;
  for (const auto& [name, kernels] : statistics.kernels) traffic += kernels.bytes;
  explained.sizes = {{"parameters", count.total},
                     {"active_parameters", count.active},
                     {"ranks", e.ranks()},
                     {"accelerators", e.accelerators()},
                     {"model_flops", useful.base()},
                     {"executed_matrix_flops", statistics.matrix_flops().base()},
                     {"device_memory_traffic_bytes", traffic.base()},
                     {"memory_per_rank_bytes", std::move(memory)}};
  return explained;
}

/// One kernel: how often, what limits it and how close it comes to that, how long.
ordered_json explain_kernel(const Kernel& kernel, const KernelCost& cost, std::uint64_t count,
                            const AcceleratorConfig& accelerator) {
  const double time = to_seconds(cost.duration).base();
  const Limit limit = limit_of(kernel, cost, accelerator);
  return {{"name", kernel.name},
          {"class", to_string(kernel.kind)},
          {"count", count},
          {"flops", (kernel.matrix_flops + kernel.vector_flops).base()},
          {"bytes", (kernel.read + kernel.written).base()},
          {"bound", to_string(limit.bound)},
          {"share_of_limit", limit.time.base() / time},
          {"fidelity", to_string(cost.fidelity)},
          {"time_s", time},
          {"total_s", time * static_cast<double>(count)}};
}

/// Kernels of one role.
ordered_json explain_kernels(const Program& program, const Role& role, const Costs& costs,
                             const AcceleratorConfig& accelerator) {
  const ExecutionCounts counts = count_executions(program, role);
  ordered_json rows = ordered_json::array();
  for (std::size_t id = 0; id < counts.kernels.size(); ++id) {
    if (counts.kernels[id] == 0) continue;
    rows.push_back(
        explain_kernel(program.kernels[id], costs.kernels[id], counts.kernels[id], accelerator));
  }
  return rows;
}

/// What the operator leaves out of the memory that separate kernels would write and read; null
/// where there is nothing.
ordered_json explain_fusion(const Experiment& e) {
  const std::vector<Kernel> fused = (*e.op)->kernels(e.precision);
  const std::vector<Kernel> apart = (*e.op)->unfused_kernels(e.precision);
  if (fused == apart) return nullptr;
  const auto flops = [](const std::vector<Kernel>& kernels) {
    double sum = 0;
    for (const Kernel& kernel : kernels) sum += kernel.matrix_flops.base();
    return sum;
  };
  return {{"bytes", (traffic(apart) - traffic(fused)).base()},
          {"launches", apart.size() - fused.size()},
          {"masked_flops", flops(apart) - flops(fused)}};
}

/// Its kernels, what it saves and where its energy goes.
void explain_operator(const Experiment& e, ordered_json& explanation) {
  const auto model = kernel_model(e);
  const std::vector<Kernel> kernels = (*e.op)->kernels(e.precision);
  ordered_json rows = ordered_json::array();
  std::vector<KernelCost> costs;
  for (const Kernel& kernel : kernels) {
    costs.push_back(model->cost(kernel, e.system.accelerator));
    rows.push_back(explain_kernel(kernel, costs.back(), 1, e.system.accelerator));
  }
  const EnergyUse energy = operator_power(kernels, costs, e.system.accelerator).energy;
  explanation["operator"] = e.op->name;
  explanation["kernels"] = std::move(rows);
  explanation["energy_j"] = {
      {"static", energy.idle.base()},   {"matrix", energy.matrix.base()},
      {"vector", energy.vector.base()}, {"memory", energy.memory.base()},
      {"cache", energy.cache.base()},   {"shared_memory", energy.shared.base()}};
  explanation["fusion_saves"] = explain_fusion(e);
}

ordered_json explain_transfers(const Program& program, const Role& role,
                               const PricedProgram& priced) {
  const ExecutionCounts counts = count_executions(program, role);
  ordered_json rows = ordered_json::array();
  for (std::size_t id = 0; id < counts.transfers.size(); ++id) {
    if (counts.transfers[id] == 0) continue;
    const Transfer& transfer = program.transfers[id];
    const PricedTransfer& price = priced.transfers[id];
    rows.push_back(
        {{"name", transfer.name},
         {"class", std::string(to_string(transfer.kind)) + " " + transfer.purpose},
         {"count", counts.transfers[id]},
         {"bytes", transfer.bytes.base()},
         {"algorithm", price.algorithm},
         {"bound", price.bottleneck ? priced.costs.link_names[*price.bottleneck] : "latency"},
         {"time_s", price.isolated_time.base()},
         {"total_s", price.isolated_time.base() * static_cast<double>(counts.transfers[id])}});
  }
  return rows;
}

void print_rows(const ordered_json& rows, const std::string& title) {
  if (rows.empty()) return;
  Table table({{title},
               {"class"},
               {"count", Align::kRight},
               {"FLOPs", Align::kRight},
               {"bytes", Align::kRight},
               {"bound"},
               {"of limit", Align::kRight},
               {"fidelity"},
               {"time", Align::kRight},
               {"total", Align::kRight}});
  for (const ordered_json& row : rows) {
    const double flops = row.value("flops", 0.0);
    table.add_row({row["name"], row["class"], std::to_string(row["count"].get<std::uint64_t>()),
                   flops > 0 ? format_si(flops, "FLOP") : "-", format_si(row["bytes"], "B"),
                   row["bound"],
                   row.contains("share_of_limit") ? format_percent(row["share_of_limit"]) : "-",
                   row.value("fidelity", "-"), format_si(row["time_s"], "s"),
                   format_si(row["total_s"], "s")});
  }
  std::cout << "\n";
  table.print(std::cout);
}

void print_operator(const ordered_json& explanation) {
  print_rows(explanation["kernels"], "kernels of " + explanation["operator"].get<std::string>());
  const char* separator = "\nenergy: ";
  for (const auto& part : explanation["energy_j"].items()) {
    std::cout << separator << part.key() << " " << format_si(part.value(), "J");
    separator = ", ";
  }
  std::cout << "\n";
  const ordered_json& saved = explanation["fusion_saves"];
  if (saved.is_null()) return;
  std::cout << "fusion saves " << format_si(saved["bytes"], "B") << " of device memory traffic and "
            << saved["launches"] << " launches";
  if (saved["masked_flops"] > 0)
    std::cout << ", and skips " << format_si(saved["masked_flops"], "FLOP") << " that masks hide";
  std::cout << "\n";
}

void print(const ordered_json& explanation) {
  Table configuration({{"configuration"}, {"value"}, {"from"}});
  for (const ordered_json& row : explanation["configuration"]) {
    configuration.add_row({row["path"], row["value"], row["origin"]});
  }
  configuration.print(std::cout);
  if (explanation.contains("sizes")) {
    Table sizes({{"\nsizes"}, {"value", Align::kRight}});
    for (const auto& item : explanation["sizes"].items()) {
      if (item.value().is_number()) sizes.add_row({item.key(), format_si(item.value(), "")});
    }
    for (const auto& item : explanation["sizes"]["memory_per_rank_bytes"].items()) {
      if (item.value().is_number())
        sizes.add_row({"memory of a rank: " + item.key(), format_si(item.value(), "B")});
    }
    sizes.print(std::cout);
  }
  if (explanation.contains("role"))
    print_rows(explanation["kernels"], "kernels of " + explanation["role"].get<std::string>());
  if (explanation.contains("transfers")) {
    print_rows(explanation["transfers"], "transfers of " + explanation["role"].get<std::string>());
  }
  if (explanation.contains("operator")) print_operator(explanation);
  std::cout << "\ninputs that had no effect:";
  if (explanation["no_effect"].empty()) std::cout << " none";
  for (const ordered_json& path : explanation["no_effect"])
    std::cout << "\n  " << path.get<std::string>();
  std::cout << "\n";
}

}  // namespace

ExitCode explain_command(const ExplainArguments& arguments) {
  expect_kind(arguments.file, FileKind::kExperiment);
  const LoadedExperiment loaded = load_experiment(arguments.file, arguments.set);
  std::cerr << loaded.warnings;
  const Experiment& e = loaded.experiment;
  ordered_json explanation = {{"schema", "orrery.explain/1"},
                              {"identity", loaded.identity},
                              {"configuration", explain_configuration(loaded)}};
  if (e.kind == ExperimentKind::kTraining || e.kind == ExperimentKind::kInference) {
    Explained explained = explain_model(e);
    const ExperimentNetwork network(e);
    const PricedProgram priced =
        price(explained.program, e.system.accelerator, *kernel_model(e), network.start());
    const Role& role = explained.program.roles.back();
    explanation["sizes"] = std::move(explained.sizes);
    explanation["role"] = role.name;
    explanation["kernels"] =
        explain_kernels(explained.program, role, priced.costs, e.system.accelerator);
    explanation["transfers"] = explain_transfers(explained.program, role, priced);
  } else if (e.kind == ExperimentKind::kOperator) {
    explain_operator(e, explanation);
  }
  explanation["no_effect"] = inputs_without_effect(loaded);
  if (arguments.json) {
    std::cout << explanation.dump(2) << "\n";
  } else {
    print(explanation);
  }
  return ExitCode::kOk;
}

}  // namespace orrery
