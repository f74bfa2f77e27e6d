// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/collective.h"

#include <fmt/core.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/collectives/algorithm.h"
#include "models/collectives/limit.h"
#include "sim/app/experiments/core/intervals.h"
#include "sim/app/experiments/core/link_use.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/engines/engine_site.h"
#include "sim/app/experiments/files/known_names.h"
#include "sim/app/experiments/keys/algorithm_names.h"
#include "sim/app/experiments/keys/common_metrics.h"
#include "sim/app/pricing/engine_network.h"
#include "sim/machine/collective_start.h"
#include "sim/trace/timeline.h"
#include "sim/units/comma_separated.h"

namespace orrery {

const config::Schema<CollectiveExperiment>& CollectiveExperiment::schema() {
  using E = CollectiveExperiment;
  static const config::Schema<E> schema =
      with_link_keys(machine_schema<E>("collective", "one collective on part of a machine"))
          .optional("collective", &E::collective, "the collective: kind, bytes and ranks")
          .optional("engine", &E::engine,
                    "the engine whose kernels carry an all-reduce of tensor parallel ranks, by its "
                    "keys of a served group ({kind: vllm, version: 0.19}); without it the "
                    "communication library carries it");
  return schema;
}

namespace {

const DeclaredMetric kAlgorithm{{"algorithm", "", "algorithm of the collective", "collective"}};
const DeclaredMetric kProtocol{{"protocol", "", "protocol of the collective", "collective"}};
const DeclaredMetric kAlgorithmBytesPerS{
    {"algorithm_bytes_per_s", "B/s", "bytes over time, as nccl-tests counts them", "collective"}};
const DeclaredMetric kBusBytesPerS{{"bus_bytes_per_s", "B/s",
                                    "bytes that a ring puts on the busiest link over time",
                                    "collective"}};
const DeclaredMetric kBottleneck{
    {"bottleneck", "", "link that limits the collective", "collective"}};

const RegisterExperiment<CollectiveExperiment> registered_collective(
    "collective", "one collective on part of a system");

/// nccl-tests' bus bandwidth over algorithm bandwidth (its PERFORMANCE.md).
double bus_factor(TransferKind kind, double ranks) {
  switch (kind) {
    case TransferKind::kAllReduce:
      return 2 * (ranks - 1) / ranks;
    case TransferKind::kBroadcast:
    case TransferKind::kReduce:
    case TransferKind::kBarrier:
    case TransferKind::kSendReceive:
      return 1;
    default:
      return (ranks - 1) / ranks;
  }
}

Program one_transfer(Transfer transfer) {
  Program program;
  program.streams = {"communication"};
  std::vector<int> ranks;
  for (const std::vector<int>& group : transfer.groups)
    ranks.insert(ranks.end(), group.begin(), group.end());
  program.ranks = *std::ranges::max_element(ranks) + 1;
  OperatorGraph graph;
  graph.add({to_string(transfer.kind), OperatorKind::kCollective, Category::kCommunication, 0, 0});
  program.transfers.push_back(std::move(transfer));
  program.blocks.push_back(std::move(graph));
  program.block_names = {"collective"};
  program.roles.push_back({"all ranks", {0}, std::move(ranks)});
  return program;
}

void add_provenance(const CollectiveExperiment& e, const Transfer& transfer, RunRecord& record) {
  const double time = record.find("time_s")->value;
  const Machine& machine = e.machine();
  const Provenance provenance = machine.provenance(transfer);
  ProvenanceTime rests;
  rests.add(provenance, time);
  record.provenance = provenance_json(
      rests, provenance == Provenance::kAnalytic ? std::string() : machine.collectives()->id);
  if (start_is_assumed(machine.system()))
    record.provenance["assumed"] = assumed_start(machine.system());
  const std::vector<double> factors = machine.draws(transfer, Seconds(time), e.seed);
  if (!factors.empty()) add_time_intervals(record, factors);
}

/// What else could be asked for where the algorithm asked for does not do.
[[noreturn]] void refuse_algorithm(const std::string& algorithm, const Collective& collective) {
  std::vector<std::string> known;
  for (const auto& [name, item] : AlgorithmRegistry::items())
    if (item.entry->serves(collective)) known.push_back(name);
  throw config::KeyError("collective.algorithm",
                         fmt::format("{} does not serve {} among {} ranks of {}; these do: {}",
                                     algorithm, to_string(collective.kind), collective.size(),
                                     collective.spans_systems() ? "several systems" : "one system",
                                     comma_joined(known)));
}

/// What the heaviest port of an all_to_all with parts of different sizes carries.
Bytes heaviest_port(const Collective& group) {
  Bytes most;
  for (int member = 0; member < group.size(); ++member) {
    Bytes sent, received;
    for (int other = 0; other < group.size(); ++other) {
      if (other == member) continue;
      sent += group.between(member, other);
      received += group.between(other, member);
    }
    most = std::max({most, sent, received});
  }
  return most;
}

void add_figures(const Collective& group, const PortRates& ports, double time, RunRecord& record) {
  const double rate = time > 0 ? group.bytes.base() / time : 0;
  const bool parts = !group.pair_bytes.empty() && time > 0;
  add_metric(record, kTime, time);
  add_metric(record, kAlgorithmBytesPerS, rate);
  add_metric(
      record, kBusBytesPerS,
      parts ? heaviest_port(group).base() / time : rate * bus_factor(group.kind, group.size()));
  add_metric(record, kShareOfLimit, time > 0 ? least_time(group, ports).base() / time : 0);
}
/// Figures of copies to or from host boards: what each rank gets, and all links allow.
void add_copy_figures(const Transfer& transfer, Seconds limit, double time, RunRecord& record) {
  add_metric(record, kTime, time);
  add_metric(record, kAlgorithmBytesPerS, transfer.bytes.base() / time);
  add_metric(record, kBusBytesPerS, transfer.bytes.base() / time);
  add_metric(record, kShareOfLimit, limit.base() / time);
}

/// Copies of all ranks of a system lie in the memory of its hosts, at either end of their way.
bool fits_hosts(const Transfer& transfer, const SystemConfig& system, RunRecord& record) {
  if (!transfer.host || transfer.host->end != HostEnd::kHost) return true;
  const auto ranks = std::min(transfer.groups.size(), static_cast<std::size_t>(system.ranks()));
  const Bytes copied = transfer.bytes * static_cast<double>(ranks);
  if (copied <= system.host.memory.value) return true;
  set_infeasible(
      record,
      fmt::format("does not fit: the copies of a system have {}, the memory of its hosts {}",
                  format_si(copied.base(), "B"), format_si(system.host.memory.value.base(), "B")));
  return false;
}

void check_choice(const CollectiveConfig& collective, const PricedTransfer& priced,
                  const Collective& group, const std::string& system) {
  if (collective.algorithm != "auto" && priced.algorithm != collective.algorithm)
    refuse_algorithm(collective.algorithm, group);
  if (collective.protocol != "auto" && priced.protocol != collective.protocol) {
    throw config::KeyError(
        "collective.protocol",
        fmt::format("{} carries no {} by {} on {}; {} does", collective.protocol,
                    to_string(collective.kind), priced.algorithm, system, priced.protocol));
  }
}

}  // namespace

void CollectiveExperiment::complete(config::Node& node, config::Diagnostics& diagnostics) {
  if (collective && engine) {
    ParallelConfig parallel;
    const std::int64_t all = std::int64_t{system.ranks()} * nodes;
    parallel.tp = static_cast<int>(collective->ranks > 0 ? collective->ranks : all);
    engine_defaults = follow_release(*engine, engine_site(system.accelerator, parallel),
                                     *node.find("engine"), diagnostics);
  }
  if (collective)
    complete_algorithm(collective->algorithm, node.at_path("collective.algorithm"), diagnostics);
}

void CollectiveExperiment::check_names(const config::Node& node,
                                       config::Diagnostics& diagnostics) const {
  MachineExperiment::check_names(node, diagnostics);
  if (!collective) return;
  check_name({"collective.protocol", "protocol"}, collective->protocol,
             {"auto", "ll", "ll128", "simple"}, node, diagnostics);
  check_algorithm(collective->algorithm, "collective.algorithm", node, diagnostics);
}

void CollectiveExperiment::check(const config::Node& node, config::Diagnostics& diagnostics) const {
  if (!collective) return miss_key(diagnostics, node, "collective");
  const CollectiveConfig& c = *collective;
  const int available = system.ranks() * nodes;
  if (c.ranks > available) {
    complain(diagnostics, node, {"collective.ranks"},
             fmt::format("the machine has {} ranks", available), {std::to_string(available), {}});
  }
  check_parts(c, system, available, node, diagnostics);
  if (engine && c.kind != TransferKind::kAllReduce) {
    complain(diagnostics, node, {"engine"},
             "engines have kernels of their own for all_reduce alone; the library carries a " +
                 std::string(to_string(c.kind)),
             {{}, {"leave out 'engine'"}});
  }
  if (engine && (c.algorithm != "auto" || c.protocol != "auto")) {
    complain(diagnostics, node, {"engine"},
             "an engine chooses algorithm and protocol by itself: give either them or the engine",
             {{}, {"leave out collective.algorithm and collective.protocol"}});
  }
  const bool barrier = c.kind == TransferKind::kBarrier;
  if (!c.exchanges_tokens() && !c.has_matrix() && (c.bytes.base() == 0) != barrier) {
    complain(diagnostics, node, {barrier ? "collective.bytes" : "collective"},
             barrier ? "a barrier has no bytes" : "collective.bytes must be given");
  }
}

void CollectiveExperiment::check_machine(const config::Node& node,
                                         config::Diagnostics& diagnostics) const {
  check_faults(machine(), faults, node, diagnostics);
}

std::vector<InputFile> CollectiveExperiment::input_files() const {
  std::vector<InputFile> files;
  add_collective_files(machine(), files);
  add_algorithm_file(collective->algorithm, "algorithm", files);
  if (!collective->matrix_file.empty())
    files.push_back(file_read_now("matrix", collective->matrix_file.path));
  return files;
}

void CollectiveExperiment::strip_names(nlohmann::ordered_json& configuration) const {
  MachineExperiment::strip_names(configuration);
  nlohmann::ordered_json& written = configuration["collective"];
  if (config::Library::is_path(collective->algorithm)) erase_keys(written, {"algorithm"});
  erase_keys(written, {"matrix_file"});
}

void CollectiveExperiment::check_network() const {
  const MachineNetwork network(machine(), faults);
}

namespace {

/// The collective on each of its ranks, the latency in front of its bytes, and what the links carry
/// that have the most to carry.
void write_timeline(const Transfer& transfer, const PricedTransfer& priced,
                    const ReplayResult& replay, const Topology& topology,
                    const SimulateOptions& options) {
  constexpr std::size_t kMostLinks = 32;
  Timeline timeline(options.trace);
  const Picoseconds latency = std::min(priced.cost.latency, replay.end);
  for (const std::vector<int>& group : transfer.groups) {
    for (const int rank : group) {
      const auto role = static_cast<std::uint32_t>(rank);
      timeline.process(role, "rank " + std::to_string(rank));
      timeline.thread(role, 0, "communication");
      timeline.span(role, 0, to_string(transfer.kind), "communication", 0, replay.end);
      if (latency > 0) timeline.span(role, 0, "latency", "communication", 0, latency);
      if (latency < replay.end)
        timeline.span(role, 0, "bytes", "communication", latency, replay.end);
    }
  }
  std::vector<std::size_t> links;
  for (std::size_t link = 0; link < replay.link_bytes.size(); ++link)
    if (replay.link_bytes[link] > 0) links.push_back(link);
  std::ranges::stable_sort(links, [&](std::size_t a, std::size_t b) {
    return replay.link_busy_s[a] > replay.link_busy_s[b];
  });
  links.resize(std::min(links.size(), kMostLinks));
  const std::uint32_t all = ~std::uint32_t{0};
  const double seconds = to_seconds(replay.end - latency).base();
  if (!links.empty() && seconds > 0) timeline.process(all, "busiest links");
  for (const std::size_t link : links) {
    if (seconds <= 0) break;
    const std::string name = topology.bundle_name(static_cast<BundleId>(link)) + " GB/s";
    timeline.counter(all, name, latency, replay.link_bytes[link] / seconds * 1e-9);
    timeline.counter(all, name, replay.end, 0);
  }
  close_timeline(timeline, options);
}

}  // namespace

/// Alone an all-reduce norms nothing.
PricedTransfer CollectiveExperiment::price(const MachineNetwork& links,
                                           const Transfer& transfer) const {
  if (!engine) return links.start().price(transfer);
  EngineAllReduce rules = engine->object->all_reduce;
  rules.fused = Bytes(0);
  return EngineNetwork(machine().system(), machine().nodes(), rules, links.faults_at_start())
      .price(transfer);
}

void CollectiveExperiment::run(const SimulateOptions& options, RunRecord& record) const {
  const CollectiveConfig& wanted = *collective;
  const Program program = one_transfer(collective_transfer(wanted, machine().ranks()));
  const Transfer& transfer = program.transfers[0];
  const std::size_t members = transfer.groups[0].size();
  if (members < 2 && !transfer.host)
    throw config::KeyError("collective.ranks", "a collective needs at least 2 ranks");
  if (wanted.kind == TransferKind::kSendReceive && members != 2 && !transfer.host)
    throw config::KeyError("collective.ranks", "send_receive needs 2 ranks, or from and to");
  if (!fits_hosts(transfer, machine().system(), record)) return;
  const Machine placed = transfer.host ? machine().with_host_links() : machine();
  const MachineNetwork states(placed, faults, {{wanted.algorithm}, wanted.protocol});
  const FlowModel& network = states.start();
  const Collective group = network.collective(transfer, transfer.groups[0]);
  const std::vector<PricedTransfer> taken(1, price(states, transfer));
  const PricedTransfer& priced = taken.front();
  if (!transfer.host) check_choice(wanted, priced, group, system.name);
  Costs costs;
  costs.transfers = {priced.cost};
  network.fill_links(costs);
  states.add_link_events(program, taken, costs);
  const ReplayFunction replayer = [&](SlowdownModel*) {
    return ReplayOutcome{replay(program, costs, {nullptr, nullptr, &network.topology()}), {}, {}};
  };
  const Played played = play({network.topology(), program, costs}, replayer, options.stand_in);
  const ReplayResult& result = played.outcome.replay;
  record.components = played.components;
  add_link_use(link_use(network.topology(), result, recorded), record);
  if (!options.trace.empty()) write_timeline(transfer, priced, result, network.topology(), options);

  const double time = to_seconds(result.end).base();
  if (transfer.host) {
    add_copy_figures(transfer, priced.limit, time, record);
  } else {
    add_figures(group, port_rates(placed.system()), time, record);
  }
  if (!engine_defaults.empty()) add_label(record, kEngineDefaults, engine_defaults);
  add_label(record, kAlgorithm, priced.algorithm);
  add_label(record, kProtocol, priced.protocol);
  add_label(record, kBottleneck,
            priced.bottleneck ? network.topology().bundle_name(*priced.bottleneck) : "latency");
  add_metric(record, kSimulatedTime, time);
  add_metric(record, kEvents, static_cast<double>(result.events));
  add_provenance(*this, transfer, record);
}

TableView CollectiveExperiment::table() const {
  return {{{{"collective"}, [this](const RunRecord&) { return to_string(collective->kind); }, true},
           time_column("time", "time_s"),
           interval_column("time_s"),
           label_column("algorithm", "algorithm"),
           label_column("protocol", "protocol"),
           metric_column("of bytes", "algorithm_bytes_per_s", "B/s"),
           metric_column("bus", "bus_bytes_per_s", "B/s"),
           percent_column("of limit", "share_of_limit"),
           label_column("bottleneck", "bottleneck")},
          "time_s, algorithm, bus_bytes_per_s",
          "collective.algorithm=ring",
          {}};
}

}  // namespace orrery
