// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/metrics.h"

#include <fmt/core.h>
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

const DeclaredMetric kCompleted = served_metric("completed", "1", "requests that were answered");
const DeclaredMetric kDuration = served_metric(
    "duration_s", "s", "time from the first arrival to the last token", Follows::kTime);
const DeclaredMetric kSloAttainment = served_metric(
    "slo_attainment", "1", "share of the requests that kept all that serving.slo promises");
const DeclaredMetric kSloMet = served_metric(
    "slo_met", "", "whether the 99th percentiles keep what serving.slo promises of them");
const DeclaredMetric kIterations = served_metric("iterations", "1", "iterations of all instances");
const DeclaredMetric kPreemptions =
    served_metric("preemptions", "1", "times that the cache of a request was dropped");
const DeclaredMetric kStopped =
    served_metric("stopped", "", "yes where the run was ended before all requests were answered");
const DeclaredMetric kPrefixHits = served_metric(
    "prefix_hit_share", "1", "share of the tokens of prompts that were kept from earlier ones");
const DeclaredMetric kLoaded =
    served_metric("kv_loaded_tokens", "1",
                  "tokens of prompts that were brought back from memory below that of the devices");
const DeclaredMetric kAdapterLoads =
    served_metric("adapter_loads", "1", "adapters that were brought from host memory into slots");
const DeclaredMetric kBusyShare =
    served_metric("busy_share", "1", "share of the duration in which instances ran iterations");
const DeclaredMetric kKvBlocks =
    served_metric("kv_blocks", "1", "blocks of the KV cache of a rank, least of all groups");
const DeclaredMetric kKvTokens = served_metric(
    "kv_tokens", "1", "tokens that the KV cache of a rank has room for, least of all groups");
const DeclaredMetric kKvBytes =
    served_metric("kv_bytes", "B", "memory of a rank for the KV cache, least of all groups");
const DeclaredMetric kKvRequests =
    served_metric("kv_requests", "1",
                  "requests of max_model_len tokens that the KV cache of a rank has room for at "
                  "once, least of all groups");
const DeclaredMetric kLoad = served_metric(
    "load", "",
    "stable: the queue returns to its level of the first quarter, or gains at most 2 % of the "
    "arrivals; saturated: it gains more, with 95 % confidence; undecided: too few arrivals");
const DeclaredMetric kDeciding = served_metric(
    "deciding_requests", "1", "requests that would decide an undecided load (estimate)");
const DeclaredMetric kSaturated =
    served_metric("saturated", "", "yes if the load is saturated; no if it is stable or undecided");
const DeclaredMetric kSaturatedSince =
    served_metric("saturated_since_s", "s",
                  "time from the first arrival at which the growth of those that wait begins: a "
                  "level and, from there on, a line fit them best; where saturated is yes");
const DeclaredMetric kQueueSlope =
    served_metric("queue_slope", "1/s", "growth of the requests that wait, after the warm-up");
const DeclaredMetric kMeanWaiting =
    served_metric("mean_waiting", "1", "requests that wait at a time, after the warm-up");
const DeclaredMetric kWarmUp =
    served_metric("warm_up_s", "s", "time from the first arrival that queue figures leave out");
const DeclaredMetric kShortfall = served_metric(
    "kv_memory_shortfall_bytes", "B", "memory that a rank lacks for one block of its KV cache");

const DeclaredMetric kMoved = served_metric(
    "kv_transferred_bytes", "B", "keys and values that went from one instance to another");

const RateMetrics kRates("", "over the duration", ", for each accelerator",
                         "requests over the duration that kept all that serving.slo promises "
                         "(ttft, tpot, e2el; where only that is given, the bound of the 99th "
                         "percentile)",
                         "a request");
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

}  // namespace

