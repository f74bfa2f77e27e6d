// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/cli/answer_text.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/core/play.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/experiments/steps/step_experiment.h"
#include "sim/app/pricing/machine_network.h"
#include "sim/app/pricing/power_balance.h"
#include "sim/app/pricing/pricing.h"
#include "sim/app/questions/base/verb.h"
#include "workloads/formats/chakra/writer.h"
#include "workloads/formats/graph_format.h"

namespace orrery {
namespace {

std::string format_names() {
  std::string names;
  for (const auto& [name, item] : GraphFormatRegistry::items())
    if (item.entry->writes() || item.entry->writes_ranks())
      names += fmt::format("{}{}: {}", names.empty() ? "" : "; ", name, item.help);
  return names;
}

/// Times of all runs of kernels, by role and kernel.
class KernelRuns final : public UseObserver {
 public:
  explicit KernelRuns(const Program& program)
      : times(program.roles.size(), std::vector<std::vector<Picoseconds>>(program.kernels.size())) {
  }

  void kernel_ran(std::uint32_t role, KernelId kernel, Picoseconds begin,
                  Picoseconds end) override {
    times[role][kernel].push_back(end - begin);
  }
  void transfer_ran(std::uint32_t, TransferId, Picoseconds, Picoseconds) override {}

  std::vector<std::vector<std::vector<Picoseconds>>> times;
};

/// Hears how a step is replayed, and replays it once more for what each kernel took.
class StepRecorder final : public ReplayStandIn {
 public:
  using Take = std::function<void(const Program&, const Costs&, KernelRuns&)>;
  explicit StepRecorder(Take take) : take_(std::move(take)) {}

  ReplayOutcome replay(const ReplayInputs& inputs, const ReplayFunction& replayer) override {
    ReplayOutcome outcome = replayer(inputs.slowdowns);
    Costs costs = inputs.costs;
    costs.kernels = outcome.kernels;
    KernelRuns runs(inputs.program);
    orrery::replay(
        inputs.program, costs,
        {.slowdowns = inputs.slowdowns, .topology = &inputs.topology, .observer = &runs});
    take_(inputs.program, costs, runs);
    return outcome;
  }

 private:
  Take take_;
};

struct GraphExportArguments {
  std::string file, format = "dot", output;
  std::vector<std::string> set;

  void take(Options& options) {
    options.positional("EXPERIMENT", file, "experiment file (YAML), training, inference or layers");
    options.set(set);
    options.option("--format", format, format_names());
    options.option(
        "-o,--output", output,
        "file to write, without it standard output; of formats with a file for each rank "
        "what stands before .<rank>.et");
  }

  ExitCode run() const {
    expect_kind(file, "experiment");
    const GraphFormat& graph_format = *GraphFormatRegistry::at("graph format", format, "--format");
    if (!graph_format.writes() && !graph_format.writes_ranks())
      throw UsageError("--format: " + format + " is read, not written");
    const LoadedExperiment loaded = load_experiment(file, set);
    std::cerr << loaded.warnings;
    const auto* step = dynamic_cast<const StepExperiment*>(loaded.experiment.get());
    if (step == nullptr)
      throw UsageError(file +
                       ": only steps of training, inference and layers have an operator graph");
    if (graph_format.writes_ranks()) return write_ranks(graph_format, loaded, *step);
    const Program program = step->program();
    write_to(output, [&](std::ostream& out) { graph_format.write(program, step->name, out); });
    return ExitCode::kOk;
  }

 private:
  /// Kernels take what they take in the step, beside its transfers and under its power cap.
  ExitCode write_ranks(const GraphFormat& graph_format, const LoadedExperiment& loaded,
                       const StepExperiment& step) const {
    if (output.empty()) throw UsageError("--format " + format + " needs -o PREFIX");
    bool written = false;
    StepRecorder recorder([&](const Program& program, const Costs& costs, KernelRuns& runs) {
      write_step(graph_format, {program, costs, alone(step, program), std::move(runs.times)});
      written = true;
    });
    const RunRecord record =
        simulate(loaded, {.trace = {}, .stand_in = &recorder, .beyond_memory = true});
    if (!written) throw config::ConfigError(file + ": " + record.reason);
    return ExitCode::kOk;
  }

  static std::vector<Picoseconds> alone(const StepExperiment& step, const Program& program) {
    const MachineNetwork network(step.machine(), step.faults, {step.algorithms});
    std::vector<Picoseconds> times;
    times.reserve(program.transfers.size());
    const PowerState state = step.machine().power_state(PowerState::kSteady);
    const auto model = step.machine().kernels({step.fidelity, {}, step.measured});
    const PricedProgram priced = price(
        program, priced_accelerator(step.machine().accelerator(), state), *model, network.start());
    for (const PricedTransfer& transfer : priced.transfers)
      times.push_back(to_picoseconds(transfer.isolated_time));
    return times;
  }

  void write_step(const GraphFormat& graph_format, const PricedSteps& steps) const {
    const std::uint64_t nodes = graph_format.write_ranks(
        steps,
        [&](const std::string& ending, const auto& write) { write_to(output + ending, write); });
    std::cerr << steps.program.ranks << " files, " << nodes << " nodes\n";
  }
};

const VerbRegistry::Register registered_graph("graph", "operator graphs", {});
const RegisterVerb<GraphExportArguments> registered_graph_export(
    "graph export", "the step of an experiment as a file of another program");

}  // namespace
}  // namespace orrery
