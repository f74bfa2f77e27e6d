// SPDX-License-Identifier: Apache-2.0
// Files that experiments rest on: machines, models, what was fitted and what was measured.
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "models/collectives/plans/user_algorithm.h"
#include "models/kernels/calibrated_model.h"
#include "models/transfers/flow_model.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/machine/doubts.h"
#include "sim/machine/network_calibration.h"
#include "sim/machine/system_config.h"
#include "sim/serving/engine_release.h"
#include "workloads/layers/listed/layer_model.h"
#include "workloads/models/config/model_config.h"
#include "workloads/models/huggingface/huggingface.h"
#include "workloads/software/training_software.h"

namespace orrery {
namespace {

using config::Node;

bool has_all(const Node& own, const std::vector<const char*>& keys) {
  return std::ranges::all_of(keys, [&](const char* key) { return own.find(key) != nullptr; });
}

bool has_any(const Node& own, const std::vector<const char*>& keys) {
  return std::ranges::any_of(keys, [&](const char* key) { return own.find(key) != nullptr; });
}
/// Warnings about figures of a device that can hardly be true together.
std::string warnings_of(const AcceleratorConfig& device, const Node& node,
                        const std::string& within, config::Diagnostics& diagnostics) {
  for (const config::KeyError& doubt : doubts(device, within))
    config::report(doubt, node, diagnostics, config::Diagnostic::Severity::kWarning);
  return diagnostics.render_warnings();
}

/// A file with its node, from which messages have their places.
template <class T>
struct ReadFile {
  Node node;
  T value;
};

template <class T>
ReadFile<T> read_file(const std::string& file, const std::string& kind,
                      config::Diagnostics& diagnostics) {
  const config::Library& library = config::default_library();
  const Node node = config::load_file(file, diagnostics, library, kind);
  diagnostics.throw_if_errors();
  T value = config::read<T>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  return {node, std::move(value)};
}

std::string check_accelerator(const std::string& file) {
  config::Diagnostics diagnostics;
  const auto device = read_file<AcceleratorConfig>(file, "accelerators", diagnostics);
  return warnings_of(device.value, device.node, "", diagnostics);
}

/// One system, and two where it has a network to others.
std::string check_system(const std::string& file) {
  config::Diagnostics diagnostics;
  const auto [node, system] = read_file<SystemConfig>(file, "systems", diagnostics);
  try {
    const FlowModel network(system, system.accelerator.scale_out.present() ? 2 : 1);
  } catch (const config::KeyError& error) {
    config::throw_located(error, node, "system");
  }
  const config::Record& record = SystemConfig::schema().record();
  const Node completed = config::complete(node, record, diagnostics, config::default_library());
  return warnings_of(system.accelerator, completed, "accelerator.", diagnostics);
}

/// A list of layers, and that they can be built.
std::string check_layer_model(const std::string& file) {
  config::Diagnostics diagnostics;
  const auto [node, model] = read_file<LayerModelConfig>(file, "layer_models", diagnostics);
  try {
    model.build({});
  } catch (const config::KeyError& error) {
    config::throw_located(error, node);
  }
  return {};
}

std::string warnings_of(const LlmConfig& model) {
  std::string text;
  for (const std::string& warning : model.warnings)
    text += "warning: " + model.name + ": " + warning + "\n";
  return text;
}

/// A file of the library's folder `kind`.
template <class T>
T loaded(const std::string& file, const std::string& kind) {
  return config::load<T>(file, config::default_library(), kind);
}

/// A check that such a file can be read.
template <class T>
std::function<std::string(const std::string&)> reads(const std::string& kind) {
  return no_warnings([kind](const std::string& file) { loaded<T>(file, kind); });
}

/// Files that have all of these keys.
std::function<int(const Node&)> told_by(const std::vector<const char*>& keys, int certainty) {
  return [=](const Node& own) { return has_all(own, keys) ? certainty : 0; };
}
int is_system(const Node& own) {
  if (has_all(own, {"scale_out", "accelerator", "accelerators"})) return 45;
  if (!has_all(own, {"system"})) return 0;
  const bool tells =
      has_any(own, {"scale_up", "scale_out", "host", "accelerators", "all_in_power"});
  return tells ? 30 : 15;
}

int is_accelerator(const Node& own) {
  if (has_any(own, {"compute", "kernel", "energy", "architecture"})) return 40;
  return has_all(own, {"accelerator"}) ? 10 : 0;
}

int is_model(const Node& own) {
  if (has_any(own, {"hf", "dimensions"})) return 35;
  return has_all(own, {"model"}) ? 5 : 0;
}

int is_layer_model(const Node& own) {
  if (own.find("experiment") != nullptr) return 0;
  return has_any(own, {"layers", "input"}) && has_all(own, {"layer_model"}) ? 70 : 0;
}

/// An experiment has the key too; it has none of the switches beside it.
int is_software(const Node& own) {
  if (!has_all(own, {"software"})) return 0;
  for (const config::Field& field : TrainingSoftware::schema().record().fields()) {
    if (field.type->kind == config::TypeKind::kFact && own.find(field.key) != nullptr) return 60;
  }
  return own.find("extends") == nullptr ? 3 : 0;
}

int is_engine_release(const Node& own) {
  return has_all(own, {"rules"}) && has_any(own, {"engine", "extends"}) ? 80 : 0;
}

int is_algorithm(const Node& own) {
  const bool plan = has_all(own, {"collective", "gpus"});  // of MSCCL++
  return plan || has_all(own, {"collective", "steps"}) ? 70 : 0;
}

std::string check_huggingface(const std::string& file) {
  return warnings_of(load_huggingface(file));
}

std::string check_model(const std::string& file) {
  return warnings_of(loaded<ModelConfig>(file, "models").build());
}

const RegisterFileKind registered_system(
    "system", schema_kind<SystemConfig>(
                  {"a system", "describe system", {"system"}, is_system, check_system}));
const RegisterFileKind registered_accelerator(
    "accelerator", schema_kind<AcceleratorConfig>({"an accelerator",
                                                   "describe accelerator",
                                                   {"accelerator"},
                                                   is_accelerator,
                                                   check_accelerator}));
const RegisterFileKind registered_model(
    "model",
    schema_kind<ModelConfig>({"a model", "describe model", {"model"}, is_model, check_model}));
const RegisterFileKind registered_layer_model("layer_model",
                                              schema_kind<LayerModelConfig>({"a list of layers",
                                                                             "describe layer_model",
                                                                             {"layer_model"},
                                                                             is_layer_model,
                                                                             check_layer_model}));
const RegisterFileKind registered_huggingface(
    "huggingface", {"a model", "describe model", {}, nullptr, check_huggingface, ".json"});
const RegisterFileKind registered_calibration(
    "calibration", schema_kind<Calibration>({"a calibration",
                                             "describe calibration",
                                             {"calibration"},
                                             told_by({"calibration", "fits"}, 90),
                                             no_warnings([](const std::string& file) {
                                               CalibratedModel{load_calibration(file)};
                                             })}));
const RegisterFileKind registered_network_calibration(
    "network_calibration",
    schema_kind<NetworkCalibration>({"a network calibration",
                                     "check",
                                     {"network_calibration"},
                                     told_by({"network_calibration"}, 80),
                                     no_warnings(load_network_calibration)}));
const RegisterFileKind registered_protocols(
    "protocols", schema_kind<ProtocolsConfig>({"protocols of a collective library",
                                               "check",
                                               {"protocols"},
                                               told_by({"protocols"}, 75),
                                               reads<ProtocolsConfig>("protocols")}));
const RegisterFileKind registered_software(
    "software", schema_kind<TrainingSoftware>({"software of training runs",
                                               "describe software",
                                               {"software"},
                                               is_software,
                                               reads<TrainingSoftware>("software")}));
const RegisterFileKind registered_engine_release(
    "engine_release",
    schema_kind<EngineRelease>({"defaults of a serving engine",
                                "describe software",
                                {"software"},
                                is_engine_release,
                                no_warnings([](const std::string& file) {
                                  require_rules(loaded<EngineRelease>(file, "software"));
                                })}));
const RegisterFileKind registered_algorithm(
    "algorithm", schema_kind<UserAlgorithm>({"a collective algorithm",
                                             "check",
                                             {"collective"},
                                             is_algorithm,
                                             no_warnings(find_algorithm)}));

}  // namespace
}  // namespace orrery
