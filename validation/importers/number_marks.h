// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace orrery {

/// Which marks a text has in its numbers: "1,234.5" with a decimal point, "1.234,5" with a decimal
/// comma. Numbers that are right with one mark alone tell it; "117,344" is right with both.
class NumberMarks {
 public:
  /// @param said "point", "comma", or empty: as the numbers tell
  /// @throws config::ConfigError for another word
  explicit NumberMarks(const std::string& said = {});

  /// Takes a number of the text into account; what is none tells nothing.
  void observe(std::string_view number);

  enum class Reading { kNumber, kNone, kAmbiguous };
  /// Reads a number from 0 on.
  /// @param plain gets it without marks of thousands, with a decimal point
  Reading read(std::string_view number, std::string& plain) const;

 private:
  char decimal_ = 0;  ///< mark that the user says; 0: none
  int points_ = 0, commas_ = 0;
};

}  // namespace orrery
