// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "sim/results/exit_code.h"
#include "sim/results/table.h"

namespace orrery {

/// Rows told twice: cells of a table for people, objects of a list for programs.
struct ToldRows {
  Table table;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();

  void add(std::vector<std::string> cells, nlohmann::ordered_json object) {
    table.add_row(std::move(cells));
    json.push_back(std::move(object));
  }
};

/// What a question gives: lines and tables in their order for people, JSON for programs. How they
/// look is up to who prints them.
struct Answer {
  /// Whole lines with their ends, or a table.
  using Part = std::variant<std::string, Table>;

  std::vector<Part> parts;
  nlohmann::ordered_json json;
  /// The same as rows of exact values, titles first; empty: it is no table.
  std::vector<std::vector<std::string>> csv = {};
  std::string warnings = {};  ///< lines about what was asked, beside the answer
  ExitCode code = ExitCode::kOk;

  void add(std::string lines) { parts.emplace_back(std::move(lines)); }
  void add(Table table) { parts.emplace_back(std::move(table)); }
  /// A table under an empty line; nothing where it has no rows.
  void add_below(Table table) {
    if (table.empty()) return;
    add("\n");
    add(std::move(table));
  }
  /// The parts of another answer, without its JSON.
  void add(const Answer& other) {
    parts.insert(parts.end(), other.parts.begin(), other.parts.end());
  }
};

}  // namespace orrery
