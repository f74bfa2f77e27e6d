// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/explain.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/app/experiments/experiment_network.h"
#include "sim/app/experiments/model_step.h"
#include "sim/app/experiments/simulate.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/app/pricing/operator_power.h"
#include "sim/app/pricing/step_power.h"
#include "sim/app/questions/effects.h"
#include "sim/config/output.h"
#include "sim/graph/executions.h"
#include "sim/machine/clock.h"
#include "sim/machine/limits.h"
#include "workloads/fusion.h"
#include "workloads/statistics.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

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

/// One kernel: how often, what limits it and how close it comes to that, how long, at which clock.
/// A clock that power took away makes no other limit.
ordered_json explain_kernel(const Kernel& kernel, const KernelCost& cost, std::uint64_t count,
                            const AcceleratorConfig& accelerator) {
  const double time = to_seconds(cost.duration).base();
  const Seconds limit = limit_of(kernel, cost, accelerator).time;
  return {{"name", kernel.name},
          {"class", to_string(kernel.kind)},
          {"count", count},
          {"flops", (kernel.matrix_flops + kernel.vector_flops).base()},
          {"bytes", (kernel.read + kernel.written).base()},
          {"bound", to_string(cost.bound)},
          {"share_of_limit", limit.base() / time},
          {"fidelity", to_string(cost.fidelity)},
          {"clock_hz", (boost_clock(accelerator) * cost.clock).base()},
          {"time_s", time},
          {"total_s", time * static_cast<double>(count)}};
}

/// Kernels of one role.
ordered_json explain_kernels(const Program& program, const Role& role, const Costs& costs,
                             const AcceleratorConfig& accelerator) {
  const ExecutionCounts counts = count_executions(program, role);
  ordered_json rows = ordered_json::array();
  each_run(counts.kernels, [&](std::size_t id, std::uint64_t runs) {
    rows.push_back(explain_kernel(program.kernels[id], costs.kernels[id], runs, accelerator));
  });
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
  const AcceleratorConfig& accelerator = e.system.accelerator;
  const std::vector<Kernel> kernels = (*e.op)->kernels(e.precision);
  const OperatorPower settled =
      settle_operator(kernels, accelerator, power_state(e), *kernel_model(e));
  const EnergyUse& energy = settled.energy;
  ordered_json rows = ordered_json::array();
  for (std::size_t i = 0; i < kernels.size(); ++i)
    rows.push_back(explain_kernel(kernels[i], settled.costs[i], 1, accelerator));
  explanation["operator"] = e.op->name;
  explanation["kernels"] = std::move(rows);
  explanation["energy_j"] = {
      {"static", energy.idle.base()},   {"matrix", energy.matrix.base()},
      {"vector", energy.vector.base()}, {"memory", energy.memory.base()},
      {"cache", energy.cache.base()},   {"shared_memory", energy.shared.base()}};
  explanation["fusion_saves"] = explain_fusion(e);
}

/// The slowest link of a transfer; what stands still on a link that is down never ends.
std::string bound_of(const PricedTransfer& price, const Topology& topology) {
  if (!price.bottleneck) return "latency";
  const std::string link = topology.bundle_name(*price.bottleneck);
  return std::isfinite(price.isolated_time.base()) ? link : link + " is down";
}

ordered_json explain_transfers(const Program& program, const Role& role,
                               const PricedProgram& priced, const Topology& topology) {
  const ExecutionCounts counts = count_executions(program, role);
  ordered_json rows = ordered_json::array();
  each_run(counts.transfers, [&](std::size_t id, std::uint64_t runs) {
    const Transfer& transfer = program.transfers[id];
    const PricedTransfer& price = priced.transfers[id];
    rows.push_back({{"name", transfer.name},
                    {"class", std::string(to_string(transfer.kind)) + " " + transfer.purpose},
                    {"count", runs},
                    {"bytes", transfer.bytes.base()},
                    {"algorithm", price.algorithm},
                    {"bound", bound_of(price, topology)},
                    {"time_s", price.isolated_time.base()},
                    {"total_s", price.isolated_time.base() * static_cast<double>(runs)}});
  });
  return rows;
}

/// The time of the run with its interval: what all shares are shares of.
ordered_json explain_time(const RunRecord& record) {
  for (const char* name : {"step_time_s", "time_s"}) {
    const Metric* metric = record.find(name);
    if (metric == nullptr) continue;
    ordered_json time = {{"metric", name}, {"value", metric->value}};
    time["p10"] = metric->interval ? ordered_json(metric->interval->first) : nullptr;
    time["p90"] = metric->interval ? ordered_json(metric->interval->second) : nullptr;
    return time;
  }
  return nullptr;  // does not fit, or a dead link held it up
}

