// SPDX-License-Identifier: Apache-2.0
// Files that experiments rest on: machines, models, what was fitted and what was measured.
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

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

bool has_all(const Node& own, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (own.find(key) == nullptr) return false;
  return true;
}

bool has_any(const Node& own, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (own.find(key) != nullptr) return true;
  return false;
}

/// Warnings about figures of a device that can hardly be true together.
std::string warnings_of(const AcceleratorConfig& device, const Node& node,
                        const std::string& within, config::Diagnostics& diagnostics) {
  for (const config::KeyError& doubt : doubts(device, within))
    config::report(doubt, node, diagnostics, config::Diagnostic::Severity::kWarning);
  return diagnostics.render_warnings();
}

/// A file of the library's folder `kind`, with its node, from which messages have their places.
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

/// One accelerator.
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

/// An experiment has the key too; it has none of the switches beside it.
int is_software(const Node& own) {
  if (!has_all(own, {"software"})) return 0;
  for (const config::Field& field : TrainingSoftware::schema().record().fields()) {
    if (field.type->kind == config::TypeKind::kFact && own.find(field.key) != nullptr) return 60;
  }
  return own.find("extends") == nullptr ? 3 : 0;
}

const RegisterFileKind registered_system(
    "system",
    {"a system",
     "describe system",
     {"system"},
     [](const Node& own) {
       if (has_all(own, {"scale_out", "accelerator", "accelerators"})) return 45;
       if (!has_all(own, {"system"})) return 0;
       return has_any(own, {"scale_up", "scale_out", "host", "accelerators", "all_in_power"}) ? 30
                                                                                              : 15;
     },
     check_system,
     {},
     [] { return config::json_schema(SystemConfig::schema().record()); }});

const RegisterFileKind registered_accelerator(
    "accelerator", {"an accelerator",
                    "describe accelerator",
                    {"accelerator"},
                    [](const Node& own) {
                      if (has_any(own, {"compute", "kernel", "energy", "architecture"})) return 40;
                      return has_all(own, {"accelerator"}) ? 10 : 0;
                    },
                    check_accelerator,
                    {},
                    [] { return config::json_schema(AcceleratorConfig::schema().record()); }});

const RegisterFileKind registered_model(
    "model", {"a model",
              "describe model",
              {"model"},
              [](const Node& own) {
                if (has_any(own, {"hf", "dimensions"})) return 35;
                return has_all(own, {"model"}) ? 5 : 0;
              },
              [](const std::string& file) {
                return warnings_of(
                    config::load<ModelConfig>(file, config::default_library(), "models").build());
              },
              {},
              [] { return config::json_schema(ModelConfig::schema().record()); }});

const RegisterFileKind registered_layer_model(
    "layer_model",
    {"a list of layers",
     "describe layer_model",
     {"layer_model"},
     [](const Node& own) {
       if (own.find("experiment") != nullptr) return 0;
       return has_any(own, {"layers", "input"}) && has_all(own, {"layer_model"}) ? 70 : 0;
     },
     check_layer_model,
     {},
     [] { return config::json_schema(LayerModelConfig::schema().record()); }});

const RegisterFileKind registered_huggingface("huggingface",
                                              {"a model",
                                               "describe model",
                                               {},
                                               nullptr,
                                               [](const std::string& file) {
                                                 return warnings_of(load_huggingface(file));
                                               },
                                               ".json"});

const RegisterFileKind registered_calibration(
    "calibration", {"a calibration",
                    "describe calibration",
                    {"calibration"},
                    [](const Node& own) {
                      return has_all(own, {"calibration", "fits"}) ? 90 : 0;
                    },
                    [](const std::string& file) {
                      const CalibratedModel model(load_calibration(file));
                      return std::string();
                    },
                    {},
                    [] { return config::json_schema(Calibration::schema().record()); }});

const RegisterFileKind registered_network_calibration(
    "network_calibration",
    {"a network calibration",
     "check",
     {"network_calibration"},
     [](const Node& own) { return has_all(own, {"network_calibration"}) ? 80 : 0; },
     [](const std::string& file) {
       load_network_calibration(file);
       return std::string();
     },
     {},
     [] { return config::json_schema(NetworkCalibration::schema().record()); }});

const RegisterFileKind registered_protocols(
    "protocols", {"protocols of a collective library",
                  "check",
                  {"protocols"},
                  [](const Node& own) { return has_all(own, {"protocols"}) ? 75 : 0; },
                  [](const std::string& file) {
                    config::load<ProtocolsConfig>(file, config::default_library(), "protocols");
                    return std::string();
                  },
                  {},
                  [] { return config::json_schema(ProtocolsConfig::schema().record()); }});

const RegisterFileKind registered_software(
    "software", {"software of training runs",
                 "describe software",
                 {"software"},
                 is_software,
                 [](const std::string& file) {
                   config::load<TrainingSoftware>(file, config::default_library(), "software");
                   return std::string();
                 },
                 {},
                 [] { return config::json_schema(TrainingSoftware::schema().record()); }});

const RegisterFileKind registered_engine_release(
    "engine_release",
    {"defaults of a serving engine",
     "describe software",
     {"software"},
     [](const Node& own) {
       return has_all(own, {"rules"}) && has_any(own, {"engine", "extends"}) ? 80 : 0;
     },
     [](const std::string& file) {
       const auto release =
           config::load<EngineRelease>(file, config::default_library(), "software");
       require_rules(release);
       return std::string();
     },
     {},
     [] { return config::json_schema(EngineRelease::schema().record()); }});

const RegisterFileKind registered_algorithm(
    "algorithm", {"a collective algorithm",
                  "check",
                  {"collective"},
                  [](const Node& own) {
                    const bool plan = has_all(own, {"collective", "gpus"});  // of MSCCL++
                    return plan || has_all(own, {"collective", "steps"}) ? 70 : 0;
                  },
                  [](const std::string& file) {
                    find_algorithm(file);
                    return std::string();
                  },
                  {},
                  [] { return config::json_schema(UserAlgorithm::schema().record()); }});

}  // namespace
}  // namespace orrery
