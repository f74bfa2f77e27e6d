// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/recompute.h"

#include <algorithm>
#include <string>

#include "sim/config/schema.h"
#include "workloads/base/require.h"
#include "workloads/layers/work/enum_names.h"

namespace orrery {
namespace {

bool has_module(const RecomputeConfig& recompute, RecomputeModule module) {
  return recompute.granularity == Recompute::kSelective &&
         std::ranges::find(recompute.modules, module) != recompute.modules.end();
}

void require_module(bool there, const LlmConfig& model, const RecomputeConfig& recompute,
                    RecomputeModule module, const std::string& what) {
  require(there || !has_module(recompute, module), {"recompute.modules", "recompute"},
          "model '" + model.name + "' has no " + what);
}

}  // namespace

const config::Schema<RecomputeConfig>& RecomputeConfig::schema() {
  using R = RecomputeConfig;
  static const auto schema =
      config::Schema<R>("recompute", "what backward passes compute again; keys of Megatron-LM")
          .optional("granularity", &R::granularity,
                    "parts of layers (selective, by modules or as the software says: "
                    "software.selective_recompute), or every layer from its input (full)")
          .optional("method", &R::method,
                    "full: all layers in units of num_layers, of which the first input is kept "
                    "(uniform), or the first num_layers of each chunk alone (block)")
          .optional("num_layers", &R::num_layers,
                    "layers of a unit (uniform), or of each chunk of a stage (block)",
                    config::between(1, 10000))
          .optional("modules", &R::modules,
                    "parts that selective computes again: core_attn, mlp, moe, moe_act, "
                    "layernorm, mla_up_proj, shared_experts")
          .check("method and num_layers are of granularity full",
                 [](const R& r) {
                   return r.granularity == Recompute::kFull ||
                          (r.method == RecomputeMethod::kUniform && r.num_layers == 1);
                 },
                 {"num_layers", "method"})
          .check(
              "modules are of granularity selective",
              [](const R& r) {
                return r.granularity == Recompute::kSelective || r.modules == R().modules;
              },
              "modules")
          .check(
              "selective recomputation of no module", [](const R& r) { return !r.modules.empty(); },
              "modules")
          .shorthand("granularity");
  return schema;
}

void set_recompute(const RecomputeConfig& recompute, RankWork& work) {
  work.passes.recompute = recompute.granularity;
  work.passes.modules = {};
  for (const RecomputeModule module : recompute.modules)
    work.passes.modules[static_cast<std::size_t>(module)] = true;
}

RankWork RecomputeUnit::work(RankWork of_chunk, std::int64_t layer) const {
  of_chunk.passes.recompute = recompute;
  of_chunk.passes.input_again = layer > layers.first;
  return of_chunk;
}

std::vector<RecomputeUnit> recompute_units(const RecomputeConfig& recompute, LayerRange chunk) {
  const bool full = recompute.granularity == Recompute::kFull;
  const bool block = full && recompute.method == RecomputeMethod::kBlock;
  const std::int64_t size = full && !block ? recompute.num_layers : 1;
  std::vector<RecomputeUnit> units;
  for (std::int64_t first = 0; first < chunk.count; first += size) {
    const bool kept = block && first >= recompute.num_layers;
    units.push_back({{chunk.first + first, std::min(size, chunk.count - first)},
                     kept ? Recompute::kNone : recompute.granularity});
  }
  return units;
}

const RecomputeUnit& unit_of(const std::vector<RecomputeUnit>& units, std::int64_t layer) {
  return *std::ranges::find_if(
      units, [layer](const RecomputeUnit& unit) { return layer < unit.layers.end(); });
}

void require_recompute(const LlmConfig& model, const RecomputeConfig& recompute) {
  const bool latent = model.attention.kind == AttentionKind::kLatent;
  using M = RecomputeModule;
  require(!model.parallel_block || model.norms_per_layer > 1 ||
              !(has_module(recompute, M::kMlp) || has_module(recompute, M::kLayernorm)),
          {"recompute.modules", "recompute"},
          "parts of parallel blocks, which share a norm, are not computed again: model '" +
              model.name + "' has them");
  require_module(model.has_mlp(), model, recompute, M::kMlp, "MLP without experts");
  require_module(model.has_moe(), model, recompute, M::kMoe, "experts");
  require_module(model.has_moe(), model, recompute, M::kMoeAct, "experts");
  require_module(latent, model, recompute, M::kMlaUpProj, "latent attention");
  require_module(model.has_moe() && model.moe.shared_intermediate > 0, model, recompute,
                 M::kSharedExperts, "shared experts");
}

}  // namespace orrery
