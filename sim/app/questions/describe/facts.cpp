// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/facts.h"

#include <algorithm>
#include <cmath>

#include "sim/config/leaf.h"
#include "sim/units/text.h"
#include "sim/units/units.h"

namespace orrery {
namespace {

using config::Type;
using config::TypeKind;

/// A value of a struct and what it is.
struct Place {
  const Type* type;
  const void* value;
};

/// Goes through what need not be there; none where it is not.
std::optional<Place> present(Place at) {
  while (at.type->kind == TypeKind::kOptional) {
    const auto children = at.type->children(at.value);
    if (children.empty()) return std::nullopt;
    at = {at.type->element, children.front().second};
  }
  return at;
}

std::optional<Place> member(const void* object, const config::Record& record,
                            std::string_view name) {
  const config::Field* field = record.find(name);
  if (field == nullptr) return std::nullopt;
  return present({field->type, field->address(const_cast<void*>(object))});
}

std::optional<Place> below(const Place& at, std::string_view name) {
  if (at.type->kind == TypeKind::kRecord) return member(at.value, at.type->record(), name);
  if (at.type->kind != TypeKind::kMap) return std::nullopt;
  for (const auto& [key, value] : at.type->children(at.value))
    if (at.type->names != nullptr &&
        std::get<std::int64_t>(key) == config::find_enumerator(*at.type->names, name))
      return present({at.type->element, value});
  return std::nullopt;
}

/// A driver reports whole MiB, which are long in decimal units.
std::string text_of(const config::Scalar& value, const Type& type) {
  const double number = *config::number_of(value, type);
  const double mebibytes = number / 1048576;
  const bool whole = mebibytes == std::floor(mebibytes) && std::fmod(number, 1e6) != 0;
  const bool bytes = type.kind == TypeKind::kQuantity && type.dimension == Bytes::dimension;
  return bytes && whole ? print_number(mebibytes) + " MiB" : config::print_leaf(value, type);
}

}  // namespace

std::optional<SeenFact> fact_at(const void* object, const config::Record& record,
                                const std::string& key) {
  std::string_view rest = key;
  std::optional<Place> at;
  while (!rest.empty()) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view name = rest.substr(0, dot);
    rest.remove_prefix(std::min(dot + 1, rest.size()));
    at = at ? below(*at, name) : member(object, record, name);
    if (!at) return std::nullopt;
  }
  const Type& type = *at->type->element;
  auto* fact = const_cast<void*>(at->value);
  const void* value = at->type->fact_value(fact);
  const void* nameplate = at->type->fact_nameplate(fact, false);
  const config::Scalar simulated = type.load(value);
  const config::Scalar published = nameplate != nullptr ? type.load(nameplate) : simulated;
  const auto text = [&](const char* of) { return *at->type->fact_text(fact, of); };
  return SeenFact{.key = key,
                  .published = *config::number_of(published, type),
                  .simulated = *config::number_of(simulated, type),
                  .published_text = text_of(published, type),
                  .simulated_text = text_of(simulated, type),
                  .published_source = text(nameplate != nullptr ? "nameplate_source" : "source"),
                  .simulated_source = text("source"),
                  .reason = text("reason")};
}

}  // namespace orrery
