// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/graphs/replay_graphs.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "sim/app/experiments/keys/rank_noise.h"
#include "sim/app/pricing/kernel_slowdowns.h"
#include "sim/app/pricing/machine_network.h"
#include "sim/app/pricing/power_balance.h"
#include "sim/graph/imported_transfers.h"
#include "sim/trace/timeline.h"

namespace orrery {

void ChainTimes::add(const ImportedGraph& graph, NodeId id, Picoseconds time) {
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

namespace {

bool communicates(const ImportedRun& run) {
  return std::ranges::any_of(run.graphs,
                             [](const ImportedGraph& graph) { return !graph.messages.empty(); });
}

/// Whether files say what transfers took.
bool records_transfers(const ImportedRun& run) {
  return std::ranges::any_of(run.graphs, [](const ImportedGraph& graph) {
    return std::ranges::any_of(graph.messages,
                               [](const ImportedMessage& message) { return message.recorded > 0; });
  });
}

Program program_of(const ImportedRun& run, const GraphKernels& kernels,
                   const ImportedTransfers& transfers) {
  Program program;
  program.kernels = kernels.kernels;
  program.transfers = transfers.list();
  for (int rank = 0; rank < run.ranks(); ++rank) {
    Role& role = program.roles.emplace_back();
    role.name = "rank " + std::to_string(rank);
    const std::uint32_t graph = run.graph_of_rank[static_cast<std::size_t>(rank)];
    if (graph == ImportedRun::kAbsent) continue;
    ++program.ranks;
    role.ranks = {rank};
    role.runs = {kernels.runs[graph], transfers.runs_of(rank)};
  }
  return program;
}

/// Transfers and links, with what faults do to them.
void price_transfers(const Program& program, const MachineNetwork& network, double scale,
                     PricedProgram& priced) {
  for (const Transfer& transfer : program.transfers) {
    priced.transfers.push_back(network.start().price(transfer));
    priced.costs.transfers.push_back(priced.transfers.back().cost);
  }
  network.start().fill_links(priced.costs);
  network.add_link_events(program, priced.transfers, priced.costs);
  if (scale != 1) scale_transfers(scale, priced);
}

/// Recorded times of transfers have no interval.
void leave_out_recorded(const GraphReplayResult& replay, const Program& program,
                        std::vector<PricedTransfer>& transfers) {
  for (std::size_t id = 0; id < transfers.size(); ++id) {
    const auto kind = static_cast<std::size_t>(program.transfers[id].kind);
    const TransferTime& time = replay.transfers[kind];
    if (time.time == 0) continue;
    transfers[id].isolated_time *=
        1 - static_cast<double>(time.recorded) / static_cast<double>(time.time);
  }
}

/// The graphs of one experiment with what they take at any clock.
class PricedGraphs {
 public:
  PricedGraphs(const ReplayExperiment& experiment, const ImportedRun& run, GraphTimes& times)
      : path_(experiment.graph.path),
        run_(run),
        times_(times),
        transfers_(run),
        kernels_(times.kernels(run)) {
    nodes_.kernels = std::move(kernels_.of_work);
    if (communicates(run)) nodes_.transfers = &transfers_;
    nodes_.recorded_transfers = experiment.durations == Durations::kRecorded;
    nodes_.recorded_scale = experiment.scales().of_transfers();
  }

  const GraphKernels& kernels() const { return kernels_; }
  const ImportedTransfers& transfers() const { return transfers_; }
  void replay_with(const Costs& costs, const ReplayOptions& given, ReplayedGraphs& all) {
    nodes_.works.clear();
    for (std::size_t g = 0; g < run_.graphs.size(); ++g)
      nodes_.works.push_back(times_.times(run_.graphs[g], nodes_.kernels[g], costs.kernels));
    GraphReplayOptions options;
    static_cast<ReplayOptions&>(options) = given;
    all.chain = {};
    options.chain = [&](std::uint32_t rank, NodeId node, Picoseconds time) {
      all.chain.add(run_.graphs[run_.graph_of_rank[rank]], node, time);
    };
    try {
      all.replay = replay(run_, nodes_, costs, options);
    } catch (const GraphMismatch& error) {
      throw config::ConfigError(path_ + ": " + error.what());
    } catch (const DeadlockError& error) {  // of the files, not of ours
      throw config::ConfigError(path_ + ": " + error.what());
    }
  }
  /// Sums up kernels and host operators of the rank that has ended last.
  GraphTimes::Summary summary(const GraphReplayResult& result) const {
    const std::uint32_t last = run_.graph_of_rank[static_cast<std::size_t>(result.last_role)];
    if (last == ImportedRun::kAbsent) return {};
    return times_.summary(run_.graphs[last], nodes_.works[last]);
  }

 private:
  const std::string& path_;
  const ImportedRun& run_;
  GraphTimes& times_;
  ImportedTransfers transfers_;
  GraphKernels kernels_;
  GraphCosts nodes_;
};

}  // namespace

ReplayedGraphs replay_graphs(const ReplayExperiment& experiment, const ImportedRun& run,
                             const KernelModel& model, const SimulateOptions& simulate) {
  const Machine& machine = experiment.machine();
  const PowerState state = machine.power_state(PowerState::kSteady);
  const AcceleratorConfig accelerator = priced_accelerator(machine.accelerator(), state);
  const TimeScales scales = experiment.scales();
  GraphTimes times(model, accelerator, experiment.durations, scales);
  PricedGraphs graphs(experiment, run, times);
  ReplayedGraphs all;
  all.program = program_of(run, graphs.kernels(), graphs.transfers());
  all.shapes.kernels = graphs.kernels().shapes;
  PricedProgram& priced = all.outcome.priced;
  priced.costs.kernels = graphs.kernels().costs;
  ReplayOptions options;
  std::optional<MachineNetwork> network;
  KernelSlowdowns slowdowns(machine, Fidelity::kAuto, all.shapes, simulate.tiles);
  if (communicates(run)) {
    network.emplace(machine, experiment.faults, CollectiveChoice{{experiment.algorithm}, "auto"});
    price_transfers(all.program, *network, scales.of_transfers(), priced);
    options.topology = &network->start().topology();
    if (experiment.contention.transfers) options.slowdowns = &slowdowns;
    if (simulate.warn && !experiment.faults.empty() &&
        experiment.durations == Durations::kRecorded && records_transfers(run))
      simulate.warn(
          "faults change no transfer whose time is recorded: durations: model prices all");
  }
  std::optional<RankNoise> drawn;
  if (experiment.noise.any()) {
    drawn.emplace(experiment.noise, rank_layout(machine.system(), machine.nodes()),
                  machine.ranks());
    options.variation = &*drawn;
  }
  std::optional<Timeline> timeline;
  if (!simulate.trace.empty()) options.timeline = &timeline.emplace(simulate.trace);
  const double packages =
      experiment.noise.ranks > 0 ? 1 : static_cast<double>(all.program.ranks) / accelerator.dies;
  const auto replayed = [&](const Costs& costs, const ReplayOptions& given) -> ReplayResult {
    graphs.replay_with(costs, given, all);
    return all.replay;
  };
  all.outcome.power =
      replay_under_cap({machine.accelerator(), packages, state}, {all.program, options, replayed},
                       priced, all.outcome.replay);
  if (timeline) close_timeline(*timeline, simulate);
  if (network)
    all.outcome.links = link_use(network->start().topology(), all.replay, experiment.recorded);
  leave_out_recorded(all.replay, all.program, priced.transfers);
  all.summary = graphs.summary(all.replay);
  return all;
}

}  // namespace orrery
