// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random/experiments.h"

#include <map>

#include "sim/config/output.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

std::string set(const std::string& path, std::int64_t value) {
  return path + "=" + std::to_string(value);
}

std::vector<std::string> shipped(const std::string& kind) {
  return config::default_library().names(kind);
}

/// Precisions that any matrix unit has; a device without one refuses it.
std::string precision(Draw& draw) {
  return draw.of({"bf16", "bf16", "fp8", "fp8", "fp8_block", "nvfp4", "int8", "fp16"});
}

std::string product(Draw& draw) {
  return "{kind: gemm, m: " + std::to_string(draw.spread(1, 32768)) +
         ", n: " + std::to_string(64 * draw.spread(1, 512)) +
         ", k: " + std::to_string(64 * draw.spread(1, 512)) + "}";
}

/// Heads of queries and of keys and values, a divisor of them.
std::string heads(Draw& draw) {
  const std::int64_t kv_heads = draw.power(1, 16);
  return "heads: " + std::to_string(kv_heads * draw.power(1, 8)) +
         ", kv_heads: " + std::to_string(kv_heads) +
         ", head_dim: " + std::to_string(draw.of({64, 128, 256}));
}

std::string prompts(Draw& draw) {
  return "{kind: attention_prefill, batch: " + std::to_string(draw.spread(1, 32)) +
         ", query: " + std::to_string(draw.spread(16, 16384)) + ", " + heads(draw) + "}";
}

std::string new_tokens(Draw& draw) {
  const std::string cache = draw.chance(0.3) ? ", kv_precision: fp8" : "";
  return "{kind: attention_decode, batch: " + std::to_string(draw.spread(1, 512)) +
         ", kv_length: " + std::to_string(draw.spread(16, 65536)) + ", " + heads(draw) + cache +
         "}";
}

std::string latent(Draw& draw) {
  const std::string rest = ", heads: " + std::to_string(draw.power(8, 128)) + "}";
  const std::string batch = ", batch: " + std::to_string(draw.spread(1, 256));
  if (draw.chance(0.5))
    return "{kind: mla_decode" + batch + ", kv_length: " + std::to_string(draw.spread(16, 65536)) +
           rest;
  return "{kind: mla_prefill, query: " + std::to_string(draw.spread(16, 8192)) + rest;
}

std::string experts(Draw& draw) {
  const std::int64_t count = draw.power(8, 256);
  return "{kind: moe, tokens: " + std::to_string(draw.spread(1, 16384)) +
         ", hidden: " + std::to_string(512 * draw.spread(2, 16)) +
         ", expert_ffn: " + std::to_string(256 * draw.spread(2, 32)) +
         ", top_k: " + std::to_string(draw.power(1, 8)) + ", experts: " + std::to_string(count) +
         "}";
}

std::string recurrence(Draw& draw) {
  const std::string heads = ", heads: " + std::to_string(draw.power(2, 128));
  if (draw.chance(0.5))
    return "{kind: " + draw.of({"delta_update", "mamba_update"}) +
           ", batch: " + std::to_string(draw.spread(1, 512)) + heads + "}";
  return "{kind: " + draw.of({"delta_rule", "mamba_scan"}) +
         ", query: " + std::to_string(draw.spread(16, 65536)) + heads + "}";
}

std::string choice(Draw& draw) {
  return "{kind: " + draw.of({"sparse_attention", "index_scores"}) +
         ", query: " + std::to_string(draw.spread(16, 16384)) +
         ", heads: " + std::to_string(draw.power(16, 128)) + "}";
}

std::string rows(Draw& draw) {
  const std::string kind = draw.of({"rms_norm", "layer_norm", "softmax"});
  return "{kind: " + kind + ", rows: " + std::to_string(draw.spread(1, 65536)) +
         ", width: " + std::to_string(128 * draw.spread(1, 128)) + "}";
}

RandomExperiment draw_operator(Draw& draw) {
  using Maker = std::string (*)(Draw&);
  const std::vector<Maker> makers = {product, product,    prompts, new_tokens, latent,
                                     experts, recurrence, choice,  rows};
  return {"operator", {"operator=" + draw.of(makers)(draw), "precision=" + precision(draw)}};
}

