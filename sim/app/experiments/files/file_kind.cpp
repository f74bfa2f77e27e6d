// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/files/file_kind.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "sim/config/input_files.h"
#include "sim/config/load.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

std::optional<std::string> kind_of(const config::Node& node) {
  std::optional<std::string> best;
  int most = 0;
  for (const auto& [name, item] : FileKinds::items()) {
    const int certainty = item.entry.certainty ? item.entry.certainty(node) : 0;
    if (certainty <= most) continue;
    most = certainty;
    best = name;
  }
  return best;
}

/// The file without what it extends: only its own keys are wanted, and the kind decides where names
/// are looked up.
config::Node own_keys(const std::string& path, config::Diagnostics& diagnostics) {
  return config::parse_yaml(config::input_files().read(path).text, path, diagnostics);
}

/// Execution plans of MSCCL++ end in .json as configurations of Hugging Face do.
constexpr const char* kPlanKind = "algorithm";
bool is_plan(const std::string& path) {
  if (!path.ends_with(".json")) return false;
  config::Diagnostics ignored;
  const config::Node node = own_keys(path, ignored);
  return !ignored.has_errors() && kind_of(node) == kPlanKind;
}

/// Says of a file in JSON that is neither a model nor a plan what each of the two would have.
void refuse_other_json(const std::string& path) {
  config::Diagnostics diagnostics;
  const config::Node node = own_keys(path, diagnostics);
  if (diagnostics.has_errors() || !node.is_map())
    return;  // the check of a model says what is wrong
  if (node.find("model_type") != nullptr || node.find("architectures") != nullptr) return;
  const std::string message =
      "cannot tell what this is: a model's config.json has the key model_type, an execution plan "
      "of MSCCL++ has collective and gpus";
  for (const config::Node::Entry& entry : node.entries()) {
    const std::string meant = nearest_name(entry.key, {"model_type", "collective", "gpus"});
    if (meant.empty()) continue;
    diagnostics.error(entry.key_origin.location(), static_cast<int>(entry.key.size()) + 2, message,
                      meant == entry.key ? "" : meant);
    diagnostics.throw_if_errors();
  }
  throw config::ConfigError(path + ": " + message);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) && !std::filesystem::is_directory(path, ignored);
}

/// The file that `extends` names: a path, or an entry of the library, which tells the kind.
std::string base_file(const config::Node& base, const std::string& from,
                      config::Diagnostics& diagnostics) {
  const config::Library& library = config::default_library();
  std::vector<std::string> known;
  std::string path = config::relative_to(base.text(), from);
  if (exists(path)) return path;
  if (!config::Library::is_path(base.text())) {
    for (const char* kind : {"systems", "accelerators", "models", "experiments", "sweeps"}) {
      path = library.locate(kind, base.text(), from);
      if (exists(path)) return path;
      const std::vector<std::string> names = library.names(kind);
      known.insert(known.end(), names.begin(), names.end());
    }
  }
  if (known.empty()) {
    config::load_file(from, diagnostics);  // says what is wrong with the path
  } else {
    diagnostics.error(base.where(), base.length(),
                      "nothing named '" + base.text() + "' in the library",
                      nearest_name(base.text(), known),
                      {"a file of your own is named by its path, with '/', '.yaml' or '.json'"});
  }
  return path;
}

/// Says that a file is of no kind, and which key was probably meant to tell it.
[[noreturn]] void refuse(const std::string& path, config::Diagnostics& diagnostics) {
  std::vector<std::string> telling;
  for (const auto& [name, item] : FileKinds::items())
    for (const std::string& key : item.entry.telling)
      if (std::ranges::find(telling, key) == telling.end()) telling.push_back(key);
  const std::string message = "cannot tell what this is: expected one of the top-level keys " +
                              comma_joined(telling) + ", or a list of published rows";
  const config::Node node = own_keys(path, diagnostics);
  for (const config::Node::Entry& entry : node.entries()) {
    const std::string meant = nearest_name(entry.key, telling);
    if (meant.empty()) continue;
    diagnostics.error(entry.key_origin.location(), static_cast<int>(entry.key.size()), message,
                      meant);
    diagnostics.throw_if_errors();
  }
  diagnostics.error({path, 1, 1}, 1, message);
  diagnostics.throw_if_errors();
  throw std::logic_error(message);
}

}  // namespace

void expect_kind(const std::string& path, const std::string& expected) {
  const std::string name = file_kind(path);
  if (name == expected) return;
  const FileKind& kind = *FileKinds::find(name);
  throw config::ConfigError(
      fmt::format("{0}: this is {1}; try: orrery {2} {0}", path, kind.what, kind.command));
}

std::string file_kind(const std::string& path) {
  config::Diagnostics diagnostics;
  if (!config::input_files().read(path).fault.empty())
    config::load_file(path, diagnostics);  // says what is wrong with it
  diagnostics.throw_if_errors();
  if (is_plan(path)) return kPlanKind;
  for (const auto& [name, item] : FileKinds::items()) {
    const std::string& ending = item.entry.ending;
    if (ending.empty() || !path.ends_with(ending)) continue;
    if (ending == ".json") refuse_other_json(path);
    return name;
  }
  std::string current = path;
  for (int depth = 0; depth < 16; ++depth) {
    const config::Node node = own_keys(current, diagnostics);
    diagnostics.throw_if_errors();
    if (const auto kind = kind_of(node)) return *kind;
    const config::Node* base = node.find("extends");
    if (base == nullptr || !base->is_scalar()) break;
    current = base_file(*base, current, diagnostics);
    diagnostics.throw_if_errors();
  }
  config::load_file(path, diagnostics);  // says what is wrong with the files that it extends
  diagnostics.throw_if_errors();
  refuse(path, diagnostics);
}

}  // namespace orrery
