// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/config/node.h"
#include "sim/config/schema.h"

namespace orrery::config {

/// Reads strict YAML: one document in UTF-8 of at most 16 MiB, nested at most 64 deep, without
/// duplicate keys, merge keys and tags. What is wrong goes to `diagnostics`; the result is then
/// null. `name` is what messages call the text.
Node parse_yaml(const std::string& text, const std::string& name, Diagnostics& diagnostics);

/// Reads a YAML file and lays it over the files that it `extends:`. Names in `extends:` are those
/// of the library folder `kind`; without a kind they are files beside it.
Node load_file(const std::string& path, Diagnostics& diagnostics,
               const Library& library = default_library(), const std::string& kind = {});

/// The same for the file that a scalar names, as `extends` does; what is wrong with the name is
/// told where it stands.
Node load_referenced(const Node& reference, Diagnostics& diagnostics, const Library& library);

/// Loads a text that was read already. `path` is what messages call it, and where files
/// beside it are looked for.
Node load_text(const std::string& text, const std::string& path, Diagnostics& diagnostics,
               const Library& library = default_library(), const std::string& kind = {});

/// Lays a map over the file that its key `extends` names and removes the key. A node without the
/// key stays as it is.
Node resolve_extends(Node node, const std::string& kind, Diagnostics& diagnostics,
                     const Library& library);

/// Says where in the configuration the keys of an error were written (see place_of()).
/// @param root what the paths of the error start at
/// @param within the part of the paths that leads to `root`: "system" where that is a system alone
/// @throws ConfigError with the place; the error itself where it is about something above `root`
[[noreturn]] void throw_located(const KeyError& error, const Node& root,
                                std::string_view within = {});
/// The same as one of the findings of a load.
void report(const KeyError& finding, const Node& root, Diagnostics& diagnostics,
            Diagnostic::Severity severity = Diagnostic::Severity::kError);

/// The whole way from a file to a struct: load_file() and read().
/// @throws ConfigError with everything that is wrong.
template <class T>
T load(const std::string& path, const Library& library = default_library(),
       const std::string& kind = {}) {
  Diagnostics diagnostics;
  const Node node = load_file(path, diagnostics, library, kind);
  diagnostics.throw_if_errors();
  T object = read<T>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  return object;
}

}  // namespace orrery::config
