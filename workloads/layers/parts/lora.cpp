// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/lora.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/config/schema.h"
#include "sim/units/comma_separated.h"
#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"

namespace orrery {
namespace {

constexpr double kAdapterBytes = 2;  ///< lora_dtype: auto is that of the 16-bit model
constexpr double kBetweenBytes = 4;  ///< buffer of vllm/lora/punica_wrapper/punica_gpu.py

/// Columns between the two products: a rank for each matrix that was packed into this one.
std::int64_t between(const RankWork& work, const Linear& linear) {
  return linear.adapted->packed * work.lora.rank;
}

/// Elements of one adapter on this rank.
double elements(const RankWork& work, const Linear& linear) {
  return real(linear.in * between(work, linear)) + real(work.lora.rank * linear.out);
}

Kernel product(std::string name, const RankWork& work, std::int64_t n, std::int64_t k) {
  const std::int64_t adapters = work.lora.adapters;
  return matrix_kernel(std::move(name), KernelClass::kLora, unquantised(work.formats.precision),
                       {(work.tokens() + adapters - 1) / adapters, n, k, adapters});
}

Kernel shrink(const RankWork& work, const Linear& linear) {
  const double tokens = real(work.tokens()), in = real(linear.in);
  const double columns = real(between(work, linear));
  Kernel kernel = product(linear.name + " lora shrink", work, between(work, linear), linear.in);
  kernel.matrix_flops = Flops(2 * tokens * in * columns);
  kernel.read = Bytes(tokens * in * activation_bytes(work.formats.precision) +
                      real(work.lora.adapters) * in * columns * kAdapterBytes);
  kernel.written = Bytes(tokens * columns * kBetweenBytes);
  return kernel;
}

/// Adds to the output of the matrix, which it reads for that.
Kernel expand(const RankWork& work, const Linear& linear) {
  const double tokens = real(work.tokens()), out = real(linear.out);
  const double rank = real(work.lora.rank);
  const Bytes output(tokens * out * activation_bytes(work.formats.precision));
  Kernel kernel = product(linear.name + " lora expand", work, linear.out, work.lora.rank);
  kernel.matrix_flops = Flops(2 * tokens * rank * out);
  kernel.read = Bytes(tokens * real(between(work, linear)) * kBetweenBytes +
                      real(work.lora.adapters) * rank * out * kAdapterBytes) +
                output;
  kernel.written = output;
  return kernel;
}

/// Products of an adapter in training.
GemmShape into_rank(const RankWork& work, const Adapter& adapter, std::int64_t rows) {
  return {.m = rows, .n = work.lora.rank, .k = adapter.in};
}
GemmShape out_of_rank(const RankWork& work, const Adapter& adapter, std::int64_t rows) {
  return {.m = rows, .n = adapter.out, .k = work.lora.rank};
}

/// Its output, scaled, is added to that of the matrix by kernels of their own (Megatron-Bridge,
/// peft/lora_layers.py, peft/utils.py ParallelLinearAdapter; recalled).
void trained_forward(StepList& steps, const RankWork& work, const Adapter& adapter,
                     std::int64_t rows) {
  const Precision precision = unquantised(work.formats.precision);
  const double bytes = activation_bytes(precision);
  steps.then(gemm(adapter.name + " lora in", precision, into_rank(work, adapter, rows)));
  steps.then(gemm(adapter.name + " lora out", precision, out_of_rank(work, adapter, rows)));
  steps.then(elementwise(adapter.name + " lora scale", rows, adapter.out, {bytes, bytes, 1}));
  steps.then(
      elementwise(adapter.name + " lora addition", rows, adapter.out, {2 * bytes, bytes, 1}));
}

/// What matrices of a model are called for adapters.
struct MatrixNames {
  std::set<LoraModule> known;       ///< names of matrices, packed ones and their parts
  std::vector<std::string> widest;  ///< names that together mean all of them, each once
};

/// Matrices of experts have no adapters, and their names are those of an MLP.
MatrixNames matrix_names(const LlmConfig& model) {
  MatrixNames names;
  const auto add = [&](LoraModule module, bool widest) {
    if (names.known.insert(module).second && widest) names.widest.emplace_back(to_string(module));
  };
  for (LayerConfig layer : model.layers) {
    layer.feeds = layer.feeds && !model.has_moe();
    for (const Linear& linear : adapted_linears({model, layer, RankWork()})) {
      if (!linear.adapted) continue;
      if (linear.adapted->module) add(*linear.adapted->module, true);
      for (const MatrixPart& part : linear.parts)
        if (part.module) add(*part.module, !linear.adapted->module);
    }
  }
  return names;
}

/// "target_modules: [q_a_proj, o_proj]".
std::string targets_text(const std::vector<std::string>& names) {
  return fmt::format("target_modules: [{}]", comma_joined(names));
}

}  // namespace

std::vector<Linear> adapted_linears(const LayerTask& task) {
  std::vector<Linear> all;
  if (const Mixer* mixer = mixer_of(task.model, task.layer)) all = mixer->weights(task).matrices;
  std::erase_if(all, [](const Linear& linear) { return !linear.adapted; });
  if (task.layer.moe || !task.layer.feeds) return all;
  const std::vector<Linear> mlp = mlp_weights(task).matrices;
  all.insert(all.end(), mlp.begin(), mlp.end());
  return all;
}

const char* to_string(LoraModule module) {
  for (const auto& [value, name] : config::EnumNames<LoraModule>::values)
    if (value == module) return name;
  return "";
}

std::vector<Adapter> adapters_of(const RankWork& work, const Linear& linear) {
  if (!linear.adapted) return {};
  if (linear.adapted->module && work.lora.changes_module(*linear.adapted->module))
    return {{linear.name, linear.in, linear.out}};
  std::vector<Adapter> all;
  for (const MatrixPart& part : linear.parts)
    if (part.module && work.lora.changes_module(*part.module))
      all.push_back({to_string(*part.module), linear.in, part.out});
  return all;
}

std::optional<LoraModule> packed_in(LoraModule part) {
  using enum LoraModule;
  if (part == kQProj || part == kKProj || part == kVProj) return kQkvProj;
  if (part == kGateProj || part == kUpProj) return kGateUpProj;
  return std::nullopt;
}

bool is_adapted(const RankWork& work, const Linear& linear) {
  return !adapters_of(work, linear).empty();
}

const config::Schema<LoraConfig>& LoraConfig::schema() {
  using L = LoraConfig;
  static const auto schema =
      config::Schema<L>("lora", "adapters that devices hold beside a model; keys of vLLM")
          .optional("max_loras", &L::max_loras,
                    "slots for adapters in device memory, and different adapters in an iteration "
                    "at most",
                    config::between(1, 1e5))
          .optional("max_lora_rank", &L::max_lora_rank,
                    "rank of the largest adapter; slots and kernels have it for all of them",
                    config::between(1, 512))
          .optional("target_modules", &L::target_modules,
                    "matrices that adapters change: qkv_proj, o_proj, gate_up_proj, down_proj")
          .check(
              "adapters that change no matrix",
              [](const L& l) { return !l.target_modules.empty(); }, "target_modules");
  return schema;
}

LoraWork lora_work(const std::optional<LoraConfig>& lora, std::int64_t adapters) {
  LoraWork work;
  if (!lora) return work;
  work.adapters = adapters;
  work.rank = lora->max_lora_rank;
  for (const LoraModule module : lora->target_modules)
    work.changes[static_cast<std::size_t>(module)] = true;
  return work;
}

void adapter_forward(StepList& steps, const RankWork& work, const Linear& linear,
                     std::int64_t rows) {
  if (work.lora.adapters == 0 || !is_adapted(work, linear)) return;
  if (work.lora.trains) {
    for (const Adapter& adapter : adapters_of(work, linear))
      trained_forward(steps, work, adapter, rows);
    return;
  }
  steps.then(shrink(work, linear));
  steps.then(expand(work, linear));
}

void adapter_backward(StepList& steps, const RankWork& work, const Linear& linear,
                      std::int64_t rows, std::size_t gradient) {
  if (!work.lora.trains) return;
  const Precision precision = unquantised(work.formats.precision);
  const double bytes = activation_bytes(precision);
  const GradientBuffer buffer = gradient_buffer(work);
  for (const Adapter& adapter : adapters_of(work, linear)) {
    const GemmShape in = into_rank(work, adapter, rows), out = out_of_rank(work, adapter, rows);
    const std::string name_in = adapter.name + " lora in", name_out = adapter.name + " lora out";
    steps.then(data_gradient(name_out, precision, out));
    const std::size_t middle = steps.cursor();
    steps.then(data_gradient(name_in, precision, in));
    steps.then(elementwise(adapter.name + " lora gradient addition", rows, adapter.in,
                           {2 * bytes, bytes, 1}));
    steps.for_weights(weight_gradient(name_out, precision, out, buffer), {gradient});
    steps.for_weights(weight_gradient(name_in, precision, in, buffer), {middle});
  }
}

double frozen_bytes(FrozenFormat format, double trained) {
  static const std::map<FrozenFormat, double> kBytes = {
      {FrozenFormat::kInt8, 1},
      {FrozenFormat::kNf4, 0.5 + 4.0 / 64},
      {FrozenFormat::kNf4Double, 0.5 + (1 + 4.0 / 256) / 64},
      {FrozenFormat::kGptq, 0.5 + (2 + 0.5) / 128},
  };
  return format == FrozenFormat::kAsTrained ? trained : kBytes.at(format);
}

double adapter_columns(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  std::int64_t elements = 0;
  for (const Linear& linear : adapted_linears({model, layer, work})) {
    const auto adapters = static_cast<std::int64_t>(adapters_of(work, linear).size());
    if (adapters == 0) continue;
    const bool whole = linear.split == MatrixSplit::kNone;
    elements += adapters * (whole ? work.row_tokens() : work.tokens()) * work.lora.rank;
  }
  return real(elements);
}

StepList adapters_forward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  StepList steps;
  for (const Linear& linear : adapted_linears({model, layer, work}))
    adapter_forward(steps, work, linear, work.tokens());
  return steps;
}

