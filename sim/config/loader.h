// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/config/node.h"

namespace orrery::config {

/// Follows the references between files: names of the library, paths, `extends`.
class Loader {
 public:
  Loader(Diagnostics& diagnostics, const Library& library)
      : diagnostics_(diagnostics), library_(library) {}

  const Library& library() const { return library_; }

  /// A file with its `extends` resolved; none if it cannot be read, which has been reported.
  std::optional<Node> load(const std::string& path, const std::string& kind);
  /// Loads a text that was read from `path`.
  std::optional<Node> load_text(const std::string& path, const std::string& text,
                                const std::string& kind);
  /// The same for the file that a scalar names; what is wrong with the name is reported there.
  std::optional<Node> load_referenced(const Node& reference, const std::string& kind);
  /// Lays a map over the file that its key `extends` names; none after an error.
  std::optional<Node> resolve_extends(Node node, const std::string& kind);

 private:
  void report_missing(const Node& reference, const std::string& kind, const std::string& path);
  bool closes_cycle(const Node& reference, const std::string& path);

  Diagnostics& diagnostics_;
  const Library& library_;
  std::vector<std::string> chain_;  // files being resolved, each extending the next
};

class Record;

/// Puts what a map says under other names of keys (Record::aliases) where the keys are. What is
/// given under two names is an error at the other name.
void rename_aliases(Node& node, const Record& record, Diagnostics& diagnostics);

}  // namespace orrery::config
