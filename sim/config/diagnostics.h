// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/config/location.h"

namespace orrery::config {

/// One message about a configuration.
struct Diagnostic {
  enum class Severity { kError, kWarning };
  Severity severity = Severity::kError;
  Location where;
  int length = 1;  ///< characters to underline
  std::string message;
  std::string suggestion;          ///< what was probably meant; empty: unknown
  std::vector<std::string> notes;  ///< lines after " = "
};

/// The user's input is wrong (exit code 2). Holds every diagnostic of the load; what() renders them
/// all.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(const std::string& message) : std::runtime_error(message) {}
  ConfigError(const std::string& rendering, std::vector<Diagnostic> diagnostics)
      : std::runtime_error(rendering), diagnostics_(std::move(diagnostics)) {}
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

/// What helps a user to mend an error.
struct Advice {
  std::string suggestion = {};          ///< what was probably meant; empty: unknown
  std::vector<std::string> notes = {};  ///< lines after " = "
};

/// What a key says turns out to be wrong when it is used: who has the configuration knows where it
/// stands.
class KeyError : public ConfigError {
 public:
  /// @param path "collective.algorithm"
  KeyError(const std::string& path, std::string message, Advice advice = {});
  /// An error of values that do not fit together.
  /// @param paths at least one; the first is the likeliest to be wrong
  KeyError(std::initializer_list<const char*> paths, std::string message, Advice advice = {});
  KeyError(std::vector<std::string> paths, std::string message, Advice advice = {});
  KeyError(const KeyError&);
  KeyError& operator=(const KeyError&);
  ~KeyError() override;
  const std::vector<std::string>& paths() const { return paths_; }
  const std::string& message() const { return message_; }
  const Advice& advice() const { return advice_; }

 private:
  std::vector<std::string> paths_;
  std::string message_;
  Advice advice_;
};

/// Collects the errors and warnings of one load, so that they are reported together.
class Diagnostics {
 public:
  /// Remembers a text, to quote its lines in messages. `text` is what Location::file `name` refers
  /// to.
  void add_source(const std::string& name, std::string text) {
    sources_.emplace(name, std::move(text));
  }

  void add(Diagnostic diagnostic);
  void error(Location where, int length, std::string message, std::string suggestion = {},
             std::vector<std::string> notes = {});
  void warning(Location where, int length, std::string message,
               std::vector<std::string> notes = {});

  bool has_errors() const { return errors_ > 0; }
  int error_count() const { return errors_; }
  const std::vector<Diagnostic>& all() const { return diagnostics_; }

  /// All messages as text, at most 20 errors and then their number.
  std::string render() const { return render_selected(true, true); }
  /// The warnings alone, as text; empty if there are none.
  std::string render_warnings() const { return render_selected(false, true); }
  /// @throws ConfigError with everything collected, if there is an error.
  void throw_if_errors() const {
    if (has_errors()) throw ConfigError(render(), diagnostics_);
  }

 private:
  std::string render_selected(bool errors, bool warnings) const;
  std::string render(const Diagnostic& diagnostic) const;

  std::map<std::string, std::string> sources_;
  std::vector<Diagnostic> diagnostics_;
  int errors_ = 0;
};

/// One error in a text that somebody reads by itself, thrown at once.
/// @param text that `where` is a place of
/// @throws ConfigError
[[noreturn]] void throw_error(const std::string& text, Location where, int length,
                              std::string message, std::string suggestion = {});

}  // namespace orrery::config
