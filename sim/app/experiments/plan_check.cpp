// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/plan_check.h"

#include <algorithm>

#include "sim/app/experiments/experiment_network.h"
#include "sim/app/experiments/model_step.h"
#include "sim/config/load.h"
#include "sim/machine/kernel_model.h"
#include "sim/results/table.h"
#include "workloads/parallelism/mesh.h"

namespace orrery {
namespace {

/// Groups of a stage, by the key that makes them, which is the axis that they lie along.
struct GroupKind {
  const char* key;
  const char* name;
  int extent;  ///< ranks from the first of a group to behind its last
};

bool lies_on_one(const std::vector<int>& group, int system_ranks) {
  return group.front() / system_ranks == group.back() / system_ranks;
}

/// Extents next to `extent` that divide a system, as text: "36 or 72".
std::string fitting_extents(int extent, int system_ranks) {
  int below = 1, above = system_ranks;
  for (int size = 1; size <= system_ranks; ++size) {
    if (system_ranks % size != 0) continue;
    if (size <= extent) below = size;
    if (size >= extent) above = std::min(above, size);
  }
  return below == above ? std::to_string(below)
                        : std::to_string(below) + " or " + std::to_string(above);
}

/// Groups that fit into one system and lie on two, where every message pays the network between.
void warn_of_straddling(const LoadedExperiment& loaded, config::Diagnostics& diagnostics) {
  const Experiment& e = loaded.experiment;
  const ParallelConfig& p = e.parallel;
  const Mesh mesh(p);
  const int system_ranks = e.system.ranks();
  const GroupKind kinds[] = {{"tp", "tensor parallel", p.tp},
                             {"ep", "expert parallel", p.ep * p.etp},
                             {"etp", "expert tensor parallel", p.etp}};
  for (const GroupKind& kind : kinds) {
    if (kind.extent > system_ranks || system_ranks % kind.extent == 0) continue;
    std::size_t all = 0, straddling = 0;
    for (int stage = 0; stage < p.pp; ++stage) {
      const Mesh::Groups groups = mesh.groups({kind.key}, stage);
      all += groups.size();
      straddling += static_cast<std::size_t>(std::count_if(
          groups.begin(), groups.end(),
          [&](const std::vector<int>& group) { return !lies_on_one(group, system_ranks); }));
    }
    if (straddling == 0) continue;
    config::report(config::KeyError(
                       std::string("parallel.") + kind.key,
                       std::to_string(straddling) + " of " + std::to_string(all) + " " + kind.name +
                           " groups lie on two systems of " + std::to_string(system_ranks) +
                           " ranks, though each would fit into one",
                       {{},
                        {"groups of " + fitting_extents(kind.extent, system_ranks) +
                         " ranks stay inside; the step waits for the network between systems"}}),
                   loaded.node, diagnostics, config::Diagnostic::Severity::kWarning);
  }
}

void warn_of_copies(const LoadedExperiment& loaded, const LlmConfig& model,
                    config::Diagnostics& diagnostics) {
  const int ep = loaded.experiment.parallel.ep;
  if (!model.has_moe() || model.moe.experts >= ep) return;
  config::report(
      config::KeyError("parallel.ep",
                       std::to_string(model.moe.experts) + " experts on " + std::to_string(ep) +
                           " ranks: " + std::to_string(ep - model.moe.experts) +
                           " ranks hold copies of experts (redundant experts)",
                       {{}, {"a copy takes the memory of an expert and its share of the tokens"}}),
      loaded.node, diagnostics, config::Diagnostic::Severity::kWarning);
}

void require_plan(const Experiment& e, const LlmConfig& model) {
  if (e.kind == ExperimentKind::kTraining) {
    require_supported(model, training_config(e));
  } else {
    require_supported(model, inference_config(e));
  }
  matrix_peak(e.system.accelerator, e.precision);
  const bool fp8_prefill = e.kind == ExperimentKind::kInference && e.phase == Phase::kPrefill &&
                           e.kv_precision == CacheFormat::kFp8 &&
                           model.attention.kind == AttentionKind::kGrouped;
  if (fp8_prefill && !find_precision(e.system.accelerator.compute.matrix, Precision::kFp8)) {
    throw config::KeyError("kv_precision",
                           "a prefill over an fp8 cache runs its attention in fp8, for which " +
                               e.system.accelerator.name + " has no matrix rate",
                           {"bf16", {}});
  }
}

/// What a rank needs at most.
Bytes peak_memory(const Experiment& e, const LlmConfig& model) {
  return worst_stage(e.kind == ExperimentKind::kTraining
                         ? training_memory(model, training_config(e))
                         : inference_memory(model, inference_config(e)))
      .total();
}

}  // namespace

std::string check_plan(const LoadedExperiment& loaded) {
  const Experiment& e = loaded.experiment;
  config::Diagnostics diagnostics;
  try {
    switch (e.kind) {
      case ExperimentKind::kOperator:
        for (const Kernel& kernel : (*e.op)->kernels(e.precision)) {
          if (kernel.matrix_flops.base() > 0) matrix_peak(e.system.accelerator, kernel.precision);
        }
        break;
      case ExperimentKind::kCollective:
        break;
      default: {
        const LlmConfig model = e.model.build();
        require_plan(e, model);
        warn_of_straddling(loaded, diagnostics);
        warn_of_copies(loaded, model, diagnostics);
      }
    }
  } catch (const config::KeyError& error) {
    config::throw_located(error, loaded.node);
  }
  return diagnostics.render_warnings();
}

void check_network(const LoadedExperiment& loaded) {
  if (loaded.experiment.kind == ExperimentKind::kOperator) return;
  try {
    const ExperimentNetwork network(loaded.experiment);
  } catch (const config::KeyError& error) {
    config::throw_located(error, loaded.node);
  }
}

std::string expert_parallel_hint(const Experiment& experiment) {
  const LlmConfig model = experiment.model.build();
  const ParallelConfig& p = experiment.parallel;
  if (!model.has_moe() || p.ep * p.etp > 1) return {};
  const Bytes usable = usable_memory(experiment);
  Experiment shared = experiment;
  for (int ep = 2; ep <= p.tp * p.dp; ++ep) {
    if (p.tp * p.dp % ep != 0 || model.moe.experts % ep != 0) continue;
    shared.parallel.ep = ep;
    const Bytes peak = peak_memory(shared, model);
    if (peak > usable) continue;
    return "every rank holds all " + std::to_string(model.moe.experts) +
           " experts; ep: " + std::to_string(ep) + " holds it: " + format_si(peak.base(), "B") +
           " a rank";
  }
  return {};
}

}  // namespace orrery
