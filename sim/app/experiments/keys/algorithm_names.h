// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/app/experiments/files/input_file.h"
#include "sim/config/diagnostics.h"
#include "sim/config/node.h"

namespace orrery {

inline constexpr const char* kAlgorithmsHelp =
    "collective algorithms in order of preference: names of `orrery describe collectives`, or "
    "paths of files of one's own and of execution plans of MSCCL++. Each carries out the "
    "collectives that it serves; the rest is auto";

/// Completes the name of a collective algorithm: a path is relative to the file that names it.
/// Warns of what the file of the path has that has no equal here.
/// @param written where the name is written; null: nowhere
/// @throws config::ConfigError for a file that is wrong
void complete_algorithm(std::string& name, const config::Node* written,
                        config::Diagnostics& diagnostics);
/// @param written the list of them; null: it is not written
void complete_algorithms(std::vector<std::string>& names, const config::Node* written,
                         config::Diagnostics& diagnostics);

/// Complains about a name that is neither "auto", nor of an algorithm, nor a path.
/// @param path of the key: "collective.algorithm"
void check_algorithm(const std::string& name, const std::string& path, const config::Node& node,
                     config::Diagnostics& diagnostics);
/// @param path of the list: "algorithms"
void check_algorithms(const std::vector<std::string>& names, const std::string& path,
                      const config::Node& node, config::Diagnostics& diagnostics);

/// Adds the file of a name, if it is a path.
/// @param role of the file: "algorithm"
void add_algorithm_file(const std::string& name, const std::string& role,
                        std::vector<InputFile>& files);
/// The same for a list; roles are `path` and the position: "algorithms.0".
void add_algorithm_files(const std::vector<std::string>& names, const std::string& path,
                         std::vector<InputFile>& files);
/// Replaces paths in a canonical list by one word: their files are hashed.
void strip_algorithm_paths(nlohmann::ordered_json& list);

}  // namespace orrery
