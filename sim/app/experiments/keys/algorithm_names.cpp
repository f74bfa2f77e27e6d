// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/keys/algorithm_names.h"

#include <nlohmann/json.hpp>

#include "models/collectives/plans/user_algorithm.h"
#include "sim/app/experiments/files/known_names.h"
#include "sim/config/library.h"

namespace orrery {

void complete_algorithm(std::string& name, const config::Node* written,
                        config::Diagnostics& diagnostics) {
  if (!config::Library::is_path(name)) return;
  const config::Origin origin = written == nullptr ? config::Origin() : written->origin();
  if (origin.kind == config::Origin::Kind::kFile) name = config::relative_to(name, *origin.file);
  const std::vector<std::string> left_out = find_algorithm(name)->left_out();
  if (left_out.empty()) return;
  diagnostics.warning(origin.location(), written == nullptr ? 1 : written->length(),
                      "parts of " + name + " are not modelled", left_out);
}

void complete_algorithms(std::vector<std::string>& names, const config::Node* written,
                         config::Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const config::Node* item = written == nullptr ? nullptr : written->at_path(std::to_string(i));
    complete_algorithm(names[i], item, diagnostics);
  }
}

void check_algorithm(const std::string& name, const std::string& path, const config::Node& node,
                     config::Diagnostics& diagnostics) {
  if (config::Library::is_path(name)) return;
  check_name({path, "collective algorithm"}, name, names_of<AlgorithmRegistry>({"auto"}), node,
             diagnostics);
}

void check_algorithms(const std::vector<std::string>& names, const std::string& path,
                      const config::Node& node, config::Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < names.size(); ++i)
    check_algorithm(names[i], path + "." + std::to_string(i), node, diagnostics);
}

void add_algorithm_file(const std::string& name, const std::string& role,
                        std::vector<InputFile>& files) {
  if (!config::Library::is_path(name)) return;
  find_algorithm(name);
  files.push_back(file_as_read(role, name));
}

void add_algorithm_files(const std::vector<std::string>& names, const std::string& path,
                         std::vector<InputFile>& files) {
  for (std::size_t i = 0; i < names.size(); ++i)
    add_algorithm_file(names[i], path + "." + std::to_string(i), files);
}

void strip_algorithm_paths(nlohmann::ordered_json& list) {
  if (!list.is_array()) return;
  for (nlohmann::ordered_json& name : list)
    if (name.is_string() && config::Library::is_path(name.get<std::string>())) name = "file";
}

}  // namespace orrery
