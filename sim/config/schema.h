// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/bounds.h"
#include "sim/config/diagnostics.h"
#include "sim/config/fact.h"
#include "sim/config/file_path.h"
#include "sim/config/library.h"
#include "sim/config/node.h"
#include "sim/config/type.h"

namespace orrery::config {

/// One key of a configured struct.
struct Field {
  std::string key;
  std::string help;
  const Type* type = nullptr;
  bool required = false;
  Bounds bounds;
  std::string
      library;  ///< kind of the library folder that a scalar names a file of; empty: no reference
  std::function<void*(void* object)> address;
};

/// A relation between the fields of a struct.
struct Check {
  std::function<std::string(const void* object)> fault;  ///< what is wrong; empty: nothing
  std::vector<std::string> keys;  ///< keys to point to, see place_of(); at least one
};

/// The description of a struct without its C++ type: what all walkers of configurations work on.
class Record {
 public:
  Record(std::string name, std::string help, std::function<std::shared_ptr<void>()> make);

  const std::string& name() const { return name_; }
  const std::string& help() const { return help_; }
  const std::vector<Field>& fields() const { return fields_; }
  const std::vector<Check>& checks() const { return checks_; }
  /// What is left to do to an object whose fields are read and hold; may be empty.
  const std::function<void(void* object)>& derivation() const { return derivation_; }
  const Field* find(std::string_view key) const;
  std::vector<std::string> keys() const;
  /// What helps who wrote a key that the struct does not have, beside the names of those that it
  /// has: "'recompute' is a key of: training".
  std::vector<std::string> notes_on(const std::string& unknown_key) const;
  /// A default-constructed object of the struct.
  std::shared_ptr<void> make() const { return make_(); }

  /// @throws std::logic_error for a key given twice, bounds of another dimension, a reference that
  /// is no struct.
  void add(Field field);
  /// @throws std::logic_error if a key does not begin with one of the fields.
  void add(Check check);
  void set_derivation(std::function<void(void*)> derivation) {
    derivation_ = std::move(derivation);
  }
  void set_elsewhere(std::function<std::vector<std::string>(const std::string&)> elsewhere) {
    elsewhere_ = std::move(elsewhere);
  }

 private:
  std::string name_;
  std::string help_;
  std::function<std::shared_ptr<void>()> make_;
  std::vector<Field> fields_;
  std::vector<Check> checks_;
  std::function<void(void*)> derivation_;
  std::function<std::vector<std::string>(const std::string&)> elsewhere_;
};

/// The one description of a configured struct `T`. From it come reading, checks, defaults (the
/// member initialisers of `T`), `--set`, documentation and the JSON Schema.
template <class T>
class Schema {
 public:
  Schema(std::string name, std::string help)
      : record_(std::move(name), std::move(help), [] { return std::make_shared<T>(); }) {}

  template <class M>
  Schema& required(std::string key, M T::*member, std::string help, Bounds bounds = {}) {
    return add(std::move(key), member, std::move(help), true, bounds);
  }
  /// The default is the member's initialiser.
  template <class M>
  Schema& optional(std::string key, M T::*member, std::string help, Bounds bounds = {}) {
    return add(std::move(key), member, std::move(help), false, bounds);
  }
  /// A required struct that is given inline (with or without `extends:`), as a name of the library
  /// folder `kind`, or as a path.
  template <class M>
  Schema& reference(std::string key, M T::*member, std::string kind, std::string help) {
    return add(std::move(key), member, std::move(help), true, {}, std::move(kind));
  }
  /// The same, but it may be left out.
  template <class M>
  Schema& optional_reference(std::string key, M T::*member, std::string kind, std::string help) {
    return add(std::move(key), member, std::move(help), false, {}, std::move(kind));
  }
  /// The key with which a file of this struct says what it is: `accelerator: h100_sxm`.
  Schema& named(std::string key, std::string T::*member) {
    std::string help = "name of this " + key;
    return add(std::move(key), member, std::move(help), false, {});
  }
  /// A relation that must hold once all fields are read; the error points to `keys`, each a key or
  /// the path of one below it.
  Schema& check(std::string message, std::function<bool(const T&)> holds,
                std::vector<std::string> keys) {
    return check([message = std::move(message), holds = std::move(holds)](
                     const T& object) { return holds(object) ? std::string() : message; },
                 std::move(keys));
  }
  Schema& check(std::string message, std::function<bool(const T&)> holds, const char* key) {
    return check(std::move(message), std::move(holds), std::vector<std::string>{key});
  }
  /// The same with a message that depends on the values: `fault` says what is wrong, or nothing.
  Schema& check(std::function<std::string(const T&)> fault, std::vector<std::string> keys) {
    record_.add(Check{[fault = std::move(fault)](const void* object) {
                        return fault(*static_cast<const T*>(object));
                      },
                      std::move(keys)});
    return *this;
  }
  Schema& check(std::function<std::string(const T&)> fault, const char* key) {
    return check(std::move(fault), std::vector<std::string>{key});
  }
  /// What follows from the fields, such as the figures of a part from its share: `derivation` is
  /// applied once to every object whose fields are read and hold.
  Schema& derive(std::function<void(T&)> derivation) {
    record_.set_derivation([derivation = std::move(derivation)](void* object) {
      derivation(*static_cast<T*>(object));
    });
    return *this;
  }

  /// Names the other structs that have a key which this one lacks.
  Schema& elsewhere(std::function<std::vector<std::string>(const std::string& key)> owners) {
    record_.set_elsewhere(std::move(owners));
    return *this;
  }

  const Record& record() const { return record_; }

 private:
  template <class M>
  Schema& add(std::string key, M T::*member, std::string help, bool required, Bounds bounds,
              std::string library = {}) {
    Field field;
    field.key = std::move(key);
    field.help = std::move(help);
    field.type = &type_of<M>();
    field.required = required;
    field.bounds = bounds;
    field.library = std::move(library);
    field.address = [member](void* object) -> void* { return &(static_cast<T*>(object)->*member); };
    record_.add(std::move(field));
    return *this;
  }

  Record record_;
};

/// Checks `node` against the schema, loads what it references and fills in the defaults (origin
/// "default"). What is wrong goes to `diagnostics`; the result is then incomplete.
Node complete(const Node& node, const Record& record, Diagnostics& diagnostics,
              const Library& library);

/// Fills `object`, a default-constructed struct of `record`, from a completed node.
void fill(void* object, const Node& completed, const Record& record, Diagnostics& diagnostics);

/// Reads a struct. Errors go to `diagnostics`; call throw_if_errors() before using the result.
template <class T>
T read(const Node& node, Diagnostics& diagnostics, const Library& library) {
  const Record& record = T::schema().record();
  T object;
  fill(&object, complete(node, record, diagnostics, library), record, diagnostics);
  return object;
}

}  // namespace orrery::config
