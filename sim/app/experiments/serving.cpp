// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/app/experiments/core/carbon.h"
#include "sim/app/experiments/core/intervals.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/engines/engine_site.h"
#include "sim/app/experiments/files/known_names.h"
#include "sim/app/experiments/files/price_list.h"
#include "sim/app/experiments/keys/algorithm_names.h"
#include "sim/app/experiments/serving/adapters.h"
#include "sim/app/experiments/serving/cost.h"
#include "sim/app/experiments/serving/metrics.h"
#include "sim/app/experiments/serving/record.h"
#include "sim/app/experiments/serving/steady.h"
#include "sim/app/experiments/serving/transfer.h"
#include "sim/app/experiments/serving/trust.h"
#include "sim/app/experiments/steps/checkpoint.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/config/load.h"
#include "sim/machine/what_if.h"
#include "sim/serving/router.h"
#include "sim/serving/service.h"
#include "sim/units/comma_separated.h"

namespace orrery {

const config::Schema<ServingExperiment>& ServingExperiment::schema() {
  using E = ServingExperiment;
  static const config::Schema<E> schema =
      experiment_schema<E>("serving", "requests through schedulers on simulated hardware")
          .optional_reference("model", &E::model, "models", "the language model")
          .required("serving", &E::serving, "requests and the fleet that serves them")
          .optional("fidelity", &E::fidelity,
                    "detail of the kernel model: closed form, tile (thread blocks as discrete "
                    "events), or auto, whichever predicts a kernel better")
          .optional("measured", &E::measured,
                    "operator tables (CSV) of the accelerators: kernels that they have take the "
                    "measured time");
  return schema;
}

namespace {

const RegisterExperiment<ServingExperiment> registered_serving(
    "serving", "requests through schedulers on simulated hardware");

/// "dgx_h100 TP8 x 2, dgx_b200 TP4".
std::string fleet_text(const ServingConfig& serving) {
  return comma_joined(serving.fleet, [](const ServingGroup& group) {
    std::string text = fmt::format("{} TP{}", group.system.name, group.parallel.tp);
    const auto add = [&text](const char* name, int size) {
      if (size > 1) text += fmt::format(" {}{}", name, size);
    };
    add("CP", group.parallel.cp);
    add("DCP", group.parallel.dcp);
    add("DP", group.parallel.dp);
    add("EP", group.parallel.ep);
    add("x ", group.replicas);
    if (group.role == InstanceRole::kPrefill) text += " (prefill)";
    if (group.role == InstanceRole::kDecode) text += " (decode)";
    return text;
  });
}

}  // namespace

void ServingExperiment::bind_machines() {
  machines_.clear();
  for (ServingGroup& group : serving.fleet) {
    try {
      machines_.push_back(std::make_shared<const Machine>(group.system, group.nodes, calibration,
                                                          Machine::Part::kWhole,
                                                          group.engine->kernel_calibrations));
    } catch (const config::KeyError& error) {
      if (error.paths().front() == "calibration") throw;  // a key of the experiment
      throw within(error, machines_.size());
    }
    group.system = machines_.back()->system();
    group.images = serving.images;
    group.image = size_of(serving.image);
  }
}

void ServingExperiment::share_machines(const std::shared_ptr<const Experiment>& other) {
  const auto& same = dynamic_cast<const ServingExperiment&>(*other);
  machines_ = same.machines_;
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    serving.fleet[i].system = same.serving.fleet[i].system;
    serving.fleet[i].images = serving.images;
    serving.fleet[i].image = size_of(serving.image);
  }
}

bool ServingExperiment::of_machines(const std::string& path) const {
  return path.starts_with("serving.fleet.") &&
         (path.find(".system.") != std::string::npos || path.ends_with(".nodes") ||
          path.find(".engine.kernel_calibrations") != std::string::npos ||
          path.ends_with(".engine.version") || path.ends_with(".engine.kind"));
}

std::vector<std::string> ServingExperiment::followed() const {
  std::vector<std::string> all;
  for (const ServingGroup& group : serving.fleet) {
    const std::vector<std::string> of_group = orrery::followed(group.system);
    all.insert(all.end(), of_group.begin(), of_group.end());
  }
  return all;
}

