// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/results/answer.h"

namespace orrery {

/// Values by name: a table of two columns for people, an object for programs.
class NamedValues {
 public:
  /// @param text the value as people read it
  void add(const std::string& name, const std::string& text, const nlohmann::ordered_json& value) {
    rows_.push_back({name, text});
    json_[name] = value;
  }
  void add(const std::string& name, const std::string& text) { add(name, text, text); }

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
