// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/node.h"
#include "sim/config/output.h"
#include "sim/config/registry.h"

namespace orrery {

/// A kind of file that users write.
struct FileKind {
  std::string what;                  ///< "a sweep"
  std::string command;               ///< command of `orrery` that takes such a file: "sweep run"
  std::vector<std::string> telling;  ///< top-level keys that tell it
  /// How surely a map or list, without what it extends, is one; 0: it is none. The surest kind is
  /// taken. None given: files are told by their ending.
  std::function<int(const config::Node& own)> certainty;
  /// Everything short of simulating; gives warnings as text.
  /// @throws config::ConfigError with everything that is wrong
  std::function<std::string(const std::string& path)> check;
  std::string ending = {};  ///< ".json": whatever is in it; may be empty
  /// The JSON Schema of such files, for editors; none given where the form is not ours.
  std::function<nlohmann::ordered_json()> schema = {};
};

/// All kinds by name: "experiment", "sweep", ... A file of ours adds one with one object.
using FileKinds = Registry<FileKind>;
struct RegisterFileKind : FileKinds::Register {
  RegisterFileKind(const std::string& name, FileKind kind) : Register(name, "", std::move(kind)) {}
};

/// A kind of file that is read as a `T`: with its schema.
template <class T>
FileKind schema_kind(FileKind kind) {
  kind.schema = [] { return config::json_schema(T::schema().record()); };
  return kind;
}

/// A check that has nothing to warn of.
inline std::function<std::string(const std::string&)> no_warnings(
    std::function<void(const std::string& path)> check) {
  return [check = std::move(check)](const std::string& path) {
    check(path);
    return std::string();
  };
}

/// The name of the kind that a file is of. Follows `extends:` where the file alone does not tell.
/// @throws config::ConfigError when the file cannot be read or is of no kind.
std::string file_kind(const std::string& path);

/// @throws config::ConfigError naming the command for what `path` is, when it is not of the
/// expected kind.
void expect_kind(const std::string& path, const std::string& expected);

}  // namespace orrery
