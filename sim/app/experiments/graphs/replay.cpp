// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/graphs/replay.h"

#include <fmt/core.h>
#include <algorithm>
#include <functional>
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
#include "sim/app/experiments/graphs/replay_graphs.h"
#include "sim/app/experiments/keys/algorithm_names.h"
#include "sim/app/experiments/keys/common_metrics.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "sim/app/pricing/pricing.h"
#include "sim/config/input_files.h"
#include "sim/config/schema.h"
#include "sim/replay/graph_replay.h"

namespace orrery {

const config::Schema<GraphConfig>& GraphConfig::schema() {
  using G = GraphConfig;
  static const auto schema =
      config::Schema<G>("graph", "operator graphs of a run, from another program")
          .required("path", &G::path,
                    "a file; a folder with one file for each rank; or a prefix, which stands for "
                    "PREFIX.<rank>.et and the like")
          .optional("groups", &G::groups, "JSON file of communicators: {\"name\": [ranks], ...}")
          .optional("repair", &G::repair,
                    "drops dependencies on nodes that are not there, and those that close cycles; "
                    "a collective of Chakra without comm_type takes that of its name")
          .optional("dimensions", &G::dimensions, "sizes of symbolic dimensions",
                    config::between(1, 1e12))
          .optional("host", &G::host,
                    "host operators: keep (they take the time that is recorded), drop (none)")
          .optional("precision", &G::precision,
                    "what floating-point numbers of a model run in; file: what it says (ONNX)")
          .optional("fuse", &G::fuse,
                    "whether a model's operators run in kernels with their neighbours (ONNX)")
          .optional("fuse_kernels", &G::fuse_kernels,
                    "whether kernels run with the ones behind them: attention, epilogues of "
                    "products, elementwise kernels, where files say who reads what they write "
                    "(Chakra; durations: model)");
  return schema;
}

GraphFiles GraphConfig::files() const {
  GraphFiles files{path, groups.path, repair, dimensions, std::nullopt, fuse, fuse_kernels};
  constexpr std::pair<GraphPrecision, Precision> kFormats[] = {
      {GraphPrecision::kFp32, Precision::kFp32},
      {GraphPrecision::kTf32, Precision::kTf32},
      {GraphPrecision::kBf16, Precision::kBf16},
      {GraphPrecision::kFp16, Precision::kFp16},
      {GraphPrecision::kFp8, Precision::kFp8}};
  for (const auto& [named, format] : kFormats)
    if (named == precision) files.precision = format;
  return files;
}

const config::Schema<ReplayExperiment>& ReplayExperiment::schema() {
  using E = ReplayExperiment;
  static const config::Schema<E> schema =
      with_link_keys(
          machine_schema<E>("replay", "an operator graph of another program on a machine"))
          .required("graph", &E::graph, "what is replayed")
          .optional(
              "durations", &E::durations,
              "times of nodes: recorded (those of the files, and of the model where a file has "
              "none), model (where a node says what it computes; transfers by their bytes)")
          .optional(
              "scale", &E::scale,
              "times of classes of nodes over what they would be (gemm: 0.5 is twice as fast): "
              "classes of kernels, attention, mla, collective (messages too), host, all",
              config::between(0, 1e6))
          .optional("algorithm", &E::algorithm,
                    "how collectives are carried out that it serves: a name (`describe "
                    "collectives`) or a path of a file; auto: as a library would choose")
          .optional("contention", &E::contention,
                    "slowdown of kernels that the model prices by concurrent work; recorded times "
                    "contain it")
          .optional("unused", &E::unused,
                    "accelerators of the systems (`nodes`) without a graph. idle: they draw idle "
                    "power, hosts are charged whole. absent: host power is that of the used share")
          .optional("carbon_intensity", &E::carbon_intensity, kCarbonIntensityHelp,
                    config::at_least(0))
          .optional(
              "noise", &E::noise,
              "random differences between kernels of ranks and runs, and slow ranks (stragglers)");
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
const DeclaredMetric kToldShare{
    {"told_share", "1",
     "share of the time of kernels of which files tell what they compute or move, on all ranks; "
     "the energy of the others is that of busy units alone",
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
  throw config::KeyError(
      "nodes", fmt::format("the graph has {} ranks, the machine {}", run.ranks(), machine.ranks()));
}

void add_chain(const ChainTimes& chain, RunRecord& record) {
  const auto add = [&](const DeclaredMetric& metric, Picoseconds time) {
    add_metric(record, metric, to_seconds(time).base());
  };
  add(kChainHost, chain.host);
  add(kChainGemm, chain.gemm);
  add(kChainKernels, chain.kernels);
  add(kChainCommunication, chain.communication);
}

/// A row for each kind of transfer, and what their time rests on.
void add_transfers(const GraphReplayResult& result, const Machine& machine,
                   GraphTimes::Summary& summary) {
  std::vector<int> ranks(result.roles.size());
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
    summary.seconds.add(Provenance::kMeasured, from_file);
    if (seconds > from_file) summary.seconds.add(machine.provenance(transfer), seconds - from_file);
    summary.recorded_s += from_file;
  }
}

/// Share of the time of kernels on all ranks of which files tell what they compute or move.
double told_share(const Program& program, const std::vector<KernelCost>& costs) {
  double told = 0, all = 0;
  for (const Role& role : program.roles) {
    for (const auto& [id, runs] : role.runs.kernels) {
      const Kernel& kernel = program.kernels[id];
      const double time = static_cast<double>(runs) * static_cast<double>(costs[id].duration);
      const bool works = kernel.matrix_flops + kernel.vector_flops > Flops() ||
                         kernel.read + kernel.written > Bytes();
      all += time;
      told += works ? time : 0;
    }
  }
  return all > 0 ? told / all : 0;
}

void add_trust(const GraphTimes::Summary& summary, const std::string& calibration,
               RunRecord& record) {
  const double all = summary.seconds.total();
  record.provenance = provenance_json(summary.seconds, calibration);
  add_metric(record, kRecordedShare, all > 0 ? summary.recorded_s / all : 1);
  double unknown = 0;
  for (const ClassBreakdown& row : summary.classes)
    if (row.name == GraphTimes::kUnknownClass) unknown += row.time_s;
  add_metric(record, kUnknownShare, all > 0 ? unknown / all : 0);
}

}  // namespace

/// Adds energy and power of the accelerators whose ranks have a graph.
void ReplayExperiment::report_energy(const ReplayedGraphs& all, RunRecord& record) const {
  const Seconds time = to_seconds(all.replay.end);
  if (!(time > Seconds(0))) return;
  const PricedProgram& priced = all.outcome.priced;
  const EnergyUse energy = step_energy(all.program, priced, system.accelerator, time);
  const double packages = static_cast<double>(all.program.ranks) / system.accelerator.dies;
  add_metric(record, kEnergy, energy.total().base());
  add_metric(record, kAveragePower, (energy.total() / time).base());
  add_metric(record, kWindowPower, all.outcome.power.window.base());
  add_metric(record, kToldShare, told_share(all.program, priced.costs.kernels));
  const auto power = machine().system_power(energy.total() / time, packages, unused);
  if (power) add_metric(record, kSystemPower, power->base());
  report_carbon(carbon_intensity, record);
  const auto follows_clock = [](const KernelCost& cost) { return !cost.fixed; };
  if (std::ranges::none_of(priced.costs.kernels, follows_clock)) return;
  add_metric(record, kClock, all.outcome.power.clock.base());
  add_label(record, kPowerState, to_string(machine().power_state(PowerState::kSteady)));
}

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
    complain(diagnostics, node, {"graph.path"}, error.what());
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

void ReplayExperiment::run(const SimulateOptions& simulate, RunRecord& record) const {
  const std::shared_ptr<const ImportedFiles> files = loaded_graph_files(graph.files());
  const ImportedRun& run = files->run;
  check_room(run, machine());
  if (simulate.warn) {
    for (const std::string& note : run.notes) simulate.warn(note);
  }
  const auto model = machine().kernels({}, simulate.tiles);
  ReplayedGraphs all = replay_graphs(*this, run, *model, simulate);
  const GraphReplayResult& result = all.replay;
  const double time = to_seconds(result.end).base();
  std::vector<double> by_rank;
  for (const RoleResult& rank : result.roles) by_rank.push_back(to_seconds(rank.end).base());
  add_metric(record, kTime, time);
  add_list(record, kTimeByRank, std::move(by_rank));
  add_breakdown(result.breakdown(), record);
  add_chain(all.chain, record);
  add_metric(record, kGraphRanks, static_cast<double>(all.program.ranks));
  add_metric(record, kGraphNodes, static_cast<double>(result.operators));
  add_transfers(result, machine(), all.summary);
  add_trust(all.summary, model->calibration(), record);
  report_energy(all, record);
  record.classes = std::move(all.summary.classes);
  add_metric(record, kSimulatedTime, time);
  add_metric(record, kEvents, static_cast<double>(result.events));
  add_link_use(all.outcome.links, record);
  if (all.summary.seconds.total() > all.summary.recorded_s)  // files have not recorded all
    add_step_intervals({machine(), *model, all.program, all.outcome, seed, &all.shapes.kernels},
                       record);
}

std::optional<Table> replayed_class_table(const RunRecord& record) {
  if (record.experiment != "replay" || record.classes.empty()) return std::nullopt;
  double all = 0;
  std::vector<ClassBreakdown> rows = record.classes;
  std::ranges::stable_sort(rows, std::greater(), &ClassBreakdown::time_s);
  for (const ClassBreakdown& row : rows) all += row.time_s;
  Table table =
      Table::titled("work of the last rank | >count | >time | >share | >rate | >bytes a second");
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
  return {{{{"graph"}, [this](const RunRecord&) { return graph.path; }, true},
           time_column("time", "time_s"),
           metric_column("compute", "breakdown.compute_s", "s"),
           metric_column("exposed", "breakdown.exposed_communication_s", "s"),
           metric_column("bubble", "breakdown.bubble_s", "s"),
           percent_column("recorded", "recorded_share")},
          "time_s, breakdown.exposed_communication_s",
          "scale.gemm=0.5",
          {}};
}

}  // namespace orrery
