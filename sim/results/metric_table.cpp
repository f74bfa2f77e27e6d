// SPDX-License-Identifier: Apache-2.0
#include "sim/results/metric_table.h"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

constexpr const char* kAll = "all";
constexpr const char* kSteps = "training, inference";
constexpr const char* kModels = "training, inference, serving";
constexpr const char* kEnergy = "operator, training, inference, serving";

// The latencies of the vLLM benchmark: a statistic of a quantity.
void add_latencies(std::vector<MetricInfo>& table) {
  const std::pair<const char*, const char*> quantities[] = {
      {"ttft", "arrival to first output token"},
      {"tpot", "(last token - first token) / (output tokens - 1) of a request"},
      {"itl", "gap between two consecutive output tokens"},
      {"e2el", "arrival to last output token"}};
  const std::pair<const char*, const char*> statistics[] = {{"mean", "mean"},
                                                            {"median", "median"},
                                                            {"p90", "90th percentile"},
                                                            {"p95", "95th percentile"},
                                                            {"p99", "99th percentile"}};
  for (const auto& [quantity, meaning] : quantities) {
    for (const auto& [statistic, words] : statistics) {
      table.push_back({std::string(statistic) + "_" + quantity + "_ms", "ms",
                       std::string(words) + " of: " + meaning, "serving"});
    }
  }
}

std::vector<MetricInfo> of_kernels_and_transfers() {
  return {
      {"time_s", "s", "duration", "operator, collective, replay"},
      {"flops", "FLOP", "work of the kernels on matrix units, a multiply-add counts 2", "operator"},
      {"flops_per_s", "FLOP/s", "rate of the kernels", "operator"},
      {"bytes", "B", "device memory traffic of the kernels", "operator"},
      {"bytes_per_s", "B/s", "rate of that traffic", "operator"},
      {"bound", "",
       "what limits the kernels for most of the time: tensor, vector, L2, HBM (device memory of "
       "any "
       "kind), host (link) or latency (launch, pipelines that fill and drain, steps that wait for "
       "each other)",
       "operator"},
      {"fidelity", "", "how the time was found: closed (form) or tile (blocks as events)",
       "operator"},
      {"share_of_limit", "1",
       "time at that limit over the time taken; of a collective: the least time that the ports of "
       "ranks and systems allow",
       "operator, collective"},
      {"clock_hz", "Hz",
       "clock of the units, mean over the time of the kernels (of a step: on the rank that ends "
       "last)",
       kEnergy},
      {"power_state", "",
       "burst (after a few replays, as tables are measured) or steady (repeated without end)",
       kEnergy},
      {"algorithm", "", "algorithm of the collective", "collective"},
      {"protocol", "", "protocol of the collective", "collective"},
      {"algorithm_bytes_per_s", "B/s", "bytes over time, as nccl-tests counts them", "collective"},
      {"bus_bytes_per_s", "B/s", "the same by what a ring puts on the busiest link", "collective"},
      {"bottleneck", "", "link that limits the collective", "collective"}};
}

std::vector<MetricInfo> of_steps_and_serving() {
  return {
      {"step_time_s", "s", "one step", kSteps},
      {"forward_time_s", "s", "forward part of the step", "training"},
      {"backward_time_s", "s", "backward part of the step", "training"},
      {"tokens_per_s", "1/s", "tokens of the step over its time", kSteps},
      {"tokens_per_s_per_accelerator", "1/s", "the same over the accelerator packages", kSteps},
      {"tokens_per_s_per_user", "1/s", "output tokens of one sequence over time", "inference"},
      {"flops_per_s_per_accelerator", "FLOP/s", "model FLOPs over time and packages", "training"},
      {"completed", "1", "requests completed", "serving"},
      {"request_throughput", "1/s", "requests completed over time", "serving"},
      {"request_goodput", "1/s", "requests within their latency targets over time", "serving"},
      {"output_throughput", "1/s", "output tokens over time", "serving"},
      {"total_token_throughput", "1/s", "input and output tokens over time", "serving"}};
}

