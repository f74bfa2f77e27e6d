// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/load.h"
#include "sim/config/schema.h"
#include "sim/serving/engine_version.h"
#include "sim/serving/scheduler.h"

namespace orrery {

/// What defaults of an engine depend on besides its version.
struct EngineSite {
  Bytes memory{};            ///< device memory of a rank
  std::string device;        ///< "NVIDIA H100 SXM5 80GB"
  std::string architecture;  ///< "Hopper GH100"
  int tp = 1, pp = 1, dp = 1;
  std::string speculation;               ///< "mtp", "ngram"; empty: none
  std::function<bool()> recurrent = {};  ///< whether some layers have a recurrent state
  std::function<bool()> experts = {};    ///< whether the model has experts
  bool connector = false;  ///< whether caches go to other instances or to other memory
  std::string backend{};   ///< the engine's key of that name
};

/// One of the values of a default. It applies where all of its conditions hold.
struct RuleCase {
  std::optional<Bytes> memory;                  ///< device memory at least
  std::vector<std::string> device;              ///< the name of the device contains one of these
  std::vector<std::string> not_device;          ///< the name of the device contains none of these
  std::vector<std::string> architecture;        ///< the architecture contains one of these
  std::optional<int> below_tp, from_tp;         ///< tensor parallel ranks: fewer than, at least
  std::optional<bool> pipeline, data_parallel;  ///< several stages, several such ranks
  std::vector<std::string> speculation;         ///< methods of speculative decoding
  std::optional<bool> recurrent, experts;       ///< kinds of models
  std::optional<bool> connector;                ///< caches go to other instances or to other memory
  std::vector<std::string> backend;             ///< values of the engine's key of that name
  config::Node value;

  bool holds(const EngineSite& site) const;
  /// "memory >= 70 GiB, device not A100"; empty: no condition.
  std::string text() const;
  static const config::Schema<RuleCase>& schema();
};

/// A default of an engine: a value, or a list of cases of which the first that holds applies.
struct EngineRule {
  config::Node value;
  std::string source;  ///< pull request and file

  std::vector<RuleCase> cases() const;
  static const config::Schema<EngineRule>& schema();
};

/// Defaults of a serving engine from one of its versions on: a file of configs/software, laid over
/// the file of the version before it. Rules are named by the keys of the engine.
struct EngineRelease {
  std::string id, name, engine, version;
  std::map<std::string, EngineRule> rules;
  static const config::Schema<EngineRelease>& schema();
};

/// The version in a file's name: 0.11.1 of "vllm_0_11_1", 0.0 of "llama_cpp", the file of an engine
/// without versions. @return std::nullopt for names of something else
std::optional<EngineVersion> release_version(const std::string& name, const std::string& engine);

/// The names of an engine's releases in configs/software with their versions, oldest first:
/// vllm_0_11_1 is version 0.11.1, llama_cpp the one file of an engine without versions.
std::map<EngineVersion, std::string> engine_releases(const std::string& engine);

/// The file of a version that a user wrote: a path ("my_vllm.yaml"), or a name in configs/software
/// ("0.19-mine" of vllm is vllm_0_19_mine). @return empty for versions of the engine itself
/// @param from_file file that paths are relative to
std::string own_release(const std::string& engine, const std::string& version,
                        const std::string& from_file);

/// Whether a file of configs/software is a release of a registered engine, by its name.
bool is_engine_release(const std::string& name);

/// A release by its name in configs/software. @throws config::ConfigError
EngineRelease load_engine_release(const std::string& name);

/// Replaces the value of a key that nobody wrote, or that was written as `auto`; of a map, all keys
/// that `value` has. @return false where the engine has no such key
bool set_open(config::Node& engine, const std::string& key, const config::Node& value);

/// Checks that rules name keys of the engine and values that these keys accept.
/// @throws config::ConfigError
void require_rules(const EngineRelease& release);

/// Fills in the keys that the user left out. Their values come from the newest release that is not
/// newer than the engine's version, or from the user's own file that `version` names. The origin of
/// each key is that file. An engine without releases is left unchanged.
/// @param node the completed configuration of the engine
/// @return "vllm 0.22: defaults of 0.21, host times of 0.14": the releases that its
/// defaults and the times of its host come from; empty for engines without versions
std::string follow_release(config::OneOf<SchedulerConfig>& engine, const EngineSite& site,
                           config::Node& node, config::Diagnostics& diagnostics);

}  // namespace orrery
