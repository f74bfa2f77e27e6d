// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/metrics.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/keys/common_metrics.h"
#include "sim/app/experiments/serving/request_times.h"
#include "sim/results/metric_table.h"
#include "sim/serving/queue_trend.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

constexpr const char* kServing = "serving";

const DeclaredMetric kCompleted{{"completed", "1", "requests that were answered", kServing}};
const DeclaredMetric kDuration{
    {"duration_s", "s", "time from the first arrival to the last token", kServing, Follows::kTime}};
const DeclaredMetric kRequestThroughput{
    {"request_throughput", "1/s", "requests answered over the duration", kServing, Follows::kRate}};
const DeclaredMetric kRequestGoodput{
    {"request_goodput", "1/s",
     "requests over the duration that kept all that serving.slo promises (ttft, tpot, e2el; where "
     "only that is given, the bound of the 99th percentile)",
     kServing}};
const DeclaredMetric kSloAttainment{
    {"slo_attainment", "1", "share of the requests that kept all that serving.slo promises",
     kServing}};
const DeclaredMetric kSloMet{{"slo_met", "",
                              "whether the 99th percentiles keep what serving.slo promises of them",
                              kServing}};
const DeclaredMetric kOutputThroughput{
    {"output_throughput", "1/s", "output tokens over the duration", kServing, Follows::kRate}};
const DeclaredMetric kTotalThroughput{{"total_token_throughput", "1/s",
                                       "prompt and output tokens over the duration", kServing,
                                       Follows::kRate}};
const DeclaredMetric kOutputPerAccelerator{{"output_throughput_per_accelerator", "1/s",
                                            "output tokens over the duration, for each accelerator",
                                            kServing, Follows::kRate}};
const DeclaredMetric kTotalPerAccelerator{
    {"total_throughput_per_accelerator", "1/s",
     "prompt and output tokens over the duration, for each accelerator", kServing, Follows::kRate}};
const DeclaredMetric kOutputPerUser{{"output_throughput_per_user", "1/s",
                                     "1 over the mean time per further token of a request",
                                     kServing, Follows::kRate}};
const DeclaredMetric kIterations{{"iterations", "1", "iterations of all instances", kServing}};
const DeclaredMetric kPreemptions{
    {"preemptions", "1", "times that the cache of a request was dropped", kServing}};
const DeclaredMetric kStopped{
    {"stopped", "", "yes where the run was ended before all requests were answered", kServing}};
const DeclaredMetric kPrefixHits{{"prefix_hit_share", "1",
                                  "share of the tokens of prompts that were kept from earlier ones",
                                  kServing}};
const DeclaredMetric kLoaded{{"kv_loaded_tokens", "1",
                              "tokens of prompts that were brought back from memory below that of "
                              "the devices",
                              kServing}};
const DeclaredMetric kAdapterLoads{
    {"adapter_loads", "1", "adapters that were brought from host memory into slots", kServing}};
const DeclaredMetric kBusyShare{
    {"busy_share", "1", "share of the duration in which instances ran iterations", kServing}};
const DeclaredMetric kKvBlocks{
    {"kv_blocks", "1", "blocks of the KV cache of a rank, least of all groups", kServing}};
const DeclaredMetric kKvTokens{
    {"kv_tokens", "1", "tokens that the KV cache of a rank has room for, least of all groups",
     kServing}};
const DeclaredMetric kKvBytes{
    {"kv_bytes", "B", "memory of a rank for the KV cache, least of all groups", kServing}};
const DeclaredMetric kKvRequests{
    {"kv_requests", "1",
     "requests of max_model_len tokens that the KV cache of a rank has room for at once, least of "
     "all groups",
     kServing}};
const DeclaredMetric kLoad{
    {"load", "",
     "stable: the queue returns to its level of the first quarter, or gains at most 2 % of the "
     "arrivals; saturated: it gains more, with 95 % confidence; undecided: too few arrivals",
     kServing}};
const DeclaredMetric kDeciding{{"deciding_requests", "1",
                                "requests that would decide an undecided load (estimate)",
                                kServing}};