Bytes layer_adapter_bytes(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  Bytes bytes;
  for (const Linear& linear : adapted_linears({model, layer, work}))
    if (is_adapted(work, linear)) bytes += Bytes(elements(work, linear) * kAdapterBytes);
  return bytes;
}

void require_adapters(const LlmConfig& model, const std::vector<LoraModule>& modules) {
  // Recurrent layers beside attention stay as they are.
  for (const LayerConfig& layer : model.layers) {
    const MixerKind kind = layer.mixer;
    const bool known = kind == MixerKind::kAttention || kind == MixerKind::kNone ||
                       kind == MixerKind::kMamba2 || kind == MixerKind::kDeltaNet;
    require(known, "lora",
            "adapters of " + std::string(kind.name) + " are not modelled: model '" + model.name +
                "' has it");
  }
  const bool of_mlp = std::ranges::any_of(modules, [](LoraModule module) {
    return module == LoraModule::kDownProj ||
           packed_in(module).value_or(module) == LoraModule::kGateUpProj;
  });
  require(!model.has_moe() || !of_mlp, {"lora.target_modules", "lora"},
          "adapters of experts are not modelled: model '" + model.name + "' has experts",
          {{}, {targets_text(matrix_names(model).widest)}});
  const MatrixNames names = matrix_names(model);
  for (const LoraModule module : modules)
    require(names.known.contains(module), {"lora.target_modules", "lora"},
            "model '" + model.name + "' has no matrix " + to_string(module),
            {{}, {targets_text(names.widest)}});
}

void require_adapters(const LlmConfig& model, const LoraConfig& lora, std::int64_t adapters,
                      std::int64_t tokens) {
  require(model.attention.kind == AttentionKind::kGrouped, "lora",
          "adapters of latent attention are modelled in training alone: model '" + model.name +
              "' has it");
  require_adapters(model, lora.target_modules);
  for (const LoraModule module : lora.target_modules) {
    const LoraModule packed = packed_in(module).value_or(module);
    require(packed == module, {"lora.target_modules", "lora"},
            std::string("engines serve adapters of ") + to_string(packed) + ", which joins " +
                to_string(module) + " with others",
            {{}, {targets_text({to_string(packed)})}});
  }
  require(adapters <= lora.max_loras, {"adapters", "lora.max_loras"},
          fmt::format("{} different adapters in a step that has {} slots for them", adapters,
                      lora.max_loras),
          {std::to_string(lora.max_loras), {}});
  require(adapters <= tokens, {"adapters", "lora"},
          fmt::format("{} different adapters for a step of {} tokens", adapters, tokens));
}

}  // namespace orrery
