// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/app/cli/verb.h"
#include "sim/app/experiments/file_kind.h"
#include "sim/app/experiments/step_experiment.h"
#include "sim/app/pricing/machine_network.h"
#include "sim/app/pricing/power_balance.h"
#include "sim/app/pricing/pricing.h"
#include "sim/trace/atomic_file.h"
#include "workloads/formats/chakra_writer.h"
#include "workloads/formats/graph_format.h"

namespace orrery {
namespace {

std::string format_names() {
  std::string names;
  for (const auto& [name, item] : GraphFormatRegistry::items()) {
    if (!item.entry->writes() && !item.entry->writes_ranks()) continue;
    names += (names.empty() ? "" : "; ") + name + ": " + item.help;
  }
  return names;
}

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
    const Program program = step->program();
    if (graph_format.writes_ranks()) return write_ranks(graph_format, *step, program);
    if (output.empty()) {
      graph_format.write(program, step->name, std::cout);
      return ExitCode::kOk;
    }
    AtomicFile written(output);
    graph_format.write(program, step->name, written.stream());
    written.commit();
    return ExitCode::kOk;
  }

 private:
  /// Kernels at their price alone, at the clock of steady power; transfers as the network has them.
  ExitCode write_ranks(const GraphFormat& graph_format, const StepExperiment& step,
                       const Program& program) const {
    if (output.empty()) throw UsageError("--format " + format + " needs -o PREFIX");
    const MachineNetwork network(step.machine(), step.faults);
    const auto model = step.machine().kernels({step.fidelity, {}, step.measured});
    const PricedProgram priced =
        price(program,
              priced_accelerator(step.machine().accelerator(),
                                 step.machine().power_state(PowerState::kSteady)),
              *model, network.start());
    PricedSteps steps{program, priced.costs, {}};
    for (const PricedTransfer& transfer : priced.transfers)
      steps.alone.push_back(to_picoseconds(transfer.isolated_time));
    const std::uint64_t nodes = graph_format.write_ranks(
        steps, [&](const std::string& ending, const std::function<void(std::ostream&)>& write) {
          AtomicFile written(output + ending);
          write(written.stream());
          written.commit();
        });
    std::cerr << program.ranks << " files, " << nodes << " nodes\n";
    return ExitCode::kOk;
  }
};

const RegisterVerbGroup registered_graph("graph", "operator graphs");
const RegisterVerb<GraphExportArguments> registered_graph_export(
    "graph export", "the step of an experiment as a file of another program");

}  // namespace
}  // namespace orrery