const DeclaredMetric kSaturated{
    {"saturated", "", "yes if the load is saturated; no if it is stable or undecided", kServing}};
const DeclaredMetric kSaturatedSince{
    {"saturated_since_s", "s",
     "time from the first arrival at which the growth of those that wait begins: a level and, from "
     "there on, a line fit them best; where saturated is yes",
     kServing}};
const DeclaredMetric kQueueSlope{
    {"queue_slope", "1/s", "growth of the requests that wait, after the warm-up", kServing}};
const DeclaredMetric kMeanWaiting{
    {"mean_waiting", "1", "requests that wait at a time, after the warm-up", kServing}};
const DeclaredMetric kWarmUp{
    {"warm_up_s", "s", "time from the first arrival that queue figures leave out", kServing}};
const DeclaredMetric kShortfall{{"kv_memory_shortfall_bytes", "B",
                                 "memory that a rank lacks for one block of its KV cache",
                                 kServing}};

const DeclaredMetric kMoved{{"kv_transferred_bytes", "B",
                             "keys and values that went from one instance to another", kServing}};

const UserTimeMetrics kUserTimes("");
const TimeMetrics kUrgentTtft("urgent_ttft",
                              "time from arrival to the first token of requests of priority 0");
const TimeMetrics kTransfer(
    "kv_transfer", "time from the first token until the KV cache has reached the decode replica");

const char* load_text(LoadState load) {
  if (load == LoadState::kUndecided) return "undecided";
  return load == LoadState::kSaturated ? "saturated" : "stable";
}

void report_queue(const ServingLog& log, RunRecord& record) {
  const QueueTrend trend = queue_trend(log.served());
  const bool saturated = trend.load == LoadState::kSaturated;
  add_label(record, kLoad, load_text(trend.load));
  add_label(record, kSaturated, saturated ? "yes" : "no");
  if (trend.deciding > 0) add_metric(record, kDeciding, trend.deciding);
  if (saturated) add_metric(record, kSaturatedSince, to_seconds(trend.since).base());
  add_metric(record, kQueueSlope, trend.slope);
  add_metric(record, kMeanWaiting, trend.mean);
  add_metric(record, kWarmUp, to_seconds(trend.from).base());
}

/// Keeps the least or the most of all groups.
void keep(RunRecord& record, const DeclaredMetric& metric, double value,
          const double& (*which)(const double&, const double&)) {
  for (Metric& known : record.metrics) {
    if (known.name != metric.info().name) continue;
    known.value = which(known.value, value);
    return;
  }
  add_metric(record, metric, value);
}

void keep_least(RunRecord& record, const DeclaredMetric& metric, double value) {
  keep(record, metric, value, std::min<double>);
}

void keep_most(RunRecord& record, const DeclaredMetric& metric, double value) {
  keep(record, metric, value, std::max<double>);
}

}  // namespace

bool report_memory(const ServingGroup& group, const ServingMemory& memory, RunRecord& record) {
  keep_least(record, kKvBlocks, static_cast<double>(memory.blocks));
  keep_least(record, kKvTokens, static_cast<double>(memory.blocks * memory.block_tokens));
  keep_least(record, kKvBytes, (memory.block * static_cast<double>(memory.blocks)).base());
  keep_most(record, kPeakMemoryBytes, memory.taken().base());
  // Blocks that are given may be more than the share of an engine has room for, not more than the
  // device has.
  if (group.engine->memory().blocks > 0 && memory.taken() > memory.device) {
    record.status = RunStatus::kInfeasible;
    add_metric(record, kShortfall, (memory.taken() - memory.device).base());
    record.reason = "does not fit: a rank of '" + group.name + "' takes " +
                    format_si(memory.taken().base(), "B") + " with its " +
                    std::to_string(memory.blocks) + " blocks, of " +
                    format_si(memory.device.base(), "B") + " of device memory";
    return false;
  }
  const std::int64_t longest = group.engine->max_model_len;
  if (longest > 0 && memory.blocks > 0) {
    const double requests = memory.requests(longest);
    keep_least(record, kKvRequests, requests);
    if (requests >= 1) return true;
    record.status = RunStatus::kInfeasible;
    record.reason = "does not fit: the cache of a rank of '" + group.name + "' holds " +
                    std::to_string(memory.blocks * memory.block_tokens) +
                    " tokens, and max_model_len is " + std::to_string(longest);
    return false;
  }
  if (memory.blocks > 0) return true;
  const Bytes taken = memory.weights + memory.overheads() + memory.block;
  record.status = RunStatus::kInfeasible;
  add_metric(record, kShortfall, (taken - memory.usable).base());
  record.reason = "does not fit: a rank of '" + group.name + "' needs " +
                  format_si(memory.weights.base(), "B") + " of weights and " +
                  format_si(memory.overheads().base(), "B") + " to work, of " +
                  format_si(memory.usable.base(), "B") + " that the engine may use";
  return false;
}

