// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "sim/config/changes.h"
#include "sim/config/leaf.h"
#include "sim/config/loader.h"
#include "sim/config/one_only.h"
#include "sim/config/schema.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"

namespace orrery::config {
namespace {

bool writes_plain_facts(const Node& before, const Node& after, const Record& record);

/// Whether a value, or one below it, is a Fact that was written anew without a source.
bool writes_plain_fact(const Node* before, const Node& after, const Type& type) {
  static const Node kNothing;
  const Node& base = before != nullptr ? *before : kNothing;
  switch (type.kind) {
    case TypeKind::kOptional:
      return writes_plain_fact(before, after, *type.element);
    case TypeKind::kFact: {
      if (after.is_map()) return false;
      Node was = Node::map({}), is = Node::map({});
      if (before != nullptr) was.set("fact", *before, {});
      is.set("fact", after, {});
      return Changes(was, is).has("fact");
    }
    case TypeKind::kMap:
      return std::any_of(
          after.entries().begin(), after.entries().end(), [&](const Node::Entry& entry) {
            return writes_plain_fact(base.find(entry.key), entry.value, *type.element);
          });
    case TypeKind::kRecord:
      return writes_plain_facts(base, after, type.record());
    default:
      return false;
  }
}

bool writes_plain_facts(const Node& before, const Node& after, const Record& record) {
  return std::any_of(record.fields().begin(), record.fields().end(), [&](const Field& field) {
    const Node* value = after.find(field.key);
    return value != nullptr && writes_plain_fact(before.find(field.key), *value, *field.type);
  });
}

/// The map that a what-if changed, of the maps that `node` was laid over. A `--set`, or a file that
/// `extends` another, is a what-if if it writes a Fact without a source; otherwise it describes
/// another device. Null if no what-if changed the map.
const Node* changed_by_what_if(const Node& node, const Record& record) {
  const Node* before = node.before().get();
  while (before != nullptr && !writes_plain_facts(*before, node, record))
    before = before->before().get();
  return before;
}

/// Where a value that is incomplete is named: its key, or itself at the top of a file and in lists.
struct Anchor {
  Origin origin;
  int length = 1;
};

/// Checks the keys of a tree of nodes against a tree of types, loading references and adding
/// defaults on the way. The scalars themselves are checked where they are read, in fill().
class Completer {
 public:
  Completer(Diagnostics& diagnostics, const Library& library)
      : diagnostics_(diagnostics), loader_(diagnostics, library) {}

  std::optional<Node> record(const Node& written, const Record& record, const Anchor& anchor) {
    std::optional<Node> completed;
    if (record.aliases().empty()) {
      completed = keys(written, record, anchor);
    } else {
      Node node = written;
      rename_aliases(node, record, diagnostics_);
      completed = keys(node, record, anchor);
    }
    if (completed && record.following()) keep_before(written, record, *completed);
    return completed;
  }

 private:
  /// Completes the map that a what-if changed. It is left out if it is incomplete: then the map is
  /// a description that nothing was changed in.
  void keep_before(const Node& written, const Record& record, Node& completed) const {
    const Node* before = changed_by_what_if(written, record);
    if (before == nullptr) return;
    Diagnostics reported;  // with the map that was laid over it
    const Anchor anchor{before->origin()};
    const auto whole = Completer(reported, loader_.library()).record(*before, record, anchor);
    if (whole && !reported.has_errors()) completed.set_before(std::make_shared<const Node>(*whole));
  }

  /// A map whose keys have the names of the schema.
  std::optional<Node> keys(const Node& node, const Record& record, const Anchor& anchor) {
    if (!node.is_map()) {
      error(node, "expected a map with the keys of " + record.name() + ", got " + description(node),
            {}, {allowed(record.keys())});
      return std::nullopt;
    }
    const std::vector<std::string> meant = refuse_unknown_keys(node, record);
    const std::shared_ptr<void> defaults = record.make();
    Node completed = Node::map(node.origin());
    for (const Field& field : record.fields()) {
      const Node* given = node.find(field.key);
      const bool misspelt = std::find(meant.begin(), meant.end(), field.key) != meant.end();
      if (given == nullptr && misspelt) {
        continue;  // reported as an unknown key
      }
      if (given == nullptr && field.required) {
        diagnostics_.error(anchor.origin.location(), anchor.length,
                           "missing key '" + field.key + "' in " + record.name(), {},
                           {field.key + ": " + field.help});
      } else if (given == nullptr) {
        completed.set(field.key, default_node(field, defaults.get()), {});
      } else if (is_one_too_many(*given, field)) {
        error(*given, "expected one value of '" + field.key + "', got a list", {},
              {Registry<OneOnly>::find(field.key)->reason});
      } else if (field.required && is_blank(*given)) {
        error(*given, "'" + field.key + "' in " + record.name() + " is empty", {},
              {field.key + ": " + field.help});
      } else if (auto value = reference(*given, field, anchor_of(node, field.key))) {
        completed.set(field.key, std::move(*value), node.key_origin(field.key));
      }
    }
    return completed;
  }

