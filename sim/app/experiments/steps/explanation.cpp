// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/explanation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/experiments/core/known_replay.h"
#include "sim/app/experiments/steps/model_step.h"
#include "sim/graph/executions.h"
#include "sim/machine/clock.h"
#include "sim/machine/limits.h"
#include "workloads/steps/figures/statistics.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

/// Time on the critical path by some name, the longest first.
class PathSums {
 public:
  void add(const std::string& name, Picoseconds time) {
    if (time == 0) return;
    Sum& sum = sums_[name];
    sum.time += time;
    ++sum.operators;
  }
  ordered_json rows(const char* key) const {
    std::vector<std::pair<std::string, Sum>> sorted(sums_.begin(), sums_.end());
    std::ranges::stable_sort(
        sorted, [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
    ordered_json rows = ordered_json::array();
    for (const auto& [name, sum] : sorted)
      rows.push_back(
          {{key, name}, {"operators", sum.operators}, {"time_s", to_seconds(sum.time).base()}});
    return rows;
  }

 private:
  struct Sum {
    Picoseconds time = 0;
    std::uint64_t operators = 0;
  };
  std::map<std::string, Sum> sums_;
};

/// The slowest link of a transfer; what stands still on a link that is down never ends.
std::string bound_of(const PricedTransfer& price, const Topology& topology) {
  if (!price.bottleneck) return "latency";
  const std::string link = topology.bundle_name(*price.bottleneck);
  return std::isfinite(price.isolated_time.base()) ? link : link + " is down";
}

}  // namespace

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

namespace {

ordered_json explain_kernels(const StepExperiment& e, const Program& program, const Role& role,
                             const Costs& costs) {
  const ExecutionCounts counts = count_executions(program, role);
  ordered_json rows = ordered_json::array();
  each_run(counts.kernels, [&](std::size_t id, std::uint64_t runs) {
    const Kernel& kernel = program.kernels[id];
    ordered_json row = explain_kernel(kernel, costs.kernels[id], runs, e.system.accelerator);
    row["part"] = e.part_of(kernel);
    rows.push_back(std::move(row));
  });
  return rows;
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

ordered_json explain_path(const StepExperiment& e, const Program& program,
                          const std::vector<PathStep>& path) {
  PathSums parts, stages;
  for (const PathStep& step : path) {
    const Picoseconds time = step.end - step.begin;
    stages.add(program.roles[step.role].name, time);
    if (step.kind != OperatorKind::kCompute) {
      const Transfer& transfer = program.transfers[step.work];
      parts.add(std::string(to_string(transfer.kind)) + " " + transfer.purpose, time);
      continue;
    }
    parts.add("kernels: " + e.part_of(program.kernels[step.work]), step.running);
    parts.add("contention", step.longer);
    parts.add("host and launches", time - step.longer - step.running);
  }
  const Picoseconds end = path.empty() ? 0 : path.back().end;
  return {{"time_s", to_seconds(end).base()},
          {"operators", path.size()},
          {"parts", parts.rows("part")},
          {"stages", stages.rows("stage")}};
}

ordered_json explain_memory(const MemoryUse& use, const StepExperiment& e) {
  return {{"weights", use.weights.base()},      {"gradients", use.gradients.base()},
          {"optimizer", use.optimizer.base()},  {"activations", use.activations.base()},
          {"working", use.working.base()},      {"kv_cache", use.kv_cache.base()},
          {"logits", use.logits.base()},        {"total", use.total().base()},
          {"usable", e.usable_memory().base()}, {"fits", use.total() <= e.usable_memory()}};
}

}  // namespace

void explain_program(const StepExperiment& e, const Program& program, const KnownReplay& replay,
                     ordered_json& explanation) {
  const StepNetwork network(e);
  PricedProgram priced = price(program, e.system.accelerator,
                               *e.machine().kernels({e.fidelity, {}, e.measured}), network.start());
  if (replay.ended()) priced.costs.kernels = replay.outcome().kernels;
  const Role& role = replay.ended()
                         ? program.roles.at(static_cast<std::size_t>(replay.result().last_role))
                         : program.roles.back();
  explanation["role"] = role.name;
  explanation["kernels"] = explain_kernels(e, program, role, priced.costs);
  explanation["transfers"] = explain_transfers(program, role, priced, network.start().topology());
  if (!replay.ended()) return;
  const std::vector<PathStep> path = replay.critical_path();
  const bool whole = !path.empty() && path.back().end == replay.result().end;  // else ranks differ
  if (whole) explanation["critical_path"] = explain_path(e, program, path);
}

ordered_json explain_sizes(const StepExperiment& e, const StepSizes& sizes,
                           const Program& program) {
  const ProgramStatistics statistics = program_statistics(program);
  Bytes traffic;
  for (const auto& [name, kernels] : statistics.kernels) traffic += kernels.bytes;
  return {{"parameters", sizes.parameters},
          {"active_parameters", sizes.active_parameters},
          {"ranks", e.ranks()},
          {"accelerators", e.accelerators()},
          {"model_flops", sizes.model_flops.base()},
          {"executed_matrix_flops", statistics.matrix_flops().base()},
          {"device_memory_traffic_bytes", traffic.base()},
          {"memory_per_rank_bytes", explain_memory(sizes.memory, e)}};
}

}  // namespace orrery
