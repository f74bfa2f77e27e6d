// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/run_validation.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <utility>

#include "models/transfers/flow_model.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/config/byte_source.h"
#include "sim/config/load.h"
#include "sim/serving/service.h"
#include "sim/units/text.h"
#include "validation/checks/golden_section.h"

namespace orrery {
namespace {

using nlohmann::json;

constexpr double kRunMs = 1e3;

json read_json_of(const std::string& path) {
  try {
    return json::parse(read_input(path));
  } catch (const json::exception& error) {
    throw config::ConfigError(path + ": error: " + error.what());
  }
}

std::string requests_path(const std::string& folder) {
  const std::string plain = folder + "/requests.jsonl";
  return std::filesystem::exists(plain) ? plain : plain + ".gz";
}

void read_requests(const std::string& path, ServingRun& run) {
  std::istringstream text(read_input(path));
  std::string line;
  double first = 0;
  while (std::getline(text, line)) {
    if (line.empty()) continue;
    const json record = json::parse(line);
    const auto queued = record.at("queued_ts").get<double>();
    MeasuredRequest measured;
    measured.request.prompt = record.at("input_toks").get<std::int64_t>();
    measured.request.output = record.at("output_toks").get<std::int64_t>();
    if (run.requests.empty()) first = queued;
    measured.request.arrival = to_picoseconds(Seconds(std::max(0.0, queued - first)));
    measured.first_token = record.at("first_token_ts").get<double>() - first;
    measured.last_token = record.at("last_token_ts").get<double>() - first;
    run.requests.push_back(measured);
  }
  std::stable_sort(run.requests.begin(), run.requests.end(), [](const auto& a, const auto& b) {
    return a.request.arrival < b.request.arrival;
  });
  for (std::size_t i = 0; i < run.requests.size(); ++i)
    run.requests[i].request.id = static_cast<std::int64_t>(i);
}

/// The machine that a run was on. Cards in one host have the PCIe switch between them, or what the
/// run's description says of the way between two.
std::string system_of_run(const ServingRun& run) {
  const int cards = run.tp * run.dp;
  static const std::map<std::string, std::string> names = {
      {"H100", "dgx_h100"}, {"H200", "dgx_h200"}, {"A100", "dgx_a100"}, {"B200", "dgx_b200"}};
  if (const auto known = names.find(run.hardware); known != names.end()) return known->second;
  if (run.hardware != "RTXPRO6000")
    throw config::ConfigError(run.name + ": no system is called '" + run.hardware + "'");
  if (cards == 1) return "rtx_pro_6000";
  std::string link = "latency: 5 us, efficiency: 0.85", accelerator = "rtx_pro_6000";
  if (run.link_bandwidth) {
    link = fmt::format("latency: {}, efficiency: 1", print(run.link_latency));
    accelerator = fmt::format("{{extends: rtx_pro_6000, scale_up: {{bandwidth: {}}}}}",
                              print(*run.link_bandwidth));
  }
  return fmt::format(
      "{{extends: rtx_pro_6000, accelerator: {0}, accelerators: {1}, accelerators_per_node: {1}, "
      "scale_up: {{kind: nvswitch, links_per_switch: [1], {2}}}}}",
      accelerator, cards, link);
}

/// Requests that are there.
class RunRequests final : public RequestSource {
 public:
  explicit RunRequests(const ServingRun& run) : run_(run) {}
  std::optional<Request> next() override {
    if (next_ == run_.requests.size()) return std::nullopt;
    return run_.requests[next_++].request;
  }

