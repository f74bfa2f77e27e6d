// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/file_kind.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "sim/config/input_files.h"
#include "sim/config/load.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

std::optional<FileKind> kind_of(const config::Node& node) {
  if (node.is_sequence()) return FileKind::kPublished;
  const auto has = [&node](const char* key) { return node.find(key) != nullptr; };
  if (has("calibration") && has("fits")) return FileKind::kCalibration;
  if (has("network_calibration")) return FileKind::kNetworkCalibration;
  if (has("protocols")) return FileKind::kProtocols;
  if (has("collective") && has("steps")) return FileKind::kAlgorithm;
  if (has("sweep")) return FileKind::kSweep;
  if (has("experiment")) return FileKind::kExperiment;
  if (has("scale_out") && has("accelerator") && has("accelerators")) return FileKind::kSystem;
  if (has("compute") || has("kernel") || has("energy") || has("architecture"))
    return FileKind::kAccelerator;
  if (has("hf") || has("dimensions")) return FileKind::kModel;
  if (has("system") && (has("scale_up") || has("scale_out") || has("host") || has("accelerators") ||
                        has("all_in_power")))
    return FileKind::kSystem;
  const config::Node* base = node.find("extends");
  const bool extends_library =
      base != nullptr && base->is_scalar() && !config::Library::is_path(base->text());
  if (has("system") && !has("accelerator") && !extends_library) return FileKind::kExperiment;
  if (has("system")) return FileKind::kSystem;
  if (has("accelerator")) return FileKind::kAccelerator;
  if (has("model")) return FileKind::kModel;
  return std::nullopt;
}

/// The file without what it extends: only its own keys are wanted, and the kind decides where names
/// are looked up.
config::Node own_keys(const std::string& path, config::Diagnostics& diagnostics) {
  return config::parse_yaml(config::input_files().read(path).text, path, diagnostics);
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
                      {"a file of your own is named by its path, with '/' or '.yaml'"});
  }
  return path;
}

/// Says that a file is of no kind, and which key was probably meant to tell it.
[[noreturn]] void refuse(const std::string& path, config::Diagnostics& diagnostics) {
  const std::vector<std::string> telling = {"experiment",          "sweep",     "system",
                                            "accelerator",         "model",     "calibration",
                                            "network_calibration", "protocols", "collective"};
  const std::string message =
      "cannot tell what this is: expected one of the top-level keys experiment, sweep, system, "
      "accelerator, model, calibration, steps of a collective, or a list of published rows";
  const config::Node node = own_keys(path, diagnostics);
  for (const config::Node::Entry& entry : node.entries()) {
    const std::string meant = nearest_name(entry.key, telling);
    if (meant.empty()) continue;
    diagnostics.error(entry.key_origin.location(), static_cast<int>(entry.key.size()), message,
                      meant);
    diagnostics.throw_if_errors();
  }
  throw config::ConfigError(path + ": " + message);
}

struct KindName {
  const char* name;
  const char* command;
};

KindName name_of(FileKind kind) {
  switch (kind) {
    case FileKind::kExperiment:
      return {"an experiment", "run"};
    case FileKind::kSweep:
      return {"a sweep", "sweep run"};
    case FileKind::kPublished:
      return {"a list of published rows", "validate published"};
    case FileKind::kSystem:
      return {"a system", "describe system"};
    case FileKind::kAccelerator:
      return {"an accelerator", "describe accelerator"};
    case FileKind::kModel:
      return {"a model", "describe model"};
    case FileKind::kCalibration:
      return {"a calibration", "describe calibration"};
    case FileKind::kProtocols:
      return {"protocols of a collective library", "check"};
    case FileKind::kNetworkCalibration:
      return {"a network calibration", "check"};
    case FileKind::kAlgorithm:
      return {"a collective algorithm", "check"};
    case FileKind::kHuggingFace:
      return {"a model", "describe model"};
  }
  return {"?", "check"};
}

}  // namespace

void expect_kind(const std::string& path, FileKind expected) {
  const FileKind kind = file_kind(path);
  if (kind == expected) return;
  throw config::ConfigError(path + ": this is " + name_of(kind).name + "; try: orrery " +
                            name_of(kind).command + " " + path);
}

FileKind file_kind(const std::string& path) {
  config::Diagnostics diagnostics;
  if (!config::input_files().read(path).fault.empty())
    config::load_file(path, diagnostics);  // says what is wrong with it
  diagnostics.throw_if_errors();
  if (path.ends_with(".json")) return FileKind::kHuggingFace;
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
