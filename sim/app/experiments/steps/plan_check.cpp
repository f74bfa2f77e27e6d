// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/plan_check.h"

#include <algorithm>

#include "sim/config/load.h"
#include "sim/config/place.h"
#include "sim/results/table.h"
#include "workloads/plan/mesh.h"

namespace orrery {
namespace {

/// Groups of a stage, by the key that makes them, which is the axis that they lie along.
struct GroupKind {
  const char* key;
  const char* name;
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

}  // namespace

void check_stragglers(const NoiseConfig& noise, int ranks, const char* owner,
                      const config::Node& node, config::Diagnostics& diagnostics) {
  for (const int rank : noise.stragglers.ranks) {
    if (rank >= 0 && rank < ranks) continue;
    const config::Place place = config::place_of(node, {"noise.stragglers.ranks"});
    diagnostics.error(place.where, place.length,
                      "there is no rank " + std::to_string(rank) + ": " + owner + " has " +
                          std::to_string(ranks) + ", from 0");
  }
}

void check_noise(const StepExperiment& e, const config::Node& node,
                 config::Diagnostics& diagnostics) {
  check_stragglers(e.noise, e.ranks(), "the plan", node, diagnostics);
  const config::Node* fold = node.find("fold");
  const bool asked = fold != nullptr && fold->origin().kind != config::Origin::Kind::kDefault;
  if (!asked || e.fold != Folding::kAuto || !e.noise.any()) return;
  diagnostics.warning(fold->where(), fold->length(),
                      "with noise no two ranks are alike: none are folded, and " +
                          std::to_string(e.ranks()) + " are replayed");
}

void warn_of_straddling(const PlacedPlan& plan, const config::Node& node,
                        config::Diagnostics& diagnostics) {
  const Mesh mesh(plan.parallel);
  const int system_ranks = plan.system_ranks;
  const GroupKind kinds[] = {{"tp", "tensor parallel"},
                             {"cp", "context parallel"},
                             {"ep", "expert parallel"},
                             {"etp", "expert tensor parallel"}};
  for (const GroupKind& kind : kinds) {
    const std::vector<int> first = mesh.groups({kind.key}, 0).front();
    const auto size = static_cast<int>(first.size());
    const int extent = size > 1 ? (first[1] - first[0]) * size : 1;
    if (extent > system_ranks || system_ranks % extent == 0) continue;
    std::size_t all = 0, straddling = 0;
    for (int stage = 0; stage < plan.parallel.pp; ++stage) {
      const Mesh::Groups groups = mesh.groups({kind.key}, stage);
      all += groups.size();
      straddling += static_cast<std::size_t>(std::count_if(
          groups.begin(), groups.end(),
          [&](const std::vector<int>& group) { return !lies_on_one(group, system_ranks); }));
    }
    if (straddling == 0) continue;
    config::report(config::KeyError(
                       plan.path + "parallel." + kind.key,
                       std::to_string(straddling) + " of " + std::to_string(all) + " " + kind.name +
                           " groups lie on two systems of " + std::to_string(system_ranks) +
                           " ranks, though each would fit into one",
                       {{},
                        {"groups of " + fitting_extents(extent, system_ranks) +
                         " ranks stay inside; the step waits for the network between systems"}}),
                   node, diagnostics, config::Diagnostic::Severity::kWarning);
  }
}

void warn_of_copies(const PlacedPlan& plan, const LlmConfig& model, const config::Node& node,
                    config::Diagnostics& diagnostics) {
  const int ep = plan.parallel.ep;
  if (!model.has_moe() || model.moe.experts >= ep) return;
  config::report(
      config::KeyError(plan.path + "parallel.ep",
                       std::to_string(model.moe.experts) + " experts on " + std::to_string(ep) +
                           " ranks: " + std::to_string(ep - model.moe.experts) +
                           " ranks hold copies of experts (redundant experts)",
                       {{}, {"a copy takes the memory of an expert and its share of the tokens"}}),
      node, diagnostics, config::Diagnostic::Severity::kWarning);
}

void refuse_optimizer_shards(const config::Node& node, const std::string& path,
                             config::Diagnostics& diagnostics) {
  for (const char* key : {"parallel.zero", "parallel.dp_shard"}) {
    const config::Node* written = node.at_path(path + key);
    if (written == nullptr || written->origin().kind == config::Origin::Kind::kDefault) continue;
    diagnostics.error(written->where(), written->length(),
                      "inference has no optimizer whose states ranks could share out");
  }
}

std::string check_plan(const LoadedExperiment& loaded) {
  config::Diagnostics diagnostics;
  try {
    loaded.experiment->check_plan(loaded.node, diagnostics);
  } catch (const config::KeyError& error) {
    config::throw_located(error, loaded.node);
  }
  return diagnostics.render_warnings();
}

void check_network(const LoadedExperiment& loaded) {
  try {
    loaded.experiment->check_network();
  } catch (const config::KeyError& error) {
    config::throw_located(error, loaded.node);
  }
}

std::string expert_parallel_hint(const ModelExperiment& experiment) {
  const LlmConfig model = experiment.model.build();
  const ParallelConfig& p = experiment.parallel;
  if (!model.has_moe() || p.ep * p.etp > 1) return {};
  const Bytes usable = experiment.usable_memory();
  ParallelConfig shared = p;
  for (int ep = 2; ep <= p.tp * p.cp * p.dp; ++ep) {
    if (p.tp * p.cp * p.dp % ep != 0 || model.moe.experts % ep != 0) continue;
    shared.ep = ep;
    const Bytes peak = worst_stage(experiment.memory(model, shared)).total();
    if (peak > usable) continue;
    return "every rank holds all " + std::to_string(model.moe.experts) +
           " experts; ep: " + std::to_string(ep) + " holds it: " + format_si(peak.base(), "B") +
           " a rank";
  }
  return {};
}

}  // namespace orrery