bool report_memory(const ServingGroup& group, const ServingMemory& memory, RunRecord& record) {
  keep(record, kKvBlocks, static_cast<double>(memory.blocks), std::min<double>);
  keep(record, kKvTokens, static_cast<double>(memory.blocks * memory.block_tokens),
       std::min<double>);
  keep(record, kKvBytes, (memory.block * static_cast<double>(memory.blocks)).base(),
       std::min<double>);
  keep(record, kPeakMemoryBytes, memory.taken().base(), std::max<double>);
  // Blocks that are given may be more than the share of an engine has room for, not more than the
  // device has.
  if (group.engine->memory().blocks > 0 && memory.taken() > memory.device) {
    add_metric(record, kShortfall, (memory.taken() - memory.device).base());
    set_infeasible(record,
                   fmt::format("does not fit: a rank of '{}' takes {} with its {} blocks, of {} of "
                               "device memory",
                               group.name, format_si(memory.taken().base(), "B"), memory.blocks,
                               format_si(memory.device.base(), "B")));
    return false;
  }
  const std::int64_t longest = group.engine->max_model_len;
  if (longest > 0 && memory.blocks > 0) {
    const double requests = memory.requests(longest);
    keep(record, kKvRequests, requests, std::min<double>);
    if (requests >= 1) return true;
    set_infeasible(record, fmt::format("does not fit: the cache of a rank of '{}' holds {} tokens, "
                                       "and max_model_len is {}",
                                       group.name, memory.blocks * memory.block_tokens, longest));
    return false;
  }
  if (memory.blocks > 0) return true;
  const Bytes taken = memory.weights + memory.overheads() + memory.block;
  add_metric(record, kShortfall, (taken - memory.usable).base());
  set_infeasible(
      record,
      fmt::format("does not fit: a rank of '{}' needs {} of weights and {} to work, of {} that the "
                  "engine may use",
                  group.name, format_si(memory.weights.base(), "B"),
                  format_si(memory.overheads().base(), "B"), format_si(memory.usable.base(), "B")));
  return false;
}

void report_engines(const std::vector<ServingGroup>& groups, RunRecord& record) {
  std::vector<std::string> said;
  std::string text;
  for (const ServingGroup& group : groups) {
    const std::string& defaults = group.engine_defaults;
    if (defaults.empty() || std::ranges::find(said, defaults) != said.end()) continue;
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
  return std::ranges::count(record.labels, kStopped.info().name, &Label::name) > 0;
}

void report_serving(const ServingConfig& serving, const Service& service, const ServingLog& log,
                    const std::vector<Instance>& instances, RunRecord& record) {
  if (service.stopped()) add_label(record, kStopped, "yes");
  if (log.served().empty()) {
    set_infeasible(record, "no request was answered");
    return;
  }
  const double duration = to_seconds(service.now() - service.first_arrival()).base();
  double busy = 0, iterations = 0, loaded = 0, adapters = 0;
  for (const Instance& instance : instances) {
    busy += to_seconds(instance.busy_time()).base();
    iterations += static_cast<double>(instance.iterations());
    loaded += static_cast<double>(instance.loaded_tokens());
    adapters += static_cast<double>(instance.adapter_loads());
  }
  RequestTimes times(log, serving.slo);
  const auto completed = static_cast<double>(log.served().size());
  const auto output = static_cast<double>(times.output);
  const Rates rates{completed, static_cast<double>(times.good), output,
                    output + static_cast<double>(times.prompt), duration};
  add_metric(record, kCompleted, completed);
  add_metric(record, kDuration, duration);
  kRates.report(rates, record);
  times.report(kUserTimes, log.gaps(), record);
  if (times.urgent.values.size() < log.served().size()) times.urgent.report(kUrgentTtft, record);
  kRates.report_shares(rates, serving.accelerators(), record);
  if (!serving.slo.empty()) {
    add_metric(record, kSloAttainment, static_cast<double>(times.good) / completed);
    add_label(record, kSloMet, times.meets(serving.slo) ? "yes" : "no");
  }
  report_queue(log, record);
  add_metric(record, kBusyShare, busy / duration / static_cast<double>(instances.size()));
  if (times.found > 0)
    add_metric(record, kPrefixHits,
               static_cast<double>(times.found) / static_cast<double>(times.prompt));
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
