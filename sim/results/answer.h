// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/results/exit_code.h"
#include "sim/results/table.h"

namespace orrery {

/// The value as JSON, or null.
template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

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

/// Values by name: a table of two columns for people, an object for programs.
class NamedValues {
 public:
  /// @param text the value as people read it
  void add(const std::string& name, const std::string& text, const nlohmann::ordered_json& value) {
    rows_.push_back({name, text});
    json_[name] = value;
  }
  void add(const std::string& name, const std::string& text) { add(name, text, text); }
  void add_count(const std::string& name, std::int64_t count) {
    add(name, std::to_string(count), count);
  }
  /// @param unit as of format_si()
  void add_quantity(const std::string& name, double value, std::string_view unit) {
    add(name, format_si(value, unit), value);
  }

  Answer answer(Table::Align values) const {
    Table table({{"what"}, {"value", values}});
    for (const auto& row : rows_) table.add_row(row);
    return {.parts = {std::move(table)}, .json = json_};
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

}  // namespace orrery