bool ServingExperiment::has_experts() const { return orrery::has_experts(model); }

void ServingExperiment::complete(config::Node& node, config::Diagnostics& diagnostics) {
  warn_of_checkpoint(model, node, diagnostics);
  require_prices(serving.prices, "serving.prices", node);
  if (!model.hf.path.empty())
    model.build();  // mistakes in that file are no contradiction of values
  config::Node* fleet = node.find("serving")->find("fleet");
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    ServingGroup& group = serving.fleet[i];
    complete_algorithms(group.algorithms, fleet->item(i).find("algorithms"), diagnostics);
    take_expert_ranks(model, ExpertSharing::kStage, group.parallel, fleet->item(i));
    group.widened_bits = take_checkpoint_precisions(
        model, group.system.accelerator, group.precision, group.kv_precision, fleet->item(i));
    ask_precision(model, fleet->item(i), node, diagnostics);
    EngineSite site =
        engine_site(group.system.accelerator, group.parallel, model, group.speculative);
    site.connector = group.role != InstanceRole::kBoth || !group.kv_tiers.empty();
    group.engine_defaults =
        follow_release(group.engine, site, *fleet->item(i).find("engine"), diagnostics);
  }
}

void ServingExperiment::check_names(const config::Node& node,
                                    config::Diagnostics& diagnostics) const {
  check_name({"serving.router", "router"}, serving.router, names_of<Routers>(), node, diagnostics);
  check_name({"serving.kv_transfer.router", "router"}, serving.kv_transfer.router,
             names_of<Routers>(), node, diagnostics);
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    check_topologies(group.system, group.nodes, group_path(i, "system"), node, diagnostics);
    check_algorithms(group.algorithms, group_path(i, "algorithms"), node, diagnostics);
  }
}

void ServingExperiment::check(const config::Node& node, config::Diagnostics& diagnostics) const {
  if (!is_written(node, "model")) return miss_key(diagnostics, node, "model", {kModelNote});
  try {
    require_transfers(serving);
    require_tiers(serving);
    require_adapters(serving);
  } catch (const config::KeyError& error) {
    config::report(error, node, diagnostics);
  }
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    refuse_optimizer_shards(node, group_path(i) + ".", diagnostics);
    const int available = group.system.ranks() * group.nodes;
    if (group.parallel.ranks() <= available) continue;
    complain(diagnostics, node,
             {group_path(i, "parallel.tp"), group_path(i, "parallel"), group_path(i)},
             fmt::format("{} ranks of a replica, but {} x {} has {}", ranks_text(group.parallel),
                         group.nodes, group.system.name, available));
  }
}

std::vector<InputFile> ServingExperiment::input_files() const {
  std::vector<InputFile> files;
  add_model_files(model, files);
  if (const std::string trace = serving.workload->file(); !trace.empty())
    files.push_back(file_read_now("trace", trace));
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    add_algorithm_files(group.algorithms, group_path(i, "algorithms"), files);
    add_routing_file(group.expert_routing, files);
    add_draft_files(group.speculative, files);
  }
  if (const std::string prices = price_file(serving.prices); !prices.empty())
    files.push_back(file_read_now("prices", prices));
  for (const auto& machine : machines_) {
    add_kernel_files(*machine, measured, files);
    add_collective_files(*machine, files);
  }
  return files;
}

void ServingExperiment::strip_names(nlohmann::ordered_json& configuration) const {
  erase_keys(configuration["model"], {"hf", "source", "model"});
  erase_keys(configuration["serving"], {"prices"});
  erase_keys(configuration["serving"]["workload"], {"trace"});
  for (nlohmann::ordered_json& group : configuration["serving"]["fleet"]) {
    erase_keys(group, {"name"});
    strip_system_names(group["system"]);
    strip_algorithm_paths(group["algorithms"]);
  }
}

