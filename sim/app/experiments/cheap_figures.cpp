// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/cheap_figures.h"

#include <fmt/core.h>

namespace orrery {
namespace {

const MachineExperiment& of_machine(const Experiment& e) {
  return dynamic_cast<const MachineExperiment&>(e);
}
const ModelExperiment& of_model(const Experiment& e) {
  return dynamic_cast<const ModelExperiment&>(e);
}

Bytes peak_memory(const ModelExperiment& e, const StepModel& model) {
  const LlmConfig& llm = model.of(e);
  e.require_plan(llm);
  return worst_stage(e.memory(llm, e.parallel)).total();
}

std::vector<CheapFigure> machine_figures() {
  using E = Experiment;
  using S = StepModel;
  const auto ranks = [](const E& e, const S&) {
    return static_cast<double>(of_machine(e).system.ranks()) * of_machine(e).nodes;
  };
  const auto accelerators = [](const E& e, const S&) {
    return static_cast<double>(of_machine(e).system.accelerators.value) * of_machine(e).nodes;
  };
  return {{"available_ranks", "ranks of all nodes", false, {}, false, ranks},
          {"available_accelerators", "accelerators of all nodes", false, {}, false, accelerators}};
}

std::vector<CheapFigure> model_figures() {
  using E = Experiment;
  using S = StepModel;
  const auto ranks = [](const E& e, const S&) { return static_cast<double>(of_model(e).ranks()); };
  const auto accelerators = [](const E& e, const S&) { return of_model(e).accelerators(); };
  const auto is_moe = [](const E& e, const S& m) { return m.of(of_model(e)).has_moe() ? 1.0 : 0; };
  const auto needs = [](const E& e, const S& m) { return peak_memory(of_model(e), m).base(); };
  const auto usable = [](const E& e, const S&) { return of_model(e).usable_memory().base(); };
  const auto fits = [](const E& e, const S& m) {
    return peak_memory(of_model(e), m) <= of_model(e).usable_memory() ? 1.0 : 0.0;
  };
  const Dimension bytes = Bytes::dimension;
  return {
      {"ranks", "ranks of the plan", false, {}, false, ranks},
      {"accelerators", "accelerators that the plan uses", false, {}, false, accelerators},
      {"model.is_moe", "whether the model has experts", true, {}, false, is_moe},
      {"memory.bytes", "memory that a rank of the fullest stage needs", false, bytes, true, needs},
      {"memory.usable", "memory that a rank may use", false, bytes, true, usable},
      {"memory.fits", "whether every rank fits in its memory", true, {}, true, fits}};
}

}  // namespace

const LlmConfig& StepModel::of(const ModelExperiment& experiment) const {
  if (!built_) built_ = experiment.model.build();
  return *built_;
}

std::vector<CheapFigure> cheap_figures(const Experiment& experiment) {
  std::vector<CheapFigure> figures;
  if (dynamic_cast<const MachineExperiment*>(&experiment) != nullptr) figures = machine_figures();
  if (dynamic_cast<const ModelExperiment*>(&experiment) == nullptr) return figures;
  for (CheapFigure& figure : model_figures()) figures.push_back(std::move(figure));
  return figures;
}

std::string figure_help(const std::string& name) {
  for (const auto& figures : {machine_figures(), model_figures()})
    for (const CheapFigure& figure : figures)
      if (figure.name == name) return figure.help;
  return {};
}

std::string missing_figure(const Experiment& experiment, const std::string& name) {
  const std::string help = figure_help(name);
  if (help.empty()) return {};
  return fmt::format("an experiment of kind {} cannot tell {} ({}) without being simulated",
                     experiment.kind, name, help);
}

bool can_be(const Experiment& experiment, const config::Node& node, const StepModel& model) {
  config::Diagnostics diagnostics;
  experiment.check(node, diagnostics);
  if (diagnostics.has_errors()) return false;
  const auto* step = dynamic_cast<const ModelExperiment*>(&experiment);
  if (step == nullptr) return true;
  try {
    step->require_plan(model.of(*step));
  } catch (const config::ConfigError&) {
    return false;
  }
  return true;
}

}  // namespace orrery