 private:
  const ServingRun& run_;
  std::size_t next_ = 0;
};

void sort_times(ServedTimes& times) {
  for (auto* values : {&times.ttft, &times.tpot, &times.e2el})
    std::sort(values->begin(), values->end());
}

/// Tokens of all ranks go to all of them and their results back, as vLLM's collectives of experts
/// do where no library for it is there (all2all_backend allgather_reducescatter).
std::function<Seconds(std::int64_t)> exchange_of(const Machine& machine, int ranks,
                                                 std::int64_t hidden) {
  if (ranks == 1) return {};
  const auto network = std::make_shared<FlowModel>(machine.system(), machine.nodes());
  return [network, ranks, hidden](std::int64_t tokens) {
    Transfer transfer;
    transfer.groups.emplace_back(static_cast<std::size_t>(ranks));
    std::iota(transfer.groups[0].begin(), transfer.groups[0].end(), 0);
    transfer.bytes = Bytes(2.0 * static_cast<double>(tokens * hidden));
    Seconds time{};
    for (const TransferKind kind : {TransferKind::kAllGather, TransferKind::kReduceScatter}) {
      transfer.kind = kind;
      time = time + network->isolated_time(transfer);
    }
    return time;
  };
}

RunErrors::Of errors_of(const std::vector<double>& measured, const std::vector<double>& predicted) {
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const auto at = [&](double share) {
    return quantile(predicted, share) / quantile(measured, share) - 1;
  };
  return {mean(predicted) / mean(measured) - 1, at(0.5), at(0.9), at(0.99)};
}

double squares(const RunErrors::Of& e) {
  return e.mean * e.mean + e.p50 * e.p50 + e.p90 * e.p90 + e.p99 * e.p99;
}

}  // namespace

ServingRun read_serving_run(const std::string& folder) {
  ServingRun run;
  run.name = std::filesystem::path(folder).lexically_normal().filename().string();
  if (run.name.empty()) run.name = std::filesystem::path(folder).parent_path().filename().string();
  try {
    const json meta = read_json_of(folder + "/meta.json");
    const json cluster = read_json_of(folder + "/config.json");
    run.model = meta.at("model").get<std::string>();
    run.version = meta.at("vllm_version").get<std::string>();
    const json& engine = meta.at("engine_kwargs");
    run.tp = engine.value("tensor_parallel_size", 1);
    run.dp = engine.value("data_parallel_size", 1);
    run.expert_parallel = engine.value("enable_expert_parallel", false);
    run.max_num_seqs = engine.at("max_num_seqs").get<std::int64_t>();
    run.max_num_batched_tokens = engine.at("max_num_batched_tokens").get<std::int64_t>();
    if (cluster.contains("link_bw")) {  // GB/s and ns (LLMServingSim, cluster configuration)
      run.link_bandwidth = BytesPerSecond(cluster.at("link_bw").get<double>() * 1e9);
      run.link_latency = Seconds(cluster.at("link_latency").get<double>() * 1e-9);
    }
    run.hardware =
        cluster.at("nodes").at(0).at("instances").at(0).at("hardware").get<std::string>();
    read_requests(requests_path(folder), run);
  } catch (const json::exception& error) {
    throw config::ConfigError(folder + ": error: no run of a serving engine: " + error.what());
  }
  if (run.requests.empty()) throw config::ConfigError(folder + ": error: has no requests");
  return run;
}

std::string run_experiment(const ServingRun& run, const std::string& model) {
  const std::string experts = run.expert_parallel ? fmt::format(", ep: {}", run.tp * run.dp) : "";
  return fmt::format(
      R"(experiment: serving
model: {}
serving:
  workload: {{rate: 1 /s, requests: 1}}
  fleet:
    - {{system: {}, parallel: {{tp: {}, dp: {}{}}}, precision: bf16, kv_precision: bf16, engine: )"
      R"({{kind: vllm, version: "{}", max_num_seqs: {}, max_num_batched_tokens: {}}}}}
)",
      model, system_of_run(run), run.tp, run.dp, experts, run.version, run.max_num_seqs,
      run.max_num_batched_tokens);
}

ServedTimes measured_times(const ServingRun& run) {
  ServedTimes times;
  for (const MeasuredRequest& r : run.requests) {
    const double arrival = to_seconds(r.request.arrival).base();
    times.ttft.push_back((r.first_token - arrival) * kRunMs);
    times.e2el.push_back((r.last_token - arrival) * kRunMs);
    if (r.request.output > 1)
      times.tpot.push_back((r.last_token - r.first_token) * kRunMs /
                           static_cast<double>(r.request.output - 1));
  }
  sort_times(times);
  return times;
}

ServedTimes served_times(const ServingRun& run, const ServingExperiment& experiment,
                         const ServingFleet& fleet, IterationPricer* pricer,
                         const std::optional<HostCosts>& host) {
  std::vector<Instance> instances = fleet.instances(experiment.serving.fleet, pricer, host);
  const auto router = Routers::at("router", experiment.serving.router)();
  RunRequests source(run);
  ServingLog log;
  Service(instances, *router, source, log).run();
  ServedTimes times;
  for (const ServedRequest& a : log.served()) {
    times.ttft.push_back(to_seconds(a.first_token - a.arrival).base() * kRunMs);
    times.e2el.push_back(to_seconds(a.last_token - a.arrival).base() * kRunMs);
    if (a.output > 1)
      times.tpot.push_back(to_seconds(a.last_token - a.first_token).base() * kRunMs /
                           (a.output - 1));
  }
  sort_times(times);
  return times;
}

RunCase::RunCase(ServingRun run, const std::string& model, const std::string& tables)
    : run_(std::move(run)), measured_(measured_times(run_)) {
  config::Diagnostics diagnostics;
  config::Node node = config::load_text(run_experiment(run_, model), run_.name, diagnostics);
  diagnostics.throw_if_errors();
  experiment_ = std::dynamic_pointer_cast<const ServingExperiment>(
      load_experiment(std::move(node), {}, diagnostics).experiment);
  fleet_ = std::make_unique<ServingFleet>(experiment_->fleet());
  if (tables.empty()) return;
  EngineTables::Plan plan;
  plan.tp = run_.tp;
  plan.ranks = run_.dp;
  plan.units = fleet_->machine(0).accelerator().compute.units.value;
  plan.exchange = exchange_of(fleet_->machine(0), run_.dp, fleet_->model().hidden);
  tables_ =
      std::make_unique<EngineTables>(tables + "/" + run_.model + "/bf16", fleet_->model(), plan);
}

ServedTimes RunCase::predicted(const HostCosts& host) const {
  return served_times(run_, *experiment_, *fleet_, tables_.get(), host);
}

RunErrors run_errors(const ServedTimes& measured, const ServedTimes& predicted) {
  return {errors_of(measured.ttft, predicted.ttft), errors_of(measured.tpot, predicted.tpot),
          errors_of(measured.e2el, predicted.e2el)};
}

HostCosts RunCase::host() const {
  HostCosts host = experiment_->serving.fleet.front().engine->host;
  host.request = Seconds(0);
  return host;
}

HostCosts fitted_host(const std::vector<const RunCase*>& runs) {
  constexpr double kMostIteration = 10e-3, kShare = 1e-3;
  HostCosts host = runs.front()->host();
  const auto sum = [&](auto&& of_run) {
    double all = 0;
    for (const RunCase* run : runs)
      all += of_run(run_errors(run->measured(), run->predicted(host)));
    return all;
  };
  host.iteration = Seconds(least_of(kMostIteration, kShare, [&](double time) {
    host.iteration = Seconds(time);
    return sum([](const RunErrors& e) { return squares(e.tpot); });
  }));
  return host;
}

}  // namespace orrery