RandomExperiment draw_collective(Draw& draw) {
  const std::string kind = draw.of({"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                    "broadcast", "reduce", "send_receive"});
  const std::int64_t ranks = draw.power(2, 512);
  return {"collective",
          {set("nodes", draw.power(1, 4)),
           set("collective.ranks", kind == "send_receive" ? 2 : ranks), "collective.kind=" + kind,
           "collective.bytes=" + std::to_string(draw.spread(1024, 4e9)) + " B"}};
}

/// Sizes of a plan: powers of two, so that many fit.
std::vector<std::string> plan(Draw& draw, bool training) {
  const std::int64_t tp = draw.power(1, 8), pp = training ? draw.power(1, 4) : 1,
                     dp = draw.power(1, 8);
  std::vector<std::string> all = {set("parallel.tp", tp), set("parallel.pp", pp),
                                  set("parallel.dp", dp)};
  if (draw.chance(0.3)) all.push_back(set("parallel.ep", draw.power(2, 8)));
  if (!training && draw.chance(0.2)) all.push_back(set("parallel.cp", draw.power(2, 4)));
  if (training && tp > 1 && draw.chance(0.7)) all.emplace_back("parallel.sp=true");
  if (training && dp > 1 && draw.chance(0.5)) all.emplace_back("parallel.zero=1");
  return all;
}

RandomExperiment draw_training(Draw& draw) {
  RandomExperiment e{"training", plan(draw, true)};
  e.assignments.push_back(set("nodes", draw.power(1, 8)));
  e.assignments.push_back(set("batch.global", draw.power(8, 64)));
  e.assignments.push_back(set("batch.sequence", draw.power(512, 8192)));
  e.assignments.push_back("recompute=" + draw.of({"none", "selective", "full"}));
  e.assignments.push_back("precision=" + draw.of({"bf16", "bf16", "fp8"}));
  if (draw.chance(0.5)) e.assignments.push_back(set("layers_only", draw.power(1, 8)));
  return e;
}

RandomExperiment draw_inference(Draw& draw) {
  RandomExperiment e{"inference", plan(draw, false)};
  e.assignments.push_back(set("nodes", draw.power(1, 4)));
  e.assignments.push_back("precision=" + precision(draw));
  e.assignments.push_back(set("batch.micro", draw.power(1, 256)));
  if (draw.chance(0.6)) {
    e.assignments.push_back(set("kv_length", draw.spread(64, 65536)));
  } else {
    e.assignments.emplace_back("phase=prefill");
    e.assignments.push_back(set("batch.sequence", draw.power(64, 8192)));
  }
  return e;
}

/// A figure of the hardware that is changed, by a factor.
struct WhatIf {
  const char* path;
  std::vector<double> factors;
};
const std::vector<WhatIf>& what_ifs() {
  static const std::vector<WhatIf> all = {
      {"system.accelerator.memory.bandwidth", {0.25, 2, 10}},
      {"system.accelerator.memory.capacity", {4, 16}},
      {"system.accelerator.cache.bandwidth", {0.1, 0.5, 4}},
      {"system.accelerator.cache.capacity", {0.25, 4, 16}},
      {"system.accelerator.compute.units", {0.5, 2}},
      {"system.accelerator.compute.vector", {0.25, 4}},
      {"system.accelerator.compute.special", {0.25, 4}},
      {"system.accelerator.scale_up.bandwidth", {0.25, 4}},
      {"system.accelerator.scale_out.bandwidth", {0.25, 4}},
      {"system.accelerator.power.tdp", {0.6, 0.8, 1.5}},
      {"system.accelerator.compute.clock", {0.5, 1.2}},
      {"system.accelerator.kernel.launch", {0.5, 2}},
  };
  return all;
}

/// The experiment with the figure at `target` set to `factor` times that at `path`.
RandomExperiment changed(RandomExperiment e, const std::string& path, double factor,
                         const std::string& target) {
  try {
    const LoadedExperiment loaded = load_experiment(e.file(), e.assignments);
    if (const auto assignment = scaled(loaded, path, factor))
      e.assignments.push_back(target + assignment->substr(path.size()));
  } catch (const config::ConfigError&) {
    // Refused without the change too.
  }
  return e;
}

/// The experiment on devices with a cap below that of the part as sold.
RandomExperiment limited(RandomExperiment e, Draw& draw) {
  return changed(std::move(e), "system.accelerator.power.tdp", draw.of(std::vector{0.3, 0.5, 0.8}),
                 "system.accelerator.power.limit");
}

}  // namespace

std::string RandomExperiment::file() const {
  return ORRERY_SOURCE_DIR "/tests/properties/random/" + base + ".yaml";
}

std::string RandomExperiment::command_line() const {
  std::string text = "orrery run tests/properties/random/" + base + ".yaml";
  for (const std::string& assignment : assignments) text += " --set '" + assignment + "'";
  return text;
}

RandomExperiment RandomExperiment::with(const std::vector<std::string>& more) const {
  RandomExperiment other = *this;
  other.assignments.insert(other.assignments.end(), more.begin(), more.end());
  return other;
}

std::optional<std::string> scaled(const LoadedExperiment& loaded, const std::string& path,
                                  double factor) {
  for (const config::Leaf& leaf : loaded.leaves()) {
    if (leaf.path != path || !leaf.value || *leaf.value == 0) continue;
    const double value = *leaf.value * factor;
    if (leaf.unit.empty()) return path + "=" + std::to_string(std::llround(value));
    return path + "=" + print_number(value) + " " + leaf.unit;
  }
  return std::nullopt;
}

namespace {

/// On any shipped system, of any shipped model.
RandomExperiment as_sold(RandomExperiment e, Draw& draw) {
  static const std::vector<std::string> systems = shipped("systems"), models = shipped("models");
  e.assignments.insert(e.assignments.begin(), "system=" + draw.of(systems));
  if (e.base == "training" || e.base == "inference")
    e.assignments.push_back("model=" + draw.of(models));
  return e;
}

}  // namespace

RandomExperiment draw_as_sold(Draw& draw) {
  using Maker = RandomExperiment (*)(Draw&);
  const std::vector<Maker> makers = {draw_operator, draw_collective, draw_training, draw_inference,
                                     draw_inference};
  return as_sold(draw.of(makers)(draw), draw);
}

RandomExperiment draw_training_as_sold(Draw& draw) { return as_sold(draw_training(draw), draw); }

RandomExperiment draw_experiment(Draw& draw) {
  RandomExperiment e = draw_as_sold(draw);
  if (!draw.chance(0.5)) return e;
  if (draw.chance(0.2)) return limited(std::move(e), draw);
  const WhatIf& change = draw.of(what_ifs());
  return changed(std::move(e), change.path, draw.of(change.factors), change.path);
}

}  // namespace orrery