void ServingExperiment::check_plan(const config::Node& node,
                                   config::Diagnostics& diagnostics) const {
  const LlmConfig llm = model.build();
  require_images(llm, serving);
  require_groups(llm, serving.fleet);
  warn_of_idle_slots(serving, node, diagnostics);
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    const PlacedPlan plan{group.parallel, group.system.ranks(), group_path(i) + "."};
    warn_of_straddling(plan, node, diagnostics);
    warn_of_copies(plan, llm, node, diagnostics);
  }
}

ServingFleet ServingExperiment::fleet() const {
  return {machines_, model.build(), serving.fleet, {fidelity, {}, measured}};
}

void ServingExperiment::run(const SimulateOptions& options, RunRecord& record) const {
  serve_with_intervals(fleet(), record, options);
}

void ServingExperiment::serve_with_intervals(const ServingFleet& fleet, RunRecord& record,
                                             const SimulateOptions& options) const {
  const std::vector<Instance> instances = serve(fleet, {}, record, options).instances;
  report_trust(fleet, instances, record, options);
}

void ServingExperiment::serve(const ServingFleet& fleet, RunRecord& record,
                              const SimulateOptions& options) const {
  serve(fleet, {}, record, options);
}

namespace {

struct EndedRun {
  const std::vector<Instance>& instances;
  const Service& service;
  const ServingLog& log;
  const SteadyWindow& window;
  const Autoscaler* autoscaler;  ///< null: all instances were there always
};

/// Figures of the steady window, and of what the fleet took. Figures per token are those of the
/// window for requests that arrive over time.
void report_work(const ServingConfig& serving, const ServingFleet& fleet, const EndedRun& run,
                 RunRecord& record) {
  const ServedWork work =
      served_work(serving, fleet.model(), run.service, run.log, run.instances, run.autoscaler);
  std::optional<ServedWork> steady;
  if (is_steady(run.window, run.log))
    steady = steady_work(serving, run.window, run.log, run.autoscaler);
  const ServedWork& per_token = steady && run.window.open() ? *steady : work;
  report_steady(serving, run.window, run.log, record);
  report_serving_utilization(serving, work, record);
  report_serving_servers(serving, work, record);
  report_serving_energy(serving, fleet, work, per_token, record);
  report_carbon(serving.carbon_intensity, record);
  report_serving_cost(serving, work, per_token, record);
  if (steady) report_steady_cost(serving, fleet, *steady, record);
}

}  // namespace

ServingExperiment::Served ServingExperiment::serve(const ServingFleet& fleet,
                                                   const std::vector<Slowness>& slowness,
                                                   RunRecord& record,
                                                   const SimulateOptions& options) const {
  std::unique_ptr<Timeline> timeline;
  if (!options.trace.empty()) timeline = std::make_unique<Timeline>(options.trace);
  const std::vector<ServingMemory> memory = fleet.memory(serving.fleet);
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (!report_memory(serving.fleet[i], memory[i], record)) return {};
  std::vector<Instance> instances = fleet.instances(serving.fleet, nullptr, {}, slowness);
  const auto router = Routers::at("router", serving.router)();
  const auto source =
      seeing_requests(make_source(*serving.workload.object), fleet.model(), serving);
  const auto all = static_cast<std::size_t>(serving.workload->count());
  ServingLog log;
  std::optional<Handover> handover;
  const auto to_answers = Routers::at("router", serving.kv_transfer.router)();
  if (serving.disaggregated())
    handover.emplace(instances, *to_answers, kv_ports(fleet.model(), serving, memory));
  Service service(instances, *router, *source, log, handover ? &*handover : nullptr,
                  LoadReports(serving.report_interval));
  Autoscaler autoscaler(scale_rules(serving.fleet));
  const bool scales = serving.autoscaled();
  if (scales) service.scale_by(autoscaler);
  Service::Watch look;
  if (options.watch)
    look = [&](Picoseconds, std::int64_t answered) {
      return options.watch(static_cast<std::size_t>(answered), all);
    };
  std::optional<ServingTimeline> drawn;
  if (timeline) service.observe(drawn.emplace(*timeline, serving.fleet));
  FleetSamples samples(instances.size());
  if (serving.record == ServingRecord::kRequests) service.observe(samples);
  SteadyWindow window(instances, log);
  service.observe(window);
  service.run(look);
  if (serving.record == ServingRecord::kRequests) record.rows = {request_rows(log), samples.rows()};
  if (timeline) close_timeline(*timeline, options);
  report_serving(serving, service, log, instances, record);
  report_engines(serving.fleet, record);
  if (record.status == RunStatus::kOk)
    report_work(serving, fleet, {instances, service, log, window, scales ? &autoscaler : nullptr},
                record);
  if (handover) report_handover(*handover, record);
  return {std::move(instances), std::move(log)};
}