  static bool is_one_too_many(const Node& given, const Field& field) {
    return given.is_sequence() && field.type->kind != TypeKind::kList &&
           Registry<OneOnly>::find(field.key) != nullptr;
  }

  static bool is_blank(const Node& given) {
    return given.origin().kind != Origin::Kind::kDefault && given.is_scalar() &&
           given.text().find_first_not_of(" \t\r\n") == std::string::npos;
  }

  static Anchor anchor_of(const Node& map, const std::string& key) {
    return {map.key_origin(key), static_cast<int>(key.size())};
  }

  static std::string allowed(const std::vector<std::string>& names) {
    return "allowed: " + comma_joined(names);
  }

  void error(const Node& node, std::string message, std::string suggestion = {},
             std::vector<std::string> notes = {}) {
    diagnostics_.error(node.where(), node.length(), std::move(message), std::move(suggestion),
                       std::move(notes));
  }

  /// Reports a key that is not one of `names` and returns the one that was probably meant.
  std::string refuse_key(const Node::Entry& entry, const std::string& where,
                         const std::vector<std::string>& names, std::vector<std::string> notes) {
    if (entry.key == "extends") {
      notes.emplace_back("'extends' works at the top of a file and where a name may stand");
    }
    std::string meant = nearest_name(entry.key, names);
    diagnostics_.error(entry.key_origin.location(), static_cast<int>(entry.key.size()),
                       "unknown key '" + entry.key + "' in " + where, meant, std::move(notes));
    return meant;
  }

  std::vector<std::string> refuse_unknown_keys(const Node& node, const Record& record) {
    const std::vector<std::string> names = record.keys();
    std::vector<std::string> meant;
    for (const Node::Entry& entry : node.entries()) {
      if (record.find(entry.key) == nullptr) {
        meant.push_back(refuse_key(entry, record.name(), names, record.notes_on(entry.key)));
      }
    }
    return meant;
  }

  /// The value of a field, from the library if it is a name or extends one.
  std::optional<Node> reference(const Node& node, const Field& field, const Anchor& anchor) {
    if (field.library.empty() || node.is_sequence() || node.is_null()) {
      return value(node, *field.type, field.key, anchor);
    }
    const std::optional<Node> found = node.is_scalar()
                                          ? loader_.load_referenced(node, field.library)
                                          : loader_.resolve_extends(node, field.library);
    if (!found) return std::nullopt;
    // A file has no key in front of it: what is missing is missing at its top.
    return value(*found, *field.type, field.key,
                 node.is_scalar() ? Anchor{found->origin()} : anchor);
  }

  std::optional<Node> value(const Node& node, const Type& type, const std::string& name,
                            const Anchor& anchor) {
    switch (type.kind) {
      case TypeKind::kRecord:
        return record(spelled_out(node, type.record()), type.record(), anchor);
      case TypeKind::kChoice:
        return choice(node, type.choices(), name, anchor);
      case TypeKind::kList:
        return list(node, type);
      case TypeKind::kMap:
        return map(node, type, name);
      case TypeKind::kFact:
        return fact(node, type, name, anchor);
      case TypeKind::kOptional:
        return node.is_null() ? node : value(node, *type.element, name, anchor);
      default:
        return node;
    }
  }

  /// A scalar, or a list for a key that has one, that stands for a map with one key, as that map.
  static Node spelled_out(const Node& node, const Record& record) {
    if (record.shorthand().empty() || node.is_map() || node.is_null()) return node;
    const bool is_list = record.find(record.shorthand())->type->kind == TypeKind::kList;
    if (is_list != node.is_sequence()) return node;
    Node map = Node::map(node.origin());
    map.set(record.shorthand(), node, node.origin());
    return map;
  }

