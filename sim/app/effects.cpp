// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include "sim/app/experiment_network.h"
#include "sim/app/explain.h"
#include "sim/app/kernel_pricing.h"
#include "sim/app/model_step.h"
#include "sim/config/output.h"
#include "sim/config/override.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// The program that the experiment replays, or an empty one where it does not replay a model.
Program program_of(const Experiment& e) {
  if (e.kind == ExperimentKind::kTraining)
    return build_training(e.model.build(), training_config(e)).program;
  if (e.kind == ExperimentKind::kInference)
    return build_inference(e.model.build(), inference_config(e));
  return {};
}

/// Everything about the hardware that reaches the result, as one text: prices, usable memory,
/// energy, peak.
std::string fingerprint(const Experiment& e, const KernelModel& model, const Program& program) {
  const ExperimentNetwork network(e);
  const PricedProgram priced = price(program, e.system.accelerator, model, network.start());
  std::ostringstream text;
  text.precision(17);
  for (const KernelCost& cost : priced.costs.kernels)
    text << cost.duration << ' ' << cost.launch << ' ';
  for (const TransferCost& cost : priced.costs.transfers)
    text << cost.latency << ' ' << cost.loads.size() << ' ' << cost.device.units << ' '
         << cost.device.memory << ' ';
  for (const BytesPerSecond link : priced.costs.links) text << link.base() << ' ';
  text << priced.costs.enqueue << ' ' << usable_memory(e).base() << ' '
       << matrix_peak(e.system.accelerator, e.precision).base() << ' '
       << step_energy(program, priced, e.system.accelerator, Seconds(1)).total().base();
  return text.str();
}

/// Keys at the top of an experiment that its kind never reads.
std::vector<std::string> unread_keys(const Experiment& e) {
  std::vector<std::string> keys;
  const bool training = e.kind == ExperimentKind::kTraining;
  const bool inference = e.kind == ExperimentKind::kInference;
  const auto add = [&keys](bool read, const char* key) {
    if (!read) keys.emplace_back(key);
  };
  add(training || inference, "model");
  add(training || inference, "parallel");
  add(training || inference, "batch");
  add(training && e.parallel.pp > 1, "schedule");
  add(training, "recompute");
  add(training, "flash_attention");
  add(training, "dropout");
  add(training, "layers_only");
  add(inference, "phase");
  add(inference && e.phase == Phase::kDecode, "kv_length");
  add(training || (inference && e.phase == Phase::kPrefill), "batch.sequence");
  add(e.kind != ExperimentKind::kCollective, "precision");
  add(e.kind == ExperimentKind::kOperator, "operator");
  add(e.kind == ExperimentKind::kCollective, "collective");
  add(e.kind != ExperimentKind::kOperator, "record");
  return keys;
}

/// The assignment that doubles a leaf (halves a share), or nothing where a value cannot be varied
/// alone.
std::string varied(const config::Leaf& leaf) {
  if (!leaf.value || *leaf.value == 0 || leaf.unit.empty()) return {};
  std::string text = print_number(*leaf.value * 2) + " " + leaf.unit;
  return leaf.path + "=" + text;
}

}  // namespace

std::vector<std::string> inputs_without_effect(const LoadedExperiment& loaded) {
  std::vector<std::string> idle;
  for (const std::string& key : unread_keys(loaded.experiment)) {
    const config::Node* value = loaded.node.at_path(key);
    if (value != nullptr && value->origin().kind != config::Origin::Kind::kDefault &&
        !value->is_null()) {
      idle.push_back(key);
    }
  }
  const Program program = program_of(loaded.experiment);
  if (program.roles.empty()) return idle;
  const auto model = kernel_model(loaded.experiment);
  const std::string before = fingerprint(loaded.experiment, *model, program);
  const config::Record& record = Experiment::schema().record();
  for (const config::Leaf& leaf : config::flatten(loaded.node, record)) {
    const std::string assignment =
        leaf.path.rfind("system.", 0) == 0 ? varied(leaf) : std::string();
    if (assignment.empty()) continue;
    try {
      const LoadedExperiment other = [&] {
        config::Diagnostics diagnostics;
        return load_experiment(loaded.node, {assignment}, diagnostics);
      }();
      if (fingerprint(other.experiment, *model, program) == before) idle.push_back(leaf.path);
    } catch (const config::ConfigError&) {
      // Out of its bounds when doubled, or tied to another value: nothing can be said about it
      // alone.
    }
  }
  return idle;
}

}  // namespace orrery
