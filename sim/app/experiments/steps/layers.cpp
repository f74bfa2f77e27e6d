// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/layers.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "models/kernels/device/array_time.h"
#include "sim/app/experiments/core/intervals.h"
#include "sim/app/experiments/keys/common_metrics.h"
#include "sim/app/experiments/steps/explanation.h"
#include "sim/app/experiments/steps/model_step.h"
#include "sim/results/table.h"

namespace orrery {

using config::between;

const config::Schema<LayersExperiment>& LayersExperiment::schema() {
  using E = LayersExperiment;
  static const config::Schema<E> schema = with_step_keys(
      with_link_keys(machine_schema<E>("layers", "one step of a model that is a list of layers"))
          .optional_reference("layer_model", &E::model, "layer_models", "the list of layers")
          .optional("phase", &E::phase, "a forward pass, or a training step")
          .optional("batch", &E::batch, "samples of a rank", between(1, 1e6))
          .optional(
              "dp", &E::dp,
              "replicas, each with samples of its own; those of training add up their gradients "
              "beside the backward pass, in buckets of 25 MiB (PyTorch's DistributedDataParallel)",
              between(1, 100000))
          .optional("fused", &E::fused,
                    "inference does norms of batches, functions and sums in the kernels of the "
                    "product before them; training never does")
          .optional("optimizer", &E::optimizer,
                    "what updates weights: sgd (with momentum) or adam"));
  return schema;
}

namespace {

const DeclaredMetric kSamplesPerS{
    {"samples_per_s", "1/s", "samples of the step over its time", "layers", Follows::kRate}};
const DeclaredMetric kSamplesPerSPerAccelerator{
    {"samples_per_s_per_accelerator", "1/s",
     "samples of the step over its time and the accelerator packages", "layers", Follows::kRate}};
const DeclaredMetric kFlashBytes{
    {"memory.flash_bytes", "B", "weights in the flash of a microcontroller", "layers"}};

const RegisterExperiment<LayersExperiment> registered_layers(
    "layers", "steps of models that are lists of layers: vision, diffusion, small networks");

std::string batch_cell(const LayersExperiment& e) {
  return e.dp > 1 ? fmt::format("{} x {}", e.batch, e.dp) : std::to_string(e.batch);
}

}  // namespace

LayerGraph LayersExperiment::build() const {
  const bool trains = phase == LayersPhase::kTraining;
  try {
    return model.build(
        {.samples = batch, .precision = precision, .training = trains, .fuses = fused});
  } catch (const config::KeyError& error) {
    throw config::KeyError("layer_model." + error.paths().front(), error.message(), error.advice());
  }
}

Program LayersExperiment::mapped(Program program) const {
  const auto& arrays = system.accelerator.compute.arrays;
  if (phase == LayersPhase::kInference && arrays && arrays->mapping == ArrayMapping::kSpatial)
    map_in_space(system.accelerator.compute, program.kernels);
  return program;
}

/// The layer of the list, whichever of its repetitions: "conv2" of "conv2.0 narrow".
std::string LayersExperiment::part_of(const Kernel& kernel) const {
  return kernel.name.substr(0, kernel.name.find_first_of(" ."));
}

bool LayersExperiment::has_flash() const {
  return phase == LayersPhase::kInference && system.accelerator.memory.flash.has_value();
}

MemoryUse LayersExperiment::memory(const LayerGraph& graph) const {
  MemoryUse use = layer_step_memory(graph, step());
  if (has_flash()) use.weights = Bytes();
  return use;
}

void LayersExperiment::check(const config::Node& node, config::Diagnostics& diagnostics) const {
  if (!is_written(node, "layer_model"))
    return miss_key(diagnostics, node, "layer_model",
                    {"a name of `orrery describe layer_models`, or a path"});
  if (ranks() > system.ranks() * nodes)
    complain(diagnostics, node, {"dp", "nodes"},
             fmt::format("{} replicas are {} ranks, but {} x {} has {}", dp, ranks(), nodes,
                         system.name, system.ranks() * nodes));
  if (optimizer == OptimizerKind::kMuon)
    complain(diagnostics, node, {"optimizer"}, "lists of layers are trained by sgd or adam");
  if (phase == LayersPhase::kTraining && element_bytes(precision) < 2)
    complain(diagnostics, node, {"precision", "phase"},
             std::string("lists of layers are not trained in ") + to_string(precision),
             {{}, {"fp32, tf32, bf16 or fp16"}});
  check_step(node, diagnostics);
}

void LayersExperiment::strip_names(nlohmann::ordered_json& configuration) const {
  StepExperiment::strip_names(configuration);
  erase_keys(configuration["layer_model"], {"source", "layer_model"});
}

void LayersExperiment::check_plan(const config::Node&, config::Diagnostics&) const {
  build();
  matrix_peak(system.accelerator, precision);
}

bool LayersExperiment::check_flash(const LayerGraph& graph, RunRecord& record) const {
  if (!has_flash()) return true;
  const Bytes needs = layer_step_memory(graph, step()).weights;
  const Bytes flash = system.accelerator.memory.flash->value;
  add_metric(record, kFlashBytes, needs.base());
  if (needs <= flash) return true;
  record.status = RunStatus::kInfeasible;
  record.reason += fmt::format("{}weights are {}, the flash has {}",
                               record.reason.empty() ? "does not fit: " : "; ",
                               format_si(needs.base(), "B"), format_si(flash.base(), "B"));
  return false;
}

void LayersExperiment::run(const SimulateOptions& options, RunRecord& record) const {
  const LayerGraph graph = build();
  const LayerStepConfig config = step();
  bool fits = check_memory(*this, {memory(graph)}, record);
  fits = check_flash(graph, record) && fits;
  if (!fits && !options.beyond_memory) return;

  const ModelStep whole{mapped(layer_program(graph, config)), 0, layer_flops(graph, config)};
  const auto kernels = machine().kernels({fidelity, {}, measured}, options.tiles);
  const StepOutcome outcome = replay_step(*this, *kernels, whole.program, options);
  report_step(*this, whole, outcome, record);
  const double rate = static_cast<double>(batch) * dp / to_seconds(outcome.replay.end).base();
  add_metric(record, kSamplesPerS, rate);
  add_metric(record, kSamplesPerSPerAccelerator, rate / accelerators());
  report_trust({machine(), *kernels, whole.program, outcome, seed}, record);
}

void LayersExperiment::explain(const KnownReplay& replay,
                               nlohmann::ordered_json& explanation) const {
  const LayerGraph graph = build();
  const LayerStepConfig config = step();
  const Program step_program = mapped(layer_program(graph, config));
  explanation["sizes"] = explain_sizes(
      *this, {graph.parameters(), graph.parameters(), layer_flops(graph, config), memory(graph)},
      step_program);
  explain_program(*this, step_program, replay, explanation);
}

TableView LayersExperiment::table() const {
  return {{{{"batch", Table::Align::kRight},
            [this](const RunRecord&) { return batch_cell(*this); },
            true,
            {"batch", "dp"}},
           precision_column(to_string(precision)),
           time_column("step", "step_time_s"),
           interval_column("step_time_s"),
           metric_column("samples/s/acc", "samples_per_s_per_accelerator", ""),
           percent_column("MFU", "model_flops_utilization"),
           metric_column("memory", "peak_memory_bytes", "B"),
           {{"exposed comm", Table::Align::kRight}, exposed_cell},
           metric_column("power", "average_power_w", "W")},
          "step_time_s, samples_per_s_per_accelerator",
          "system.accelerator.memory.bandwidth=4 TB/s",
          {}};
}

}  // namespace orrery
