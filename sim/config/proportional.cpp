// SPDX-License-Identifier: Apache-2.0
#include "sim/config/proportional.h"

#include <map>
#include <optional>
#include <utility>

#include "sim/units/text.h"

namespace orrery::config {
namespace {

/// Values by the number that they are in proportion to. Function-local: other translation units
/// register while statics are initialised.
std::multimap<std::string, std::string, std::less<>>& registered() {
  static std::multimap<std::string, std::string, std::less<>> all;
  return all;
}

/// The value of a Fact, whichever way it is written; null: it has none.
const Node* value_of(const Node& fact) { return fact.is_map() ? fact.find("value") : &fact; }

/// A positive number without a unit.
std::optional<double> number_in(std::string_view text) {
  try {
    const double number = parse_number(text);
    return number > 0 ? std::optional(number) : std::nullopt;
  } catch (const UnitError&) {
    return std::nullopt;  // complete() and fill() say what is wrong with it
  }
}

std::optional<double> number_of(const Node& fact) {
  const Node* value = value_of(fact);
  return value != nullptr && value->is_scalar() ? number_in(value->text()) : std::nullopt;
}

/// "13840 W" times a factor.
std::optional<std::string> scaled(const std::string& text, double factor) {
  const std::size_t end = text.find(' ');
  const std::optional<double> number = number_in(std::string_view(text).substr(0, end));
  if (!number) return std::nullopt;
  return print_number(*number * factor) + (end == std::string::npos ? "" : text.substr(end));
}

/// Whether the value was written with the number that it goes by.
bool is_written_with(const Node& value, const Node& number) {
  using From = Origin::Kind;
  const Origin& own = value.origin();
  if (own.kind == From::kOverride) return true;
  const Origin& other = number.origin();
  return own.kind == From::kFile && other.kind == From::kFile && own.file && other.file &&
         *own.file == *other.file;
}

}  // namespace

RegisterProportional::RegisterProportional(const std::string& number, const std::string& value) {
  registered().emplace(number, value);
}

bool has_proportional(std::string_view number) { return registered().contains(number); }

void scale_proportional(Node& map, std::string_view number, const Node& before) {
  const Node* after = map.find(number);
  const std::optional<double> was = number_of(before);
  const std::optional<double> is = after != nullptr ? number_of(*after) : std::nullopt;
  if (!was || !is || *was == *is) return;
  const auto [first, last] = registered().equal_range(number);
  for (auto rule = first; rule != last; ++rule) {
    Node* fact = map.find(rule->second);
    const Node* value = fact != nullptr ? value_of(*fact) : nullptr;
    if (value == nullptr || !value->is_scalar()) continue;
    if (is_written_with(*value, *value_of(*after))) continue;
    const std::optional<std::string> text = scaled(value->text(), *is / *was);
    if (!text) continue;
    const Node* source = fact->find("source");
    const Origin origin = value->origin();
    Node derived = Node::map(origin);
    derived.set("value", Node::scalar(*text, origin), origin);
    derived.set("source",
                Node::scalar(std::string(kDerived) + value->text() + " x " + print_number(*is) +
                                 " / " + print_number(*was) + " " + std::string(number) +
                                 (source != nullptr ? "; " + source->text() : ""),
                             origin, true),
                origin);
    *fact = std::move(derived);
  }
}

}  // namespace orrery::config
