// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/replay.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "models/collectives/algorithm.h"
#include "sim/app/experiments/core/intervals.h"
#include "sim/app/experiments/core/link_use.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/files/known_names.h"
#include "sim/app/experiments/keys/algorithm_names.h"
#include "sim/app/experiments/keys/common_metrics.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "sim/app/pricing/link_periods.h"
#include "sim/config/input_files.h"
#include "sim/config/leaf.h"
#include "sim/config/place.h"
#include "sim/replay/graph_replay.h"
#include "sim/trace/timeline.h"
#include "sim/units/spelling.h"

namespace orrery {

const config::Schema<ReplayExperiment>& ReplayExperiment::schema() {
  using E = ReplayExperiment;
  static const config::Schema<E> schema =
      machine_schema<E>("replay", "an operator graph of another program on a machine")
          .required("graph", &E::graph, "what is replayed")
          .optional("durations", &E::durations,
                    "times of nodes: recorded (those of the files, and of the model where a file "
                    "has none), model (where a node says what it computes; transfers by their "
                    "bytes)")
          .optional("scale", &E::scale,
                    "times of classes of nodes over what they would be (gemm: 0.5 is twice as "
                    "fast): classes of kernels, attention, mla, collective (messages too), host, "
                    "all",
                    config::between(0, 1e6))
          .optional("algorithm", &E::algorithm,
                    "how collectives are carried out that it serves: a name (`describe "
                    "collectives`) or a path of a file; auto: as a library would choose")
          .optional("faults", &E::faults,
                    "links that degrade or fail: transfers that the model prices take longer, or "
                    "another way; those whose time is recorded stay as they were")
          .optional("noise", &E::noise,
                    "what makes kernels differ by rank and by run: slow ranks (stragglers), draws")
          .optional("record", &E::recorded,
                    "what the result says of links: classes, or links (each that carried "
                    "something)");
  return schema;
}

namespace {

const DeclaredMetric kTimeByRank{
    {"time_s_by_rank", "s", "when the last node of each rank ends; a list", "replay"}};
const DeclaredMetric kGraphRanks{{"graph_ranks", "1", "ranks that have a graph", "replay"}};
const DeclaredMetric kGraphNodes{{"graph_nodes", "1", "nodes of all ranks", "replay"}};
const DeclaredMetric kUnknownShare{
    {"unclassified_share", "1",
     "share of the time in kernels of no known class: operators of a model without a rule, which "
     "take as long as their bytes, and names that say nothing",
     "replay"}};
const DeclaredMetric kRecordedShare{
    {"recorded_share", "1",
     "share of the time of nodes that files have recorded, before scales, on the rank that ends "
     "last; the rest comes from models",
     "replay"}};

const DeclaredMetric kChainHost{
    {"longest_chain.host_s", "s",
     "host operators, and gaps that nothing explains, on the chain of nodes that the run takes as "
     "long as: each began as the one before it ended",
     "replay"}};
const DeclaredMetric kChainGemm{
    {"longest_chain.gemm_s", "s", "matrix products on that chain", "replay"}};
const DeclaredMetric kChainKernels{
    {"longest_chain.other_kernels_s", "s", "other kernels on that chain", "replay"}};
const DeclaredMetric kChainCommunication{
    {"longest_chain.communication_s", "s",
     "collectives and messages on that chain, from when the last rank came", "replay"}};

const RegisterExperiment<ReplayExperiment> registered_replay(
    "replay", "an operator graph of another program (Chakra, Kineto, ONNX)");

/// Nodes of which a replay takes milliseconds.
constexpr std::size_t kQuickNodes = 20'000;

/// The graphs that were read last in this process: points of a sweep share them.
std::shared_ptr<const ImportedFiles> loaded_graph_files(const GraphFiles& files) {
  static std::mutex mutex;
  static std::optional<std::pair<GraphFiles, std::shared_ptr<const ImportedFiles>>> last;
  const std::lock_guard<std::mutex> lock(mutex);
  if (last && last->first == files) return last->second;
  auto read = std::make_shared<ImportedFiles>(read_graph_files(files));
  for (const HashedFile& file : read->files) config::input_files().remember(file.path, file.sha256);
  last.emplace(files, std::move(read));
  return last->second;
}

std::size_t nodes_of(const ImportedRun& run) {
  std::size_t nodes = 0;
  for (const std::uint32_t graph : run.graph_of_rank)
    if (graph != ImportedRun::kAbsent) nodes += run.graphs[graph].size();
  return nodes;
}

/// Ranks of a run are the first of the machine.
void check_room(const ImportedRun& run, const Machine& machine) {
  if (run.ranks() <= machine.ranks()) return;
  throw config::KeyError("nodes", "the graph has " + std::to_string(run.ranks()) +
                                      " ranks, the machine " + std::to_string(machine.ranks()));
}

bool communicates(const ImportedRun& run) {
  return std::any_of(run.graphs.begin(), run.graphs.end(),
                     [](const ImportedGraph& graph) { return !graph.messages.empty(); });
}

/// Whether files say what transfers took.
bool records_transfers(const ImportedRun& run) {
  return std::any_of(run.graphs.begin(), run.graphs.end(), [](const ImportedGraph& graph) {
    return std::any_of(graph.messages.begin(), graph.messages.end(),
                       [](const ImportedMessage& message) { return message.recorded > 0; });
  });
}

/// Prices transfers by the links of a machine, as faults leave them.
void price_transfers(const Machine& machine, const std::vector<FaultConfig>& faults,
                     const FlowModel& start, GraphCosts& costs) {
  costs.links = start.whole_capacities();
  costs.transfer = [&start](const Transfer& transfer) { return start.cost(transfer); };
  costs.link_name = [&start](std::uint32_t link) { return start.topology().bundle_name(link); };
  for (LinkPeriod& period : link_periods(machine, faults, start))
    costs.states.push_back({period.time, std::move(period.capacities), std::move(period.cost)});
}

/// What the chain is made of that a run takes as long as.
struct ChainTimes {
  Picoseconds host = 0, gemm = 0, kernels = 0, communication = 0;