void report_engines(const std::vector<ServingGroup>& groups, RunRecord& record) {
  std::vector<std::string> said;
  std::string text;
  for (const ServingGroup& group : groups) {
    const std::string& defaults = group.engine_defaults;
    if (defaults.empty() || std::find(said.begin(), said.end(), defaults) != said.end()) continue;
    text += (said.empty() ? "" : "; ") + defaults;
    said.push_back(defaults);
  }
  if (!said.empty()) add_label(record, kEngineDefaults, text);
}

void report_handover(const Handover& handover, RunRecord& record) {
  add_metric(record, kMoved, handover.moved().base());
  kTransfer.report(handover.times(), record);
}

bool was_stopped(const RunRecord& record) {
  return std::any_of(record.labels.begin(), record.labels.end(),
                     [](const Label& label) { return label.name == kStopped.info().name; });
}

void report_serving(const ServingConfig& serving, const Service& service, const ServingLog& log,
                    const std::vector<Instance>& instances, RunRecord& record) {
  if (service.stopped()) add_label(record, kStopped, "yes");
  if (log.served().empty()) {
    record.status = RunStatus::kInfeasible;
    record.reason = "no request was answered";
    return;
  }
  const double duration = to_seconds(service.now() - service.first_arrival()).base();
  const double accelerators = serving.accelerators();
  double busy = 0, iterations = 0;
  for (const Instance& instance : instances) {
    busy += to_seconds(instance.busy_time()).base();
    iterations += static_cast<double>(instance.iterations());
  }
  RequestTimes times(log, serving.slo);
  const auto completed = static_cast<double>(log.served().size());
  const auto output = static_cast<double>(times.output);
  const double total = output + static_cast<double>(times.prompt);
  add_metric(record, kCompleted, completed);
  add_metric(record, kDuration, duration);
  add_metric(record, kRequestThroughput, completed / duration);
  add_metric(record, kRequestGoodput, static_cast<double>(times.good) / duration);
  add_metric(record, kOutputThroughput, output / duration);
  add_metric(record, kTotalThroughput, total / duration);
  times.report(kUserTimes, log.gaps(), record);
  if (times.urgent.values.size() < log.served().size()) times.urgent.report(kUrgentTtft, record);
  add_metric(record, kOutputPerAccelerator, output / duration / accelerators);
  add_metric(record, kTotalPerAccelerator, total / duration / accelerators);
  if (const Metric* tpot = record.find("mean_tpot_ms"); tpot != nullptr && tpot->value > 0)
    add_metric(record, kOutputPerUser, kMs / tpot->value);
  if (!serving.slo.empty()) {
    add_metric(record, kSloAttainment, static_cast<double>(times.good) / completed);
    add_label(record, kSloMet, times.meets(serving.slo) ? "yes" : "no");
  }
  report_queue(log, record);
  add_metric(record, kBusyShare, busy / duration / static_cast<double>(instances.size()));
  if (times.found > 0)
    add_metric(record, kPrefixHits,
               static_cast<double>(times.found) / static_cast<double>(times.prompt));
  double loaded = 0, adapters = 0;
  for (const Instance& instance : instances) {
    loaded += static_cast<double>(instance.loaded_tokens());
    adapters += static_cast<double>(instance.adapter_loads());
  }
  if (loaded > 0) add_metric(record, kLoaded, loaded);
  if (adapters > 0) add_metric(record, kAdapterLoads, adapters);
  add_metric(record, kPreemptions, static_cast<double>(times.preemptions));
  add_metric(record, kIterations, iterations);
  add_metric(record, kSimulatedTime, to_seconds(service.now()).base());
  add_metric(record, kEvents, static_cast<double>(service.events()));
}

