// SPDX-License-Identifier: Apache-2.0
#include "sim/config/loader.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/config/foreign_file.h"
#include "sim/config/input_files.h"
#include "sim/config/leaf.h"
#include "sim/config/load.h"
#include "sim/config/place.h"
#include "sim/config/schema.h"
#include "sim/units/spelling.h"

namespace orrery::config {
namespace {

/// Whether somebody wrote it: a completed configuration has defaults too.
bool is_written(const Node* node) {
  return node != nullptr && node->origin().kind != Origin::Kind::kDefault;
}

/// Sets the value at a dotted path below `node`, whose maps are made where they are missing. Two
/// maps join.
/// @returns false where something else is there
bool put(Node& node, const std::string& path, const Node::Entry& entry) {
  const std::size_t dot = path.find('.');
  const std::string key = path.substr(0, dot);
  Node* child = node.find(key);
  if (dot == std::string::npos) {
    if (is_written(child) && child->is_map() && entry.value.is_map()) {
      for (const Node::Entry& part : entry.value.entries())
        if (!put(*child, part.key, part)) return false;
      return true;
    }
    if (is_written(child)) return false;
    node.set(key, entry.value, entry.key_origin);
    return true;
  }
  if (child == nullptr || child->is_null()) {
    node.set(key, Node::map(entry.key_origin), entry.key_origin);
    child = node.find(key);
  }
  // A default becomes the user's, so that its relations are checked.
  if (!is_written(child)) child->take_origin(entry.key_origin);
  return child->is_map() && put(*child, path.substr(dot + 1), entry);
}

}  // namespace

namespace fs = std::filesystem;
namespace {

std::string identity(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

/// What a library has instead of `name`, and how to see all of it.
std::vector<std::string> notes_on_names(const std::string& kind, const std::string& name,
                                        const std::vector<std::string>& names) {
  const std::string instead = names_instead(name, names);
  std::vector<std::string> notes;
  if (!instead.empty()) notes.push_back(instead);
  if (!names.empty())
    notes.push_back("`orrery describe " + kind + "` lists all " + std::to_string(names.size()));
  return notes;
}

}  // namespace

std::optional<Node> Loader::load(const std::string& path, const std::string& kind) {
  const FileText file = input_files().read(path);
  if (file.fault.empty()) return load_text(path, file.text, kind);
  const std::string suggestion =
      file.fault == "no such file" ? nearest_file(path, path) : std::string();
  diagnostics_.error({path, 0, 0}, 1, file.fault, suggestion);
  return std::nullopt;
}

std::optional<Node> Loader::load_text(const std::string& path, const std::string& text,
                                      const std::string& kind) {
  const int errors = diagnostics_.error_count();
  Node node = parse_yaml(text, path, diagnostics_);
  if (diagnostics_.error_count() > errors && node.is_null()) return std::nullopt;
  chain_.push_back(path);
  std::optional<Node> resolved = resolve_extends(std::move(node), kind);
  chain_.pop_back();
  return resolved;
}

std::optional<Node> Loader::load_referenced(const Node& reference, const std::string& kind) {
  const Origin& origin = reference.origin();
  const std::string from = origin.kind == Origin::Kind::kFile ? *origin.file : std::string();
  const std::string path = library_.locate(kind, reference.text(), from);
  if (closes_cycle(reference, path)) return std::nullopt;
  const FileText file = input_files().read(path);
  if (file.fault.empty()) {
    std::optional<Node> found = load_text(path, file.text, kind);
    if (found) found = in_own_words(std::move(*found), reference, kind, path);
    return found;
  }
  if (file.fault == "no such file") {
    report_missing(reference, kind, path);
  } else {
    diagnostics_.error(reference.where(), reference.length(),
                       "'" + reference.text() + "': " + path + " " + file.fault);
  }
  return std::nullopt;
}

void Loader::report_missing(const Node& reference, const std::string& kind,
                            const std::string& path) {
  const std::string& name = reference.text();
  if (kind.empty() || Library::is_path(name)) {
    diagnostics_.error(reference.where(), reference.length(), "no such file '" + name + "'",
                       nearest_file(name, path), {"looked for " + path});
    return;
  }
  const std::vector<std::string> names = library_.names(kind);
  std::vector<std::string> notes = notes_on_names(kind, name, names);
  notes.emplace_back("a file of your own is named by its path, with '/', '.yaml' or '.json'");
  diagnostics_.error(reference.where(), reference.length(),
                     "nothing named '" + name + "' in " + kind, nearest_name(name, names),
                     std::move(notes));
}

bool Loader::closes_cycle(const Node& reference, const std::string& path) {
  const auto same = [&](const std::string& file) { return identity(file) == identity(path); };
  const auto first = std::find_if(chain_.begin(), chain_.end(), same);
  if (first == chain_.end()) return false;
  std::string chain;
  for (auto file = first; file != chain_.end(); ++file) chain += *file + " -> ";
  diagnostics_.error(reference.where(), reference.length(), "'extends' goes round in a circle", {},
                     {chain + path});
  return true;
}

std::optional<Node> Loader::resolve_extends(Node node, const std::string& kind) {
  const Node* found = node.find("extends");
  if (found == nullptr) return node;
  const Node reference = *found;
  node.erase("extends");
  if (!reference.is_scalar() || reference.text().empty()) {
    diagnostics_.error(reference.where(), reference.length(), "'extends' wants a name or a path");
    return std::nullopt;
  }
  std::optional<Node> base = load_referenced(reference, kind);
  if (!base) return std::nullopt;
  if (!base->is_map()) {
    diagnostics_.error(reference.where(), reference.length(),
                       "'" + reference.text() + "' cannot be extended: it holds no keys");
    return std::nullopt;
  }
  Node merged = merge(*base, node);
  merged.set_before(std::make_shared<const Node>(*std::move(base)));
  return merged;
}

Node load_file(const std::string& path, Diagnostics& diagnostics, const Library& library,
               const std::string& kind) {
  return Loader(diagnostics, library).load(path, kind).value_or(Node());
}

Node load_referenced(const Node& reference, Diagnostics& diagnostics, const Library& library) {
  return Loader(diagnostics, library).load_referenced(reference, {}).value_or(Node());
}

Node load_text(const std::string& text, const std::string& path, Diagnostics& diagnostics,
               const Library& library, const std::string& kind) {
  return Loader(diagnostics, library).load_text(path, text, kind).value_or(Node());
}

Node resolve_extends(Node node, const std::string& kind, Diagnostics& diagnostics,
                     const Library& library) {
  return Loader(diagnostics, library).resolve_extends(std::move(node), kind).value_or(Node());
}

namespace {

/// `path` as it is below `within`; none where it leads elsewhere.
std::optional<std::string> path_below(const std::string& path, std::string_view within) {
  if (within.empty()) return path;
  if (!path.starts_with(within) || path.size() <= within.size() || path[within.size()] != '.')
    return {};
  return path.substr(within.size() + 1);
}

}  // namespace

void report(const KeyError& finding, const Node& root, Diagnostics& diagnostics,
            Diagnostic::Severity severity) {
  const Place place = place_of(root, finding.paths());
  // Elsewhere the message has to say what it is about.
  std::string message =
      place.exact ? finding.message() : finding.paths().front() + ": " + finding.message();
  diagnostics.add({severity, place.where, place.length, std::move(message),
                   finding.advice().suggestion, finding.advice().notes});
}

void throw_located(const KeyError& error, const Node& root, std::string_view within) {
  std::vector<std::string> paths;
  for (const std::string& path : error.paths()) {
    if (auto below = path_below(path, within)) paths.push_back(*std::move(below));
  }
  if (paths.empty()) throw KeyError(error);
  Diagnostics diagnostics;
  report(KeyError(std::move(paths), error.message(), error.advice()), root, diagnostics);
  diagnostics.throw_if_errors();
  throw KeyError(error);
}

void rename_aliases(Node& node, const Record& record, Diagnostics& diagnostics) {
  if (record.aliases().empty() || !node.is_map()) return;
  std::vector<Node::Entry> others;
  for (const Node::Entry& entry : node.entries())
    if (record.path_of(entry.key) != nullptr) others.push_back(entry);
  for (const Node::Entry& entry : others) {
    const std::string& path = *record.path_of(entry.key);
    node.erase(entry.key);
    if (put(node, path, entry)) continue;
    diagnostics.error(entry.key_origin.location(), static_cast<int>(entry.key.size()),
                      "'" + entry.key + "' is another name of '" + path + "', which is given too");
  }
}

}  // namespace orrery::config