  /// A map without the keys of another kind that it has from the one it was laid over.
  static Node of_its_kind(const Node& node, const Record& chosen, const Choices& choices) {
    int layer = 0;  // that says the kind
    for (const Node::Entry& entry : node.entries())
      if (entry.key == choices.tag) layer = entry.layer;
    const auto of_another = [&](const Node::Entry& entry) {
      return entry.layer < layer && chosen.find(entry.key) == nullptr &&
             std::any_of(choices.records.begin(), choices.records.end(), [&](const auto& other) {
               return other.second().find(entry.key) != nullptr;
             });
    };
    Node own = node;
    for (const Node::Entry& entry : node.entries())
      if (of_another(entry)) own.erase(entry.key);
    return own;
  }

  std::optional<Node> choice(const Node& node, const Choices& choices, const std::string& name,
                             const Anchor& anchor) {
    if (!node.is_map()) {
      error(node, "expected a map with the keys of " + name + ", got " + description(node));
      return std::nullopt;
    }
    if (const Record* chosen = choices.record_of(node))
      return record(of_its_kind(node, *chosen, choices), *chosen, anchor);
    const std::vector<std::string> names = choices.names();
    const Node* tag = node.find(choices.tag);
    if (tag == nullptr) {
      diagnostics_.error(anchor.origin.location(), anchor.length,
                         "missing key '" + choices.tag + "' in " + name, {}, {allowed(names)});
    } else {
      error(*tag, "no " + choices.tag + " of " + name + " is " + description(*tag),
            tag->is_scalar() ? nearest_name(tag->text(), names) : std::string(), {allowed(names)});
    }
    return std::nullopt;
  }

  std::optional<Node> list(const Node& node, const Type& type) {
    Node completed = Node::sequence(node.origin());
    if (node.is_scalar() && type.element->kind == TypeKind::kText) {  // `algorithms: ring`
      completed.append(node);
      return completed;
    }
    if (!node.is_sequence()) {
      error(node, "expected a list, got " + description(node),
            node.is_scalar() ? "[" + node.text() + "]" : std::string());
      return std::nullopt;
    }
    for (const Node& item : node.items()) {
      auto element = value(item, *type.element, "item", {item.origin(), item.length()});
      if (element) completed.append(std::move(*element));
    }
    return completed;
  }

  std::optional<Node> map(const Node& node, const Type& type, const std::string& name) {
    if (!node.is_map()) {
      error(node, "expected a map, got " + description(node));
      return std::nullopt;
    }
    Node completed = Node::map(node.origin());
    for (const Node::Entry& entry : node.entries()) {
      if (type.names != nullptr && !find_enumerator(*type.names, entry.key)) {
        const std::vector<std::string> names = names_of(*type.names);
        refuse_key(entry, name, names, {allowed(names)});
      } else if (auto element =
                     value(entry.value, *type.element, entry.key, anchor_of(node, entry.key))) {
        completed.set(entry.key, std::move(*element), entry.key_origin);
      }
    }
    return completed;
  }

  std::optional<Node> fact(const Node& node, const Type& type, const std::string& name,
                           const Anchor& anchor) {
    if (!node.is_map()) return value(node, *type.element, name, anchor);
    const std::vector<std::string> names(kFactKeys.begin(), kFactKeys.end());
    for (const Node::Entry& entry : node.entries()) {
      const bool known = std::find(names.begin(), names.end(), entry.key) != names.end();
      if (!known) refuse_key(entry, name, names, {allowed(names)});
    }
    if (node.find("value") == nullptr) {
      diagnostics_.error(anchor.origin.location(), anchor.length, "missing key 'value' in " + name,
                         {}, {allowed(names)});
      return std::nullopt;
    }
    return node;
  }

  Diagnostics& diagnostics_;
  Loader loader_;
};

}  // namespace

Node complete(const Node& node, const Record& record, Diagnostics& diagnostics,
              const Library& library) {
  // A file that could not be read has been reported.
  if (node.is_null() && diagnostics.has_errors()) return {};
  const std::optional<Node> resolved =
      Loader(diagnostics, library).resolve_extends(node, std::string());
  if (!resolved) return {};
  return Completer(diagnostics, library)
      .record(*resolved, record, {resolved->origin()})
      .value_or(Node());
}

}  // namespace orrery::config