std::string ServingExperiment::calibrations() const {
  std::string all;
  for (const auto& machine : machines_) {
    const std::string id = machine->kernels({fidelity, {}, measured})->calibration();
    if (!id.empty() && all.find(id) == std::string::npos) all += (all.empty() ? "" : ", ") + id;
  }
  return all;
}

void ServingExperiment::report_trust(const ServingFleet& fleet,
                                     const std::vector<Instance>& instances, RunRecord& record,
                                     const SimulateOptions& options) const {
  const std::string fitted = calibrations();
  record.provenance = provenance_json({}, fitted);
  if (instances.empty() || record.status != RunStatus::kOk || was_stopped(record)) return;
  const ServingTrust trust(fleet, serving.fleet, instances, seed);
  record.provenance = provenance_json(trust.time, fitted);
  SimulateOptions quiet;
  if (options.watch) quiet.watch = options.watch;
  std::array<RunRecord, 2> bounds;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    serve(fleet, trust.bounds.at(i), bounds.at(i), quiet);
    if (bounds.at(i).status != RunStatus::kOk || was_stopped(bounds.at(i))) return;
  }
  add_bounds(record, bounds);
  widen_first_tokens(record, has_experts());
  widen_by_power(record, serving.fleet);
}

/// The limit of the service, and the memory of a rank of each group.
void ServingExperiment::explain(const KnownReplay&, nlohmann::ordered_json& explanation) const {
  const ServingFleet all = fleet();
  RunRecord record;
  const Served served = serve(all, {}, record, {});
  if (record.status == RunStatus::kOk)
    explain_load(serving, served.instances, served.log, record, explanation);
  const std::vector<ServingMemory> memory = all.memory(serving.fleet);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < memory.size(); ++i) {
    rows.push_back(
        {{"group", serving.fleet[i].name},
         {"usable_bytes", memory[i].usable.base()},
         {"weights_bytes", memory[i].weights.base()},
         {"working_bytes", memory[i].working.base()},
         {"working", memory[i].sampling ? "sampling" : "activations"},
         {"libraries_bytes", memory[i].libraries.base()},
         {"communicators_bytes", memory[i].communicators.base()},
         {"graphs_bytes", memory[i].graphs.base()},
         {"before_bytes", memory[i].before.base()},
         {"set_aside_bytes", memory[i].set_aside.base()},
         {"cache_bytes", (memory[i].block * static_cast<double>(memory[i].blocks)).base()},
         {"windows_bytes", memory[i].window.base()},
         {"states_bytes", memory[i].states.base()},
         {"block_bytes", memory[i].block.base()},
         {"blocks", memory[i].blocks},
         {"tokens", memory[i].blocks * memory[i].block_tokens}});
  }
  explanation["groups"] = std::move(rows);
}

TableView ServingExperiment::table() const {
  return {{{{"fleet"}, [this](const RunRecord&) { return fleet_text(serving); }, true},
           time_column("mean TTFT", "mean_ttft_ms", "ms"),
           metric_column("p99 TTFT", "p99_ttft_ms", "ms"),
           metric_column("mean TPOT", "mean_tpot_ms", "ms"),
           metric_column("p99 TPOT", "p99_tpot_ms", "ms"),
           metric_column("tokens/s/user", "output_throughput_per_user", ""),
           metric_column("tokens/s/acc", "output_throughput_per_accelerator", ""),
           metric_column("goodput", "request_goodput", "1/s"),
           label_column("saturated", "saturated")},
          "mean_ttft_ms, output_throughput_per_accelerator",
          "serving.workload.seed=2",
          {}};
}

}  // namespace orrery