  void add(const ImportedGraph& graph, NodeId id, Picoseconds time) {
    const ImportedNode& node = graph.nodes[id];
    const NodeWork* work = node.kind == NodeKind::kKernel ? &graph.works[node.work] : nullptr;
    if (node.kind > NodeKind::kKernel || (work != nullptr && work->communicates)) {
      communication += time;
    } else if (work == nullptr) {
      host += time;
    } else {
      (work->classified && work->kind == KernelClass::kGemm ? gemm : kernels) += time;
    }
  }
};

GraphReplayResult replay_of(const ImportedRun& run, const GraphCosts& costs, Timeline* timeline,
                            ChainTimes& chain, const std::string& path) {
  const auto visit = [&](std::uint32_t rank, NodeId node, Picoseconds time) {
    chain.add(run.graphs[run.graph_of_rank[rank]], node, time);
  };
  try {
    return replay(run, costs, {timeline, nullptr, visit});
  } catch (const GraphMismatch& error) {
    throw config::ConfigError(path + ": " + error.what());
  } catch (const DeadlockError& error) {  // of the files, not of ours
    throw config::ConfigError(path + ": " + error.what());
  }
}

void add_breakdown(const TimeBreakdown& breakdown, const ChainTimes& chain, RunRecord& record) {
  const auto add = [&](const DeclaredMetric& metric, Picoseconds time) {
    add_metric(record, metric, to_seconds(time).base());
  };
  add(kBreakdownCompute, breakdown.compute);
  add(kBreakdownExposedCommunication, breakdown.exposed_communication);
  add(kBreakdownBubble, breakdown.bubble);
  add(kBreakdownOptimizer, breakdown.optimizer);
  add(kBreakdownHost, breakdown.host);
  add(kBreakdownIdle, breakdown.idle);
  add(kChainHost, chain.host);
  add(kChainGemm, chain.gemm);
  add(kChainKernels, chain.kernels);
  add(kChainCommunication, chain.communication);
}

/// A row for each kind of transfer, and what their time rests on.
void add_transfers(const GraphReplayResult& result, const Machine& machine,
                   GraphTimes::Summary& summary) {
  std::vector<int> ranks(result.rank_end.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  for (std::size_t kind = 0; kind < kTransferKinds; ++kind) {
    const TransferTime& time = result.transfers[kind];
    if (time.count == 0) continue;
    const double seconds = to_seconds(time.time).base();
    const double from_file = to_seconds(time.recorded).base();
    Transfer transfer;
    transfer.kind = static_cast<TransferKind>(kind);
    transfer.bytes = Bytes(time.bytes / static_cast<double>(time.count));
    transfer.groups = {ranks};
    summary.classes.push_back({to_string(transfer.kind), time.count, seconds, 0, time.bytes});
    summary.seconds[Provenance::kMeasured] += from_file;
    if (seconds > from_file) summary.seconds[machine.provenance(transfer)] += seconds - from_file;
    summary.recorded_s += from_file;
  }
}

void add_trust(const GraphTimes::Summary& summary, const std::string& calibration,
               RunRecord& record) {
  ProvenanceTime rests;
  for (const auto& [provenance, seconds] : summary.seconds) rests.add(provenance, seconds);
  record.provenance = provenance_json(rests, calibration);
  add_metric(record, kRecordedShare, rests.total() > 0 ? summary.recorded_s / rests.total() : 1);
  double unknown = 0;
  for (const ClassBreakdown& row : summary.classes)
    if (row.name == GraphTimes::kUnknownClass) unknown += row.time_s;
  add_metric(record, kUnknownShare, rests.total() > 0 ? unknown / rests.total() : 0);
}

}  // namespace

/// A prefix is no file, so that its path is completed here: relative to the file that it stands in.
void ReplayExperiment::complete(config::Node& node, config::Diagnostics& diagnostics) {
  complete_algorithm(algorithm, node.find("algorithm"), diagnostics);
  const config::Node* path = node.at_path("graph.path");
  if (path == nullptr || path->origin().kind != config::Origin::Kind::kFile) return;
  graph.path = config::relative_to(graph.path, *path->origin().file);
}

void ReplayExperiment::check_names(const config::Node& node,
                                   config::Diagnostics& diagnostics) const {
  MachineExperiment::check_names(node, diagnostics);
  check_algorithm(algorithm, "algorithm", node, diagnostics);
  for (const auto& [what, factor] : scale)
    check_name({"scale." + what, "class of nodes"}, what, TimeScales::names(), node, diagnostics);
}

void ReplayExperiment::check(const config::Node& node, config::Diagnostics& diagnostics) const {
  try {
    find_rank_files(graph.path);
  } catch (const config::ConfigError& error) {
    const config::Place place = config::place_of(node, {"graph.path"});
    diagnostics.error(place.where, place.length, error.what());
  }
}

void ReplayExperiment::check_machine(const config::Node& node,
                                     config::Diagnostics& diagnostics) const {
  check_faults(machine(), faults, node, diagnostics);
  check_stragglers(noise, machine().ranks(), "the machine", node, diagnostics);
}

TimeScales ReplayExperiment::scales() const { return {scale, graph.host == HostWork::kDrop}; }

std::vector<InputFile> ReplayExperiment::input_files() const {
  std::vector<InputFile> files;
  for (const HashedFile& file : loaded_graph_files(graph.files())->files)
    files.push_back({"graph: " + file.role, file.path, file.sha256});
  add_kernel_files(machine(), {}, files);
  add_collective_files(machine(), files);
  add_algorithm_file(algorithm, "algorithm", files);
  return files;
}

void ReplayExperiment::strip_names(nlohmann::ordered_json& configuration) const {
  MachineExperiment::strip_names(configuration);
  erase_keys(configuration["graph"], {"path", "groups"});
  if (config::Library::is_path(algorithm)) erase_keys(configuration, {"algorithm"});
}

void ReplayExperiment::check_plan(const config::Node&, config::Diagnostics&) const {
  check_room(loaded_graph_files(graph.files())->run, machine());
}

bool ReplayExperiment::is_quick() const {
  return nodes_of(loaded_graph_files(graph.files())->run) <= kQuickNodes;
}

void ReplayExperiment::run(const SimulateOptions& options, RunRecord& record) const {
  const std::shared_ptr<const ImportedFiles> files = loaded_graph_files(graph.files());
  const ImportedRun& run = files->run;
  check_room(run, machine());
  if (options.warn) {
    for (const std::string& note : run.notes) options.warn(note);
  }
  const auto model = machine().kernels({}, options.tiles);
  const TimeScales scaled = scales();
  GraphTimes times(*model, machine().accelerator(), durations, scaled);
  GraphCosts costs;
  for (const ImportedGraph& of : run.graphs) costs.works.push_back(times.times(of));
  costs.recorded_transfers = durations == Durations::kRecorded;
  costs.transfer_scale = scaled.of_transfers();
  std::optional<MachineNetwork> network;
  if (communicates(run)) {
    network.emplace(machine(), faults, CollectiveChoice{{algorithm}, "auto"});
    price_transfers(machine(), faults, network->start(), costs);
    if (options.warn && !faults.empty() && costs.recorded_transfers && records_transfers(run))
      options.warn("faults change no transfer whose time is recorded: durations: model prices all");
  }
  std::optional<RankNoise> drawn;
  if (noise.any()) {
    drawn.emplace(noise, rank_layout(machine().system(), machine().nodes()), machine().ranks());
    costs.slowdown = [&](int rank, NodeId node) { return drawn->factor(rank, 0, node); };
  }
  std::optional<Timeline> timeline;
  if (!options.trace.empty()) timeline.emplace(options.trace);
  ChainTimes chain;
  const GraphReplayResult result =
      replay_of(run, costs, timeline ? &*timeline : nullptr, chain, graph.path);
  if (timeline) close_timeline(*timeline, options);

  const double time = to_seconds(result.end).base();
  std::vector<double> by_rank;
  for (const Picoseconds end : result.rank_end) by_rank.push_back(to_seconds(end).base());
  add_metric(record, kTime, time);
  add_list(record, kTimeByRank, std::move(by_rank));
  add_breakdown(result.breakdown, chain, record);
  add_metric(
      record, kGraphRanks,
      static_cast<double>(run.ranks() - std::count(run.graph_of_rank.begin(),
                                                   run.graph_of_rank.end(), ImportedRun::kAbsent)));
  add_metric(record, kGraphNodes, static_cast<double>(result.nodes));
  const std::uint32_t last = run.graph_of_rank[static_cast<std::size_t>(result.last_rank)];
  GraphTimes::Summary summary;
  if (last != ImportedRun::kAbsent) summary = times.summary(run.graphs[last]);
  add_transfers(result, machine(), summary);
  add_trust(summary, model->calibration(), record);
  record.classes = std::move(summary.classes);
  add_metric(record, kSimulatedTime, time);
  add_metric(record, kEvents, static_cast<double>(result.events));
  if (!network) return;
  ReplayResult links;
  links.end = result.end;
  links.link_bytes = result.link_bytes;
  links.link_payload = result.link_payload;
  links.link_busy_s = result.link_busy_s;
  add_link_use(link_use(network->start().topology(), links, recorded), record);
}

std::optional<Table> replayed_class_table(const RunRecord& record) {
  if (record.experiment != "replay" || record.classes.empty()) return std::nullopt;
  constexpr Table::Align kRight = Table::Align::kRight;
  double all = 0;
  std::vector<ClassBreakdown> rows = record.classes;
  std::stable_sort(rows.begin(), rows.end(), [](const ClassBreakdown& a, const ClassBreakdown& b) {
    return a.time_s > b.time_s;
  });
  for (const ClassBreakdown& row : rows) all += row.time_s;
  Table table({{"what the last rank did"},
               {"count", kRight},
               {"time", kRight},
               {"share", kRight},
               {"rate", kRight},
               {"bytes a second", kRight}});
  for (const ClassBreakdown& row : rows) {
    const auto rate = [&](double amount, const char* unit) {
      return amount > 0 && row.time_s > 0 ? format_si(amount / row.time_s, unit) : std::string();
    };
    table.add_row({row.name, std::to_string(row.count), format_si(row.time_s, "s"),
                   format_percent(all > 0 ? row.time_s / all : 0, 1), rate(row.flops, "FLOP/s"),
                   rate(row.bytes, "B/s")});
  }
  return table;
}

TableView ReplayExperiment::table() const {
  constexpr Table::Align kRight = Table::Align::kRight;
  using R = RunRecord;
  return {
      {{{"graph"}, [this](const R&) { return graph.path; }, true},
       {{"time", kRight}, [](const R& r) { return time_cell(r, "time_s"); }},
       {{"compute", kRight}, [](const R& r) { return metric_cell(r, "breakdown.compute_s", "s"); }},
       {{"exposed", kRight},
        [](const R& r) { return metric_cell(r, "breakdown.exposed_communication_s", "s"); }},
       {{"bubble", kRight}, [](const R& r) { return metric_cell(r, "breakdown.bubble_s", "s"); }},
       {{"recorded", kRight}, [](const R& r) { return percent_cell(r, "recorded_share"); }}},
      "time_s, breakdown.exposed_communication_s",
      "scale.gemm=0.5",
      {}};
}

}  // namespace orrery