std::vector<MetricInfo> of_whole_runs() {
  return {
      {"iterations", "1", "scheduler iterations", "serving"},
      {"output_throughput_per_accelerator", "1/s", "output tokens over time and packages",
       "serving"},
      {"total_throughput_per_accelerator", "1/s", "all tokens over time and packages", "serving"},
      {"output_throughput_per_user", "1/s", "output tokens of one request over time", "serving"},
      {"usd_per_million_output_tokens", "USD", "cost of a million output tokens", "serving"},
      {"time_s_by_rank", "s", "duration on each rank", "replay"},
      {"model_flops_utilization", "1",
       "model FLOPs (no recomputation, causal attention) over the dense peak", kModels},
      {"hardware_flops_utilization", "1", "FLOPs executed over the dense peak", kModels},
      {"peak_memory_bytes", "B", "device memory of the fullest rank", kModels},
      {"memory_shortfall_bytes", "B", "of a point that does not fit: what that rank lacks",
       kModels},
      {"memory.weights_bytes", "B", "of that: weights", kModels},
      {"memory.gradients_bytes", "B", "of that: gradients", kModels},
      {"memory.optimizer_bytes", "B", "of that: optimizer states", kModels},
      {"memory.activations_bytes", "B", "of that: kept from forward to backward", kModels},
      {"memory.working_bytes", "B", "of that: alive while one layer runs", kModels},
      {"memory.kv_cache_bytes", "B", "of that: KV cache", kModels},
      {"memory.logits_bytes", "B", "of that: logits of one micro-batch", kModels},
      {"breakdown.stage", "", "the pipeline stage that ends last, whose parts these are", kModels},
      {"breakdown.compute_s", "s", "kernels, on the rank that ends last", kModels},
      {"breakdown.contention_s", "s", "kernels that transfers beside them slow down", kModels},
      {"breakdown.exposed_communication_s", "s", "waiting for transfers in flight", kModels},
      {"breakdown.bubble_s", "s", "waiting for other ranks to start a transfer", kModels},
      {"breakdown.optimizer_s", "s", "kernels of the optimizer", kModels},
      {"breakdown.host_s", "s", "launches", kModels},
      {"breakdown.idle_s", "s", "after the last operator", kModels},
      {"energy_j", "J", "energy of all accelerators used", kEnergy},
      {"average_power_w", "W", "that energy over the time", kEnergy},
      {"tokens_per_joule", "1/J", "tokens over that energy", kModels},
      {"window_power_w", "W",
       "the most that one accelerator averages over a window of power.response", kModels},
      {"system_power_w", "W",
       "average power of all systems: their accelerators', those without a rank idle, and what "
       "all-in power leaves beside the design power of accelerators",
       kModels},
      {"system_tokens_per_joule", "1/J", "tokens over the energy of all systems", kModels},
      {"simulated_time_s", "s", "simulated time", kAll},
      {"wall_time_s", "s", "time that the simulation took", kAll},
      {"events", "1", "events of the simulation", kAll}};
}

std::vector<MetricInfo> make_table() {
  std::vector<MetricInfo> table = of_kernels_and_transfers();
  const auto append = [&table](const std::vector<MetricInfo>& more) {
    table.insert(table.end(), more.begin(), more.end());
  };
  append(of_steps_and_serving());
  add_latencies(table);
  append(of_whole_runs());
  return table;
}

}  // namespace

const std::vector<MetricInfo>& metric_table() {
  static const std::vector<MetricInfo> table = make_table();
  return table;
}

const MetricInfo* find_metric(std::string_view name) {
  const auto& table = metric_table();
  const auto metric = std::find_if(table.begin(), table.end(),
                                   [&](const MetricInfo& info) { return info.name == name; });
  return metric == table.end() ? nullptr : &*metric;
}

}  // namespace orrery