/// What the compute stream of the role does: adds up to the step.
ordered_json explain_breakdown(const RunRecord& record, double time) {
  constexpr std::string_view kPrefix = "breakdown.";
  ordered_json rows = ordered_json::array();
  for (const Metric& metric : record.metrics) {
    if (metric.name.rfind(kPrefix, 0) != 0) continue;
    const std::string part =
        metric.name.substr(kPrefix.size(), metric.name.size() - kPrefix.size() - 2);
    rows.push_back({{"part", part}, {"time_s", metric.value}, {"share", metric.value / time}});
  }
  return rows;
}

/// Rows by one of their texts, the longest first.
ordered_json sums_by(const ordered_json& rows, const char* key, double time) {
  std::map<std::string, double> sums;
  for (const ordered_json& row : rows)
    sums[row.at(key).get<std::string>()] += row.at("total_s").get<double>();
  std::vector<std::pair<std::string, double>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  ordered_json result = ordered_json::array();
  for (const auto& [name, total] : sorted)
    result.push_back({{key, name}, {"time_s", total}, {"share", total / time}});
  return result;
}

/// The ten longest, all their runs together.
ordered_json longest_of(const ordered_json& kernels, double time) {
  constexpr std::size_t kLongest = 10;
  std::vector<ordered_json> rows(kernels.begin(), kernels.end());
  std::stable_sort(rows.begin(), rows.end(), [](const ordered_json& a, const ordered_json& b) {
    return a.at("total_s").get<double>() > b.at("total_s").get<double>();
  });
  if (rows.size() > kLongest) rows.resize(kLongest);
  for (ordered_json& row : rows) row["share"] = row.at("total_s").get<double>() / time;
  return rows;
}

/// What limits the run, of the rows of its kernels and transfers.
void explain_limits(const RunRecord& record, ordered_json& explanation) {
  explanation["time"] = explain_time(record);
  if (explanation["time"].is_null()) return;
  const double time = explanation["time"]["value"];
  explanation["breakdown"] = explain_breakdown(record, time);
  if (const Metric* exposed = record.find("breakdown.exposed_communication_s")) {
    explanation["exposed_communication"] = {{"time_s", exposed->value},
                                            {"share", exposed->value / time}};
  }
  const ordered_json kernels = explanation.value("kernels", ordered_json::array());
  explanation["bounds"] = sums_by(kernels, "bound", time);
  explanation["classes"] = sums_by(kernels, "class", time);
  explanation["communication"] =
      sums_by(explanation.value("transfers", ordered_json::array()), "class", time);
  explanation["longest"] = longest_of(kernels, time);
}

void explain_model_step(const Experiment& e, const KnownReplay& known, ordered_json& explanation) {
  Explained explained = explain_model(e);
  const ExperimentNetwork network(e);
  PricedProgram priced =
      price(explained.program, e.system.accelerator, *kernel_model(e), network.start());
  if (known.ended()) priced.costs.kernels = known.outcome().kernels;
  const std::vector<Role>& roles = explained.program.roles;
  const Role& role =
      known.ended() ? roles.at(static_cast<std::size_t>(known.result().last_role)) : roles.back();
  explanation["sizes"] = std::move(explained.sizes);
  explanation["role"] = role.name;
  explanation["kernels"] =
      explain_kernels(explained.program, role, priced.costs, e.system.accelerator);
  explanation["transfers"] =
      explain_transfers(explained.program, role, priced, network.start().topology());
}

/// What a result says in words: algorithm, protocol, bottleneck, bound.
ordered_json explain_labels(const RunRecord& record) {
  ordered_json labels = ordered_json::object();
  for (const Label& label : record.labels) labels[label.name] = label.value;
  return labels;
}

ordered_json explain_links(const RunRecord& record) {
  ordered_json rows = ordered_json::array();
  for (const LinkUse& use : record.link_classes) {
    rows.push_back({{"name", use.name},
                    {"links", use.links},
                    {"bytes", use.bytes},
                    {"busy_share", use.busy_share},
                    {"peak_share", use.peak_share}});
  }
  return rows;
}

}  // namespace

nlohmann::ordered_json explain(const LoadedExperiment& loaded) {
  const Experiment& e = loaded.experiment;
  Trials trials(loaded);
  const RunRecord& record = trials.record();
  ordered_json explanation = {
      {"schema", "orrery.explain/1"},       {"identity", loaded.identity},
      {"experiment", record.experiment},    {"name", record.name},
      {"status", to_string(record.status)}, {"reason", record.reason},
      {"labels", explain_labels(record)},   {"links", explain_links(record)}};
  if (e.kind == ExperimentKind::kTraining || e.kind == ExperimentKind::kInference)
    explain_model_step(e, trials.replay(), explanation);
  if (e.kind == ExperimentKind::kOperator) explain_operator(e, explanation);
  explain_limits(record, explanation);
  Effects effects = trials.effects();
  explanation["no_effect"] = std::move(effects.none);
  explanation["not_examined"] = std::move(effects.not_examined);
  explanation["configuration"] = explain_configuration(loaded);
  return explanation;
}

}  // namespace orrery
