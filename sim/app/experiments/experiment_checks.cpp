// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/experiment_checks.h"

#include <algorithm>

#include "models/collectives/algorithm.h"
#include "sim/app/experiments/experiment_network.h"
#include "sim/app/experiments/part_keys.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/app/pricing/network_pricing.h"
#include "sim/config/leaf.h"
#include "sim/config/load.h"
#include "sim/config/place.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

using Paths = std::vector<std::string>;

/// Points at what was written of the keys, or at what holds them.
void complain(config::Diagnostics& diagnostics, const config::Node& node, const Paths& keys,
              std::string message, config::Advice advice = {}) {
  const config::Place place = config::place_of(node, keys);
  diagnostics.error(place.where, place.length, std::move(message), std::move(advice.suggestion),
                    std::move(advice.notes));
}

bool is_written(const config::Node& node, std::string_view key) {
  const config::Node* value = node.find(key);
  return value != nullptr && !value->is_null() &&
         value->origin().kind != config::Origin::Kind::kDefault;
}

void check_ranks(const Experiment& e, const config::Node& node, config::Diagnostics& diagnostics) {
  const int available = e.system.ranks() * e.nodes;
  if (e.ranks() <= available) return;
  const int nodes = (e.ranks() + e.system.ranks() - 1) / e.system.ranks();
  complain(diagnostics, node, {"parallel", "parallel.tp", "parallel.pp", "parallel.dp", "nodes"},
           "tp * pp * dp = " + std::to_string(e.ranks()) + " ranks, but " +
               std::to_string(e.nodes) + " x " + e.system.name + " has " +
               std::to_string(available),
           {{}, {"nodes: " + std::to_string(nodes) + " would have them"}});
}

void check_model_run(const Experiment& e, const config::Node& node,
                     config::Diagnostics& diagnostics) {
  if (!is_written(node, "model")) {
    complain(diagnostics, node, {"experiment"}, "this experiment needs the key 'model'",
             {{}, {"a name of `orrery describe models`, a path, or {hf: path of a config.json}"}});
    return;
  }
  check_ranks(e, node, diagnostics);
  if (e.batch.global == 0 && e.batch.micro == 0) {
    complain(diagnostics, node, {"batch"}, "batch.global or batch.micro must be given");
  }
  const bool needs_sequence = e.kind == ExperimentKind::kTraining || e.phase == Phase::kPrefill;
  if (needs_sequence && e.batch.sequence == 0) {
    complain(diagnostics, node, {"batch"}, "batch.sequence must be given (tokens of a sequence)");
  }
  if (e.kind == ExperimentKind::kInference && e.phase == Phase::kDecode && e.kv_length == 0) {
    complain(diagnostics, node, {"kv_length", "phase", "experiment"},
             "a decode step needs kv_length");
  }
}

/// A key whose value is one of a list of names.
struct NamedKey {
  const char* path;
  const char* what;
};
void check_name(NamedKey key, const std::string& name, const std::vector<std::string>& known,
                const config::Node& node, config::Diagnostics& diagnostics) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  complain(diagnostics, node, {key.path}, "unknown " + std::string(key.what) + " '" + name + "'",
           {nearest_name(name, known), {"there are: " + config::joined(known)}});
}

void check_collective(const Experiment& e, const config::Node& node,
                      config::Diagnostics& diagnostics) {
  const CollectiveConfig& collective = *e.collective;
  const int available = e.system.ranks() * e.nodes;
  if (collective.ranks > available) {
    complain(diagnostics, node, {"collective.ranks"},
             "the machine has " + std::to_string(available) + " ranks",
             {std::to_string(available), {}});
  }
  check_parts(collective, e.system, available, node, diagnostics);
  const bool barrier = collective.kind == TransferKind::kBarrier;
  if (!collective.exchanges_tokens() && !has_matrix(collective) &&
      (collective.bytes.base() == 0) != barrier) {
    complain(diagnostics, node, {barrier ? "collective.bytes" : "collective"},
             barrier ? "a barrier has no bytes" : "collective.bytes must be given");
  }
  check_name({"collective.protocol", "protocol"}, collective.protocol,
             {"auto", "ll", "ll128", "simple"}, node, diagnostics);
  if (config::Library::is_path(collective.algorithm)) return;
  std::vector<std::string> known = {"auto"};
  for (const auto& [name, item] : AlgorithmRegistry::items()) known.push_back(name);
  check_name({"collective.algorithm", "collective algorithm"}, collective.algorithm, known, node,
             diagnostics);
}

/// Files that are named, and the links that faults name: a fabric that is built for them may itself
/// be wrong.
void check_names(const Experiment& e, const config::Node& node, config::Diagnostics& diagnostics) {
  if (diagnostics.has_errors()) return;
  try {
    calibration_file(e.calibration, e.system.accelerator);
    network_calibration_file(e.calibration == "none" ? "none" : "auto", e.system);
    if (e.kind != ExperimentKind::kOperator) check_faults(e, node, diagnostics);
  } catch (const config::KeyError& error) {
    config::report(error, node, diagnostics);
  }
}

}  // namespace

void check_experiment(const Experiment& e, const config::Node& node,
                      config::Diagnostics& diagnostics) {
  switch (e.kind) {
    case ExperimentKind::kTraining:
    case ExperimentKind::kInference:
      check_model_run(e, node, diagnostics);
      break;
    case ExperimentKind::kOperator:
      if (!e.op)
        complain(diagnostics, node, {"experiment"}, "this experiment needs the key 'operator'");
      if (!e.faults.empty())
        complain(diagnostics, node, {"faults"}, "an operator crosses no links");
      break;
    case ExperimentKind::kCollective:
      if (e.collective) {
        check_collective(e, node, diagnostics);
      } else {
        complain(diagnostics, node, {"experiment"}, "this experiment needs the key 'collective'");
      }
      break;
  }
  check_names(e, node, diagnostics);
}

}  // namespace orrery
