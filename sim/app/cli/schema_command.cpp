// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/verb.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/config/leaf.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

struct SchemaArguments {
  std::string kind = "experiment";
  std::vector<std::string> files;
  bool json = true;  ///< there is no other form

  void take(Options& options);
  ExitCode run() const;
};

/// Names of the kinds of files that have a schema.
std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, kind] : FileKinds::items())
    if (kind.entry.schema) all.push_back(name);
  return all;
}

}  // namespace

void SchemaArguments::take(Options& options) {
  options.optional_positional("KIND", kind, "experiment (default), or " + comma_joined(names()));
  options.options("--of", files, "print the kinds of these files instead, one a line");
  options.flag("--json", json, "accepted; JSON is the only form of a schema");
}

ExitCode SchemaArguments::run() const {
  for (const std::string& file : files) std::cout << file_kind(file) << "\t" << file << "\n";
  if (!files.empty()) return ExitCode::kOk;
  const FileKind* found = FileKinds::find(kind);
  if (found == nullptr || !found->schema) {
    const std::string near = nearest_name(kind, names());
    throw UsageError("no schema '" + kind + "'" +
                     (near.empty() ? "" : "; did you mean " + near + "?") +
                     "; there are: " + comma_joined(names()));
  }
  std::cout << found->schema().dump(2) << "\n";
  return ExitCode::kOk;
}

namespace {

const RegisterVerb<SchemaArguments> registered_schema(
    "schema", "print the JSON Schema (draft-07) of YAML files");

}  // namespace

}  // namespace orrery
