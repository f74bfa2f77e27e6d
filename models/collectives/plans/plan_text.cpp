// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <stdexcept>
#include <utility>

#include "models/collectives/plans/plan_reader.h"

namespace orrery {

void PlanText::fail(const config::Node& node, std::string message,
                    std::vector<std::string> notes) const {
  diagnostics_.error(node.where(), node.length(), std::move(message), {}, std::move(notes));
  diagnostics_.throw_if_errors();
  throw std::logic_error("unreachable: an error was reported");
}

const config::Node& PlanText::at(const config::Node& map, const char* key) const {
  if (!map.is_map()) fail(map, std::string("expected an object with '") + key + "'");
  const config::Node* value = map.find(key);
  if (value == nullptr) fail(map, std::string("missing key '") + key + "' in an execution plan");
  return *value;
}

const std::vector<config::Node>& PlanText::list(const config::Node& node) const {
  if (!node.is_sequence()) fail(node, "expected a list");
  return node.items();
}

const std::vector<config::Node>& PlanText::maybe_list(const config::Node& map,
                                                      const char* key) const {
  static const std::vector<config::Node> none;
  const config::Node* value = map.find(key);
  return value == nullptr ? none : list(*value);
}

int PlanText::integer(const config::Node& node, int low, int high) const {
  int value = 0;
  const std::string& text = node.text();
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!node.is_scalar() || fault != std::errc() || end != text.data() + text.size() ||
      value < low || value > high) {
    fail(node, "expected an integer from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

const std::string& PlanText::word(const config::Node& node) const {
  if (!node.is_scalar()) fail(node, "expected a text");
  return node.text();
}

}  // namespace orrery
