// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/app/experiments/files/input_file.h"
#include "sim/app/experiments/keys/table_columns.h"
#include "sim/app/pricing/machine.h"
#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/config/node.h"
#include "sim/config/output.h"
#include "sim/config/override.h"
#include "sim/config/registered.h"
#include "sim/config/schema.h"
#include "sim/results/run_record.h"

namespace orrery {

struct SimulateOptions;
class KnownReplay;

/// One simulation as a user writes it: what all kinds of experiment have. Each kind is a struct
/// that derives from it, with its own keys, in a file of its own, registered by one object.
struct Experiment {
  virtual ~Experiment() = default;

  std::string kind;                  ///< "training": the name that it is registered by
  std::string name;                  ///< what the user calls it; not part of the identity
  std::string calibration = "auto";  ///< "auto", "none", a name of the library or a path
  std::int64_t seed = 0;             ///< seed of the draws behind intervals

  /// Makes the machines that it runs on, once its keys hold.
  /// @throws config::ConfigError for a calibration that cannot be used
  virtual void bind_machines() = 0;
  /// Takes the machines of an experiment of the same kind, whose systems are the same.
  virtual void share_machines(const std::shared_ptr<const Experiment>& other) = 0;
  /// Whether a key at a path says what the machines are.
  virtual bool of_machines(const std::string& path) const = 0;
  /// Figures of systems and accelerators that follow others which were changed.
  virtual std::vector<std::string> followed() const = 0;
  /// Whether its model has experts, so that `parallel.etp` follows other ranks (expert_ranks.h).
  virtual bool has_experts() const { return false; }
  /// Figures of accelerators that can hardly be true together (sim/machine/doubts.h).
  virtual std::vector<config::KeyError> doubts() const { return {}; }
  /// Published results of its kind that the descriptions of its accelerators miss, one line each.
  virtual std::vector<std::string> known_errors() const { return {}; }

  /// What comes from files that keys name, where nobody wrote it: done before anything is checked.
  /// `node`, the completed configuration, gets it too.
  virtual void complete(config::Node& /*node*/, config::Diagnostics& /*diagnostics*/) {}
  /// Complains about names that nothing has, which no other value mends: of routers, schedules,
  /// algorithms. Comes before everything else.
  virtual void check_names(const config::Node&, config::Diagnostics&) const {}
  /// Complains about what keys say together and must not. There are no machines yet.
  virtual void check(const config::Node& node, config::Diagnostics& diagnostics) const = 0;
  /// Checks what needs the machines: links that faults name.
  virtual void check_machine(const config::Node&, config::Diagnostics&) const {}
  /// The files that a result rests on beside the configuration, read and hashed; those that it does
  /// not use stay unread.
  /// @throws config::ConfigError for what is wrong with one
  virtual std::vector<InputFile> input_files() const = 0;
  /// Takes what only names things, or stands in a hashed file, out of its canonical configuration.
  virtual void strip_names(nlohmann::ordered_json& /*configuration*/) const {}

  /// Whether what is asked for can run, short of simulating it; warnings go to `diagnostics`.
  /// @throws config::KeyError for what cannot be
  virtual void check_plan(const config::Node& node, config::Diagnostics& diagnostics) const = 0;
  /// Whether its network can be built. @throws config::KeyError where it cannot
  virtual void check_network() const {}

  /// Fills metrics, labels, classes and provenance of the record.
  /// @throws config::KeyError for what only shows here
  virtual void run(const SimulateOptions& options, RunRecord& record) const = 0;
  /// Adds what the experiment is made of to an explanation: sizes, kernels, transfers, energy.
  /// @param replay of the experiment; not begun where it has none
  virtual void explain(const KnownReplay&, nlohmann::ordered_json&) const {}

  /// Whether it takes milliseconds, so that `explain` may try it with every value changed.
  virtual bool is_quick() const { return true; }
  /// How tables of sweeps show its results.
  virtual TableView table() const = 0;

  /// For config::OneOf and loading: the kinds by the key `experiment`.
  static const config::Choices& choices();
  static const Experiment* view(const std::string& kind, void* object);

 protected:
  Experiment() = default;
};

/// One simulation on one machine, its key `system`.
struct MachineExperiment : Experiment {
  SystemConfig system;
  int nodes = 1;  ///< copies of the system

  /// The machine that it runs on; there once the experiment is loaded.
  const Machine& machine() const { return *machine_; }
  bool is_bound() const { return machine_ != nullptr; }
  /// What of the machine it uses.
  virtual Machine::Part part() const { return Machine::Part::kWhole; }
  /// Calibrations of the kernels of its engine, best first (SchedulerConfig::kernel_calibrations).
  virtual std::vector<std::string> engine_kernels() const { return {}; }
  /// Precision of its products.
  virtual Precision products() const { return Precision::kBf16; }

