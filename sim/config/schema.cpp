// SPDX-License-Identifier: Apache-2.0
#include "sim/config/schema.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/config/leaf.h"
#include "sim/units/comma_separated.h"
#include "sim/units/text.h"

namespace orrery::config {
namespace {

/// The type of the numbers inside lists, maps, optionals and Facts.
const Type& innermost(const Type& type) {
  return type.element != nullptr ? innermost(*type.element) : type;
}

bool is_number(TypeKind kind) {
  return kind == TypeKind::kQuantity || kind == TypeKind::kReal || kind == TypeKind::kInteger;
}

/// Limits of 0 and infinity mean the same in every unit.
bool has_no_scale(const Bounds& bounds) {
  return (bounds.low == 0 || std::isinf(bounds.low)) &&
         (bounds.high == 0 || std::isinf(bounds.high));
}

}  // namespace

Record::Record(const Record&) = default;
Record::Record(Record&&) noexcept = default;
Record& Record::operator=(const Record&) = default;
Record& Record::operator=(Record&&) noexcept = default;
Record::~Record() = default;

Record::Record(std::string name, std::string help, std::function<std::shared_ptr<void>()> make)
    : name_(std::move(name)), help_(std::move(help)), make_(std::move(make)) {}

const Field* Record::find(std::string_view key) const {
  const auto found =
      std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.key == key; });
  return found == fields_.end() ? nullptr : &*found;
}

const std::string* Record::path_of(std::string_view name) const {
  const auto found = std::find_if(aliases_.begin(), aliases_.end(),
                                  [&](const Alias& alias) { return alias.name == name; });
  return found == aliases_.end() ? nullptr : &found->path;
}

std::vector<std::string> Record::notes_on(const std::string& unknown_key) const {
  std::vector<std::string> notes;
  const std::vector<std::string> owners =
      elsewhere_ ? elsewhere_(unknown_key) : std::vector<std::string>();
  if (!owners.empty())
    notes.push_back("'" + unknown_key + "' is a key of: " + comma_joined(owners));
  notes.push_back("allowed: " + comma_joined(keys()));
  return notes;
}

std::vector<std::string> Record::keys() const {
  std::vector<std::string> keys;
  for (const Field& field : fields_) keys.push_back(field.key);
  return keys;
}

void Record::add(Field field) {
  const auto refuse = [&](const char* why) {
    throw std::logic_error("schema " + name_ + ", key '" + field.key + "': " + why);
  };
  const Type& leaf = innermost(*field.type);
  if (find(field.key) != nullptr) refuse("given twice");
  if (field.key == "extends") refuse("the name is taken by the language");
  if (!field.library.empty() && leaf.kind != TypeKind::kRecord) {
    refuse("only a struct can be a reference");
  }
  if (!field.bounds.unlimited() && !is_number(leaf.kind))
    refuse("bounds of something not a number");
  const bool is_quantity = leaf.kind == TypeKind::kQuantity;
  const bool same_dimension = field.bounds.dimension
                                  ? is_quantity && *field.bounds.dimension == leaf.dimension
                                  : !is_quantity || has_no_scale(field.bounds);
  if (!same_dimension) refuse("bounds of another dimension");
  // No physical quantity of a configuration is negative.
  if (is_quantity && field.bounds.unlimited()) field.bounds = at_least(0);
  fields_.push_back(std::move(field));
}

void Record::add(std::string_view key, std::string_view help, const Type& type,
                 const FieldRules& rules, MemberAddress address) {
  add({std::string(key), std::string(help), &type, rules.required, rules.bounds,
       std::string(rules.library), address});
}

void Record::add(std::string_view message, std::function<bool(const void*)> holds,
                 std::initializer_list<const char*> keys) {
  add([message = std::string(message), holds = std::move(holds)](
          const void* object) { return holds(object) ? std::string() : message; },
      std::vector<std::string>(keys.begin(), keys.end()));
}

void Record::add(std::function<std::string(const void*)> fault, std::vector<std::string> keys) {
  for (const std::string& key : keys) {
    if (find(key.substr(0, key.find('.'))) != nullptr) continue;
    throw std::logic_error("schema " + name_ + ": a check points to the unknown key '" + key + "'");
  }
  add(Check([fault = std::move(fault), keys = std::move(keys)](const void* object) {
    return Fault{fault(object), keys};
  }));
}

void Record::include(const Record& part, void* (*inside)(void* object)) {
  for (Field field : part.fields()) {
    field.address = field.address.inside(inside);
    add(std::move(field));
  }
  // Checks write nothing.
  for (const Check& check : part.checks())
    add(Check(
        [check, inside](const void* object) { return check(inside(const_cast<void*>(object))); }));
}

void Record::add(Alias alias) {
  if (find(alias.name) != nullptr || path_of(alias.name) != nullptr ||
      find(alias.path.substr(0, alias.path.find('.'))) == nullptr)
    throw std::logic_error("schema " + name_ + ": no other name for a key is '" + alias.name + "'");
  aliases_.push_back(std::move(alias));
}

std::string Bounds::text(std::optional<Dimension> field_dimension) const {
  const auto print = [&](double value) {
    return field_dimension ? print_quantity(value, *field_dimension) : print_number(value);
  };
  if (unlimited()) return {};
  if (std::isinf(high)) return (above_low ? "above " : "at least ") + print(low);
  if (std::isinf(low)) return "at most " + print(high);
  return "between " + print(low) + " and " + print(high);
}

}  // namespace orrery::config
