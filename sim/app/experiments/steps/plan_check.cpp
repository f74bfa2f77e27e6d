// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/plan_check.h"

#include <fmt/core.h>
#include <algorithm>
#include <utility>

#include "sim/config/load.h"
#include "sim/results/table.h"
#include "workloads/plan/mesh.h"

namespace orrery {
namespace {

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
  return below == above ? std::to_string(below) : fmt::format("{} or {}", below, above);
}

}  // namespace

void check_stragglers(const NoiseConfig& noise, int ranks, const char* owner,
                      const config::Node& node, config::Diagnostics& diagnostics) {
  for (const int rank : noise.stragglers.ranks) {
    if (rank >= 0 && rank < ranks) continue;
    complain(diagnostics, node, {"noise.stragglers.ranks"},
             fmt::format("there is no rank {}: {} has {}, from 0", rank, owner, ranks));
  }
}

void check_noise(const StepExperiment& e, const config::Node& node,
                 config::Diagnostics& diagnostics) {
  check_stragglers(e.noise, e.ranks(), "the plan", node, diagnostics);
  const config::Node* fold = node.find("fold");
  const bool asked = fold != nullptr && fold->origin().kind != config::Origin::Kind::kDefault;
  if (!asked || e.fold != Folding::kAuto || !e.noise.any()) return;
  diagnostics.warning(
      fold->where(), fold->length(),
      fmt::format("with noise no two ranks are alike: none are folded, and {} are replayed",
                  e.ranks()));
}

void warn_of_straddling(const PlacedPlan& plan, const config::Node& node,
                        config::Diagnostics& diagnostics) {
  const Mesh mesh(plan.parallel);
  const int system_ranks = plan.system_ranks;
  // Groups of a stage, by the key that makes them, which is the axis that they lie along.
  const std::pair<const char*, const char*> kinds[] = {{"tp", "tensor parallel"},
                                                       {"cp", "context parallel"},
                                                       {"ep", "expert parallel"},
                                                       {"etp", "expert tensor parallel"}};
  for (const auto& [key, name] : kinds) {
    const std::vector<int> first = mesh.groups({key}, 0).front();
    const auto size = static_cast<int>(first.size());
    const int extent = size > 1 ? (first[1] - first[0]) * size : 1;
    if (extent > system_ranks || system_ranks % extent == 0) continue;
    std::size_t all = 0, straddling = 0;
    for (int stage = 0; stage < plan.parallel.pp; ++stage) {
      const Mesh::Groups groups = mesh.groups({key}, stage);
      all += groups.size();
      straddling += static_cast<std::size_t>(std::ranges::count_if(
          groups, [&](const auto& group) { return !lies_on_one(group, system_ranks); }));
    }
    if (straddling == 0) continue;
    const config::KeyError straddles(
        fmt::format("{}parallel.{}", plan.path, key),
        fmt::format(
            "{} of {} {} groups lie on two systems of {} ranks, though each would fit into one",
            straddling, all, name, system_ranks),
        {{},
         {fmt::format(
             "groups of {} ranks stay inside; the step waits for the network between systems",
             fitting_extents(extent, system_ranks))}});
    config::report(straddles, node, diagnostics, config::Diagnostic::Severity::kWarning);
  }
}

void warn_of_copies(const PlacedPlan& plan, const LlmConfig& model, const config::Node& node,
                    config::Diagnostics& diagnostics) {
  const int ep = plan.parallel.ep;
  if (!model.has_moe() || model.moe.experts >= ep) return;
  const config::KeyError copies(
      plan.path + "parallel.ep",
      fmt::format("{} experts on {} ranks: {} ranks hold copies of experts (redundant experts)",
                  model.moe.experts, ep, ep - model.moe.experts),
      {{}, {"a copy takes the memory of an expert and its share of the tokens"}});
  config::report(copies, node, diagnostics, config::Diagnostic::Severity::kWarning);
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
    return fmt::format("every rank holds all {} experts; ep: {} holds it: {} a rank",
                       model.moe.experts, ep, format_si(peak.base(), "B"));
  }
  return {};
}

}  // namespace orrery
