// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "sim/config/changes.h"
#include "sim/config/leaf.h"
#include "sim/config/library.h"
#include "sim/config/place.h"
#include "sim/config/schema.h"
#include "sim/units/text.h"

namespace orrery::config {
namespace {

/// Writes a completed node into a C++ object and checks values, bounds and relations.
class Filler {
 public:
  explicit Filler(Diagnostics& diagnostics)
      : diagnostics_(diagnostics), complete_(!diagnostics.has_errors()) {}

  void record(void* object, const Node& node, const Record& record) {
    const int errors = diagnostics_.error_count();
    fields(object, node, record);
    // A relation means nothing when a field is missing or wrong, or when nobody wrote the struct.
    if (!complete_ || diagnostics_.error_count() > errors || is_default(node)) return;
    follow(object, node, record);
    for (const Check& check : record.checks()) {
      const Fault fault = check(object);
      if (!fault.text.empty()) report(fault, node);
    }
    if (record.derivation() && diagnostics_.error_count() == errors) record.derivation()(object);
  }

  void fields(void* object, const Node& node, const Record& record) {
    for (const Field& field : record.fields()) {
      const Node* given = node.find(field.key);
      if (given != nullptr) value(field.address(object), *given, *field.type, field.bounds);
    }
  }

  /// Lets values follow those that what-ifs changed, the oldest what-if first.
  void follow(void* object, const Node& node, const Record& record) {
    if (!record.following() || node.before() == nullptr) return;
    const std::shared_ptr<void> before = record.make();
    fields(before.get(), *node.before(), record);
    follow(before.get(), *node.before(), record);
    record.following()(object, before.get(), Changes(*node.before(), node));
  }

  int broken_relations() const { return broken_relations_; }

 private:
  static bool is_default(const Node& node) { return node.origin().kind == Origin::Kind::kDefault; }

  void report(const Fault& fault, const Node& node) {
    const Place place = place_of(node, fault.keys);
    diagnostics_.error(place.where, place.length, fault.text);
    ++broken_relations_;
  }

  void value(void* target, const Node& node, const Type& type, const Bounds& bounds) {
    if (is_leaf(type)) return leaf(target, node, type, bounds);
    switch (type.kind) {
      case TypeKind::kNode:
        return type.assign(target, node);
      case TypeKind::kRecord:
        return record(target, node, type.record());
      case TypeKind::kChoice:
        return choice(target, node, type);
      case TypeKind::kFact:
        return fact(target, node, type, bounds);
      case TypeKind::kOptional:
        type.clear(target);
        if (!node.is_null()) value(type.append(target, {}), node, *type.element, bounds);
        return;
      case TypeKind::kList:
        type.clear(target);
        for (const Node& item : node.items()) {
          value(type.append(target, {}), item, *type.element, bounds);
        }
        return;
      default:
        return map(target, node, type, bounds);
    }
  }

  void choice(void* target, const Node& node, const Type& type) {
    const Choices& choices = type.choices();
    if (const Record* chosen = choices.record_of(node))
      record(type.choose(target, choices.name_in(node)), node, *chosen);
  }

  void map(void* target, const Node& node, const Type& type, const Bounds& bounds) {
    type.clear(target);
    for (const Node::Entry& entry : node.entries()) {
      const Scalar key = type.names != nullptr ? Scalar(*find_enumerator(*type.names, entry.key))
                                               : Scalar(entry.key);
      value(type.append(target, key), entry.value, *type.element, bounds);
    }
  }

  void fact(void* target, const Node& node, const Type& type, const Bounds& bounds) {
    if (!node.is_map()) return value(type.fact_value(target), node, *type.element, bounds);
    static const Type& text = type_of<std::string>();
    for (const Node::Entry& entry : node.entries()) {
      if (entry.key == "value") {
        value(type.fact_value(target), entry.value, *type.element, bounds);
      } else if (entry.key == "nameplate") {
        value(type.fact_nameplate(target, true), entry.value, *type.element, bounds);
      } else {
        value(type.fact_text(target, entry.key), entry.value, text, {});
      }
    }
  }

  void leaf(void* target, const Node& node, const Type& type, const Bounds& bounds) {
    try {
      Scalar scalar = parse_leaf(node, type);
      // Defaults need not keep what is asked of users: 0 may stand for "not given".
      if (!is_default(node)) {
        check_bounds(node, scalar, type, bounds);
        if (type.kind == TypeKind::kPath) scalar = existing_path(node);
      }
      type.store(target, scalar);
    } catch (const UnitError& error) {
      diagnostics_.error(node.where(), node.length(), error.what(), error.suggestion());
    }
  }

  static void check_bounds(const Node& node, const Scalar& scalar, const Type& type,
                           const Bounds& bounds) {
    const std::optional<double> number = number_of(scalar, type);
    if (!number || bounds.contains(*number)) return;
    const bool is_quantity = type.kind == TypeKind::kQuantity;
    throw UnitError("'" + node.text() + "' is out of bounds: expected " +
                    bounds.text(is_quantity ? std::optional(type.dimension) : std::nullopt));
  }

  /// The path that opens the file from the working directory.
  static std::string existing_path(const Node& node) {
    const Origin& origin = node.origin();
    const std::string from = origin.kind == Origin::Kind::kFile ? *origin.file : std::string();
    std::string path = relative_to(node.text(), from);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      throw UnitError("no such file '" + node.text() + "' (looked for " + path + ")",
                      nearest_file(node.text(), path));
    }
    return path;
  }

  Diagnostics& diagnostics_;
  const bool complete_;
  int broken_relations_ = 0;
};

}  // namespace

void fill(void* object, const Node& completed, const Record& record, Diagnostics& diagnostics) {
  fill_and_count_broken_relations(object, completed, record, diagnostics);
}

int fill_and_count_broken_relations(void* object, const Node& completed, const Record& record,
                                    Diagnostics& diagnostics) {
  Filler filler(diagnostics);
  if (completed.is_map()) filler.record(object, completed, record);
  return filler.broken_relations();
}

}  // namespace orrery::config