  void check_names(const config::Node& node, config::Diagnostics& diagnostics) const override;
  void bind_machines() override;
  void share_machines(const std::shared_ptr<const Experiment>& other) override;
  bool of_machines(const std::string& path) const override;
  std::vector<std::string> followed() const override;
  std::vector<config::KeyError> doubts() const override;
  std::vector<std::string> known_errors() const override;
  /// How many times longer known errors of the accelerator that concern it make it take; 1: none.
  double known_slowness() const;
  void strip_names(nlohmann::ordered_json& configuration) const override;

 private:
  std::shared_ptr<const Machine> machine_;
};

/// Takes what only names things out of a system in a canonical configuration.
void strip_system_names(nlohmann::ordered_json& system);

/// Kinds of experiments by name. A file adds one with one object: `const
/// RegisterExperiment<Training> registered_training("training", "one line of help");`. `T` derives
/// from Experiment and has `static const config::Schema<T>& schema()`, begun with
/// experiment_schema().
using ExperimentKinds = config::Registered<Experiment>;
template <class T>
using RegisterExperiment = ExperimentKinds::Add<T>;

template <class T>
config::Schema<T> experiment_schema(const std::string& kind, const std::string& help) {
  config::Schema<T> schema("experiment " + kind, help);
  schema
      .required("experiment", static_cast<std::string T::*>(&Experiment::kind), "what is simulated")
      .optional("name", static_cast<std::string T::*>(&Experiment::name),
                "what you call it; not part of the point's identity")
      .optional("calibration", static_cast<std::string T::*>(&Experiment::calibration),
                "parameters of the kernel model: auto (what the accelerator names), none (priors), "
                "a calibration of the library, or a path")
      .optional("seed", static_cast<std::int64_t T::*>(&Experiment::seed),
                "seed of the draws behind intervals", config::at_least(0))
      .elsewhere(ExperimentKinds::with_key);
  return schema;
}

/// The same with those of experiments on one machine.
template <class T>
config::Schema<T> machine_schema(const std::string& kind, const std::string& help) {
  config::Schema<T> schema = experiment_schema<T>(kind, help);
  schema
      .reference("system", static_cast<SystemConfig T::*>(&MachineExperiment::system), "systems",
                 "the machine")
      .optional("nodes", static_cast<int T::*>(&MachineExperiment::nodes),
                "copies of the system, joined by its scale-out network",
                config::between(1, 100000));
  return schema;
}

/// A checked experiment with all that identifies it.
struct LoadedExperiment {
  std::shared_ptr<Experiment> experiment;
  const config::Record* record = nullptr;  ///< schema of its kind
  config::Node node;                       ///< completed: every value with its origin
  nlohmann::ordered_json configuration;    ///< canonical: what the identity is made of
  std::vector<InputFile> files;            ///< part of the identity too
  std::string identity;                    ///< SHA-256 point identity
  std::string warnings;                    ///< rendered, for stderr
  /// Why the values cannot stand together (tp 7 of 32 heads), rendered; then there is no identity.
  std::string contradiction;

  /// The experiment as one of a kind. @throws std::bad_cast where it is of another
  template <class Kind>
  const Kind& as() const {
    return dynamic_cast<const Kind&>(*experiment);
  }
  /// Every value with its path and origin.
  std::vector<config::Leaf> leaves() const { return config::flatten(node, *record); }
};

/// Completes and checks an experiment. Values that are right one by one, but not together, are
/// `contradiction` of the result.
/// @throws config::ConfigError for other mistakes, with everything that is wrong
LoadedExperiment load_point(const config::Node& node, config::Diagnostics& diagnostics,
                            const config::Library& library);

/// Reads an experiment file and applies `--set` assignments.
/// @throws config::ConfigError with everything that is wrong.
LoadedExperiment load_experiment(const std::string& path, const std::vector<std::string>& overrides,
                                 const config::Library& library = config::default_library());

/// The same for a node that is not a file of its own (inline in a sweep or validation file).
LoadedExperiment load_experiment(config::Node node, const std::vector<std::string>& overrides,
                                 config::Diagnostics& diagnostics,
                                 const config::Library& library = config::default_library());

/// What a sweep or a published row lays over its experiment.
using SettingList = std::vector<config::Assignment>;

/// The entries of a map `{path: value, ...}`.
SettingList settings_of(const config::Node& map);

/// Loads an experiment (a scalar: a path from the file that it stands in; a map: inline) and lays
/// settings over it. Values that cannot stand together are the `contradiction` of the result.
/// @param diagnostics that know the text of that file, to quote it
/// @throws config::ConfigError for other mistakes
LoadedExperiment load_point_with_settings(const config::Node& experiment,
                                          const SettingList& settings,
                                          config::Diagnostics& diagnostics,
                                          const config::Library& library);

/// What the point identity is the SHA-256 of: the configuration without what only names things,
/// `files`, and the engine.
std::string identity_text_of(const Experiment& experiment, nlohmann::ordered_json configuration,
                             const std::vector<InputFile>& files);

/// The keys of the kind that a configuration and assignments over it name, the last one of them.
/// @throws config::ConfigError where they name none, or one that does not exist
const config::Record& record_of(const config::Node& node,
                                const std::vector<config::Assignment>& settings,
                                config::Diagnostics& diagnostics);

}  // namespace orrery