namespace {

nlohmann::ordered_json part_row(const std::string& part, double time, double all) {
  return {{"part", part}, {"time_s", time}, {"share", all > 0 ? time / all : 0}};
}

/// Mean time of a request from its arrival to its last token.
nlohmann::ordered_json request_parts(const ServingLog& log) {
  double queue = 0, prefill = 0, transfer = 0, decode = 0;
  for (const ServedRequest& a : log.served()) {
    const Picoseconds goes_on = a.moved == kNotYet ? a.first_token : a.moved;
    queue += to_seconds(a.started - a.arrival).base();
    prefill += to_seconds(a.first_token - a.started).base();
    transfer += to_seconds(goes_on - a.first_token).base();
    decode += to_seconds(a.last_token - goes_on).base();
  }
  const auto requests = static_cast<double>(log.served().size());
  const double all = queue + prefill + transfer + decode;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [part, time] : {std::pair{"queue", queue}, std::pair{"prefill", prefill},
                                   std::pair{"transfer", transfer}, std::pair{"decode", decode}})
    if (time > 0) rows.push_back(part_row(part, time / requests, all / requests));
  return rows;
}

/// Time of the instances of a group: iterations with prompts and without as devices take for them,
/// what iterations take longer (the host, the slowest rank), and idle time.
void add_instance_parts(const ServingGroup& group, const Instance* first, double duration,
                        nlohmann::ordered_json& rows) {
  double prefill = 0, decode = 0, busy = 0;
  for (int i = 0; i < group.replicas; ++i) {
    const Instance& instance = first[i];
    const auto at_once = static_cast<double>(instance.ranks() * instance.lanes());
    prefill += instance.iteration_kinds().prompts.seconds() / at_once;
    decode += instance.iteration_kinds().decodes.seconds() / at_once;
    busy += to_seconds(instance.busy_time()).base();
  }
  const double all = duration * group.replicas;
  const double host = std::max(0.0, busy - prefill - decode);
  rows.push_back(part_row(group.name + ": iterations with prompts", prefill, all));
  rows.push_back(part_row(group.name + ": iterations of decode alone", decode, all));
  rows.push_back(part_row(group.name + ": host, and waits for the slowest rank", host, all));
  rows.push_back(part_row(group.name + ": idle", std::max(0.0, all - busy), all));
}

/// Names the cause of the largest part of a request's time.
std::string limit_text(const nlohmann::ordered_json& parts, const RunRecord& record) {
  const nlohmann::ordered_json* largest = &parts.front();
  for (const nlohmann::ordered_json& part : parts)
    if (part.at("share") > largest->at("share")) largest = &part;
  std::string text = largest->at("part");
  const Metric* preemptions = record.find("preemptions");
  if (preemptions != nullptr && preemptions->value > 0)
    text += "; the KV cache is full at times: " + print_number(preemptions->value) + " preemptions";
  return text;
}

}  // namespace

void explain_load(const ServingConfig& serving, const std::vector<Instance>& instances,
                  const ServingLog& log, const RunRecord& record,
                  nlohmann::ordered_json& explanation) {
  const Metric* duration = record.find("duration_s");
  if (duration == nullptr) return;
  nlohmann::ordered_json parts = request_parts(log);
  explanation["limit"] = limit_text(parts, record);
  explanation["request_time"] = std::move(parts);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const Instance* first = instances.data();
  for (const ServingGroup& group : serving.fleet) {
    add_instance_parts(group, first, duration->value, rows);
    first += group.replicas;
  }
  explanation["instance_time"] = std::move(rows);
}

}  // namespace orrery
