// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config/fact.h"
#include "sim/config/file_path.h"
#include "sim/config/node.h"
#include "sim/config/type.h"
#include "sim/units/quantity.h"

namespace orrery::config {

/// The values that a number may take, in SI base units. Of a list, map, optional or Fact it bounds
/// each number.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;  ///< `low` itself is not allowed
  std::optional<Dimension> dimension =
      std::nullopt;  ///< dimension of the limits; none: plain numbers or zero

  bool contains(double value) const {
    return (above_low ? value > low : value >= low) && value <= high;
  }
  /// "between 1 GB/s and 1 PB/s", "at least 1", "above 0"; `dimension` is that of the field.
  std::string text(std::optional<Dimension> field_dimension) const;
  bool unlimited() const { return std::isinf(low) && std::isinf(high); }
};

inline Bounds positive() { return {.low = 0, .above_low = true}; }
inline Bounds at_least(double low) { return {.low = low}; }
inline Bounds between(double low, double high) { return {.low = low, .high = high}; }

template <Dimension D>
Bounds at_least(Quantity<D> low) {
  return {.low = low.base(), .dimension = D};
}
template <Dimension D>
Bounds between(Quantity<D> low, Quantity<D> high) {
  return {.low = low.base(), .high = high.base(), .dimension = D};
}

class Changes;

/// Where a member of an object is, whatever their types.
class MemberAddress {
 public:
  MemberAddress() = default;
  template <class T, class M>
  explicit MemberAddress(M T::*member) : at_(address<T, M>) {
    static_assert(sizeof member == sizeof member_);
    std::memcpy(&member_, &member, sizeof member);
  }
  /// One of the values of a member that is an array.
  template <class T, class V, std::size_t kSize>
  MemberAddress(std::array<V, kSize> T::*member, std::size_t index) : MemberAddress(member) {
    member_ += static_cast<std::ptrdiff_t>(index * sizeof(V));
  }
  void* operator()(void* object) const {
    return at_(part_ != nullptr ? part_(object) : object, member_);
  }
  /// The same member of a part of an object.
  MemberAddress inside(void* (*part)(void* object)) const {
    MemberAddress address = *this;
    address.part_ = part;
    return address;
  }

 private:
  template <class T, class M>
  static void* address(void* object, std::ptrdiff_t bytes) {
    M T::*member = nullptr;
    std::memcpy(&member, &bytes, sizeof member);
    return &(static_cast<T*>(object)->*member);
  }

  void* (*at_)(void* object, std::ptrdiff_t member) = nullptr;
  void* (*part_)(void* object) = nullptr;
  std::ptrdiff_t member_ = 0;  ///< bytes of the pointer to the member
};

/// One key of a configured struct.
struct Field {
  std::string key;
  std::string help;
  const Type* type = nullptr;
  bool required = false;
  Bounds bounds;
  std::string
      library;  ///< kind of the library folder that a scalar names a file of; empty: no reference
  MemberAddress address;
};

/// What a field has beside its key, its help and its type.
struct FieldRules {
  bool required = false;
  Bounds bounds = {};
  std::string_view library = {};
};

/// A fault in how values go together that are valid one by one.
struct Fault {
  std::string text;               ///< empty: nothing is wrong
  std::vector<std::string> keys;  ///< keys to point to, see place_of(); at least one
};

/// A relation between the fields of a struct.
using Check = std::function<Fault(const void* object)>;

/// Another name for a key of a struct, or for one below it: what other software calls it.
struct Alias {
  std::string name;
  std::string path;  ///< "tp", "layout.first"
};

/// Lets values of an object follow those that a what-if changed. `before` is an object of the same
/// struct, as it was.
using Following = std::function<void(void* object, const void* before, const Changes& changes)>;

/// The description of a struct without its C++ type: what all walkers of configurations work on.
class Record {
 public:
  Record(std::string name, std::string help, std::function<std::shared_ptr<void>()> make);
  Record(const Record&);
  Record(Record&&) noexcept;
  Record& operator=(const Record&);
  Record& operator=(Record&&) noexcept;
  ~Record();

  const std::string& name() const { return name_; }
  const std::string& help() const { return help_; }
  const std::vector<Field>& fields() const { return fields_; }
  const std::vector<Check>& checks() const { return checks_; }
  const std::vector<Alias>& aliases() const { return aliases_; }
  /// The path that `name` is another name of; null where it is none.
  const std::string* path_of(std::string_view name) const;
  /// What is left to do to an object whose fields are read and hold; may be empty.
  const std::function<void(void* object)>& derivation() const { return derivation_; }
  /// What a change of one value does to others; may be empty.
  const Following& following() const { return following_; }
  const Field* find(std::string_view key) const;
  std::vector<std::string> keys() const;
  /// What helps who wrote a key that the struct does not have, beside the names of those that it
  /// has: "'recompute' is a key of: training".
  std::vector<std::string> notes_on(const std::string& unknown_key) const;
  /// The key whose value may stand for a map with that key alone: `input: 512` for `input: {fixed:
  /// 512}`. Empty: none.
  const std::string& shorthand() const { return shorthand_; }
  /// A default-constructed object of the struct.
  std::shared_ptr<void> make() const { return make_(); }

  /// @throws std::logic_error for a key given twice, bounds of another dimension, a reference that
  /// is no struct.
  void add(Field field);
  void add(std::string_view key, std::string_view help, const Type& type, const FieldRules& rules,
           MemberAddress address);
  void add(Check check) { checks_.push_back(std::move(check)); }
  /// @throws std::logic_error if a key does not begin with one of the fields.
  void add(std::function<std::string(const void* object)> fault, std::vector<std::string> keys);
  void add(std::string_view message, std::function<bool(const void* object)> holds,
           std::initializer_list<const char*> keys);
  /// Adds fields and checks of a struct that objects of this one hold.
  /// @param inside where an object holds it
  void include(const Record& part, void* (*inside)(void* object));
  /// @throws std::logic_error for a name that is a key, or a path that begins with none.
  void add(Alias alias);
  void set_derivation(std::function<void(void*)> derivation) {
    derivation_ = std::move(derivation);
  }
  void set_following(Following following) { following_ = std::move(following); }
  void set_shorthand(std::string key) { shorthand_ = std::move(key); }
  void set_elsewhere(std::function<std::vector<std::string>(const std::string&)> elsewhere) {
    elsewhere_ = std::move(elsewhere);
  }

 private:
  std::string name_;
  std::string help_;
  std::function<std::shared_ptr<void>()> make_;
  std::vector<Field> fields_;
  std::vector<Check> checks_;
  std::vector<Alias> aliases_;
  std::function<void(void*)> derivation_;
  Following following_;
  std::string shorthand_;
  std::function<std::vector<std::string>(const std::string&)> elsewhere_;
};

/// The one description of a configured struct `T`. From it come reading, checks, defaults (the
/// member initialisers of `T`), `--set`, documentation and the JSON Schema. What does not need `T`
/// is left to Record: hundreds of fields are described, each at the price of a call.
template <class T>
class Schema {
 public:
  Schema(std::string_view name, std::string_view help)
      : Schema(name, help, [] { return std::make_shared<T>(); }) {}
  /// @param make an object with the defaults
  Schema(std::string_view name, std::string_view help, std::function<std::shared_ptr<void>()> make)
      : record_(std::string(name), std::string(help), std::move(make)) {}

  template <class M>
  Schema& required(std::string_view key, M T::*member, std::string_view help, Bounds bounds = {}) {
    return add(key, member, help, {true, bounds, {}});
  }
  /// The default is the member's initialiser.
  template <class M>
  Schema& optional(std::string_view key, M T::*member, std::string_view help, Bounds bounds = {}) {
    return add(key, member, help, {false, bounds, {}});
  }
  /// The same for one value of an array.
  template <class V, std::size_t kSize>
  Schema& optional(std::string_view key, std::array<V, kSize> T::*member, std::size_t index,
                   std::string_view help) {
    record_.add(key, help, type_of<V>(), {}, MemberAddress(member, index));
    return *this;
  }
  /// A required struct that is given inline (with or without `extends:`), as a name of the library
  /// folder `kind`, or as a path.
  template <class M>
  Schema& reference(std::string_view key, M T::*member, std::string_view kind,
                    std::string_view help) {
    return add(key, member, help, {true, {}, kind});
  }
  /// The same, but it may be left out.
  template <class M>
  Schema& optional_reference(std::string_view key, M T::*member, std::string_view kind,
                             std::string_view help) {
    return add(key, member, help, {false, {}, kind});
  }
  /// The key with which a file of this struct says what it is: `accelerator: h100_sxm`.
  Schema& named(std::string_view key, std::string T::*member) {
    return add(key, member, "name of this " + std::string(key), {});
  }
  /// A relation that must hold once all fields are read; the error points to `keys`, each a key or
  /// the path of one below it.
  Schema& check(std::string_view message, std::function<bool(const T&)> holds,
                std::initializer_list<const char*> keys) {
    record_.add(
        message,
        [holds = std::move(holds)](const void* object) {
          return holds(*static_cast<const T*>(object));
        },
        keys);
    return *this;
  }
  Schema& check(std::string_view message, std::function<bool(const T&)> holds, const char* key) {
    return check(message, std::move(holds), {key});
  }
  /// The same with a message that depends on the values: `fault` says what is wrong, or nothing.
  Schema& check(std::function<std::string(const T&)> fault, std::vector<std::string> keys) {
    record_.add([fault = std::move(fault)](
                    const void* object) { return fault(*static_cast<const T*>(object)); },
                std::move(keys));
    return *this;
  }
  Schema& check(std::function<std::string(const T&)> fault, const char* key) {
    return check(std::move(fault), std::vector<std::string>{key});
  }
  /// The same where the keys to point to depend on the values, too.
  Schema& check(std::function<Fault(const T&)> fault) {
    record_.add(Check([fault = std::move(fault)](const void* object) {
      return fault(*static_cast<const T*>(object));
    }));
    return *this;
  }
  /// See Record::include().
  Schema& include(const Record& part, void* (*inside)(void* object)) {
    record_.include(part, inside);
    return *this;
  }
  /// What follows from the fields, such as the figures of a part from its share: `derivation` is
  /// applied once to every object whose fields are read and hold.
  Schema& derive(std::function<void(T&)> derivation) {
    record_.set_derivation([derivation = std::move(derivation)](void* object) {
      derivation(*static_cast<T*>(object));
    });
    return *this;
  }

  /// Which values follow others that a what-if changes: `--set`, an axis, or a value without a
  /// source in a file that `extends` another. Applied before checks of this struct, after those of
  /// the structs in it.
  Schema& follow(std::function<void(T&, const T& before, const Changes&)> following) {
    record_.set_following([following = std::move(following)](void* object, const void* before,
                                                             const Changes& changes) {
      following(*static_cast<T*>(object), *static_cast<const T*>(before), changes);
    });
    return *this;
  }

  /// Another name of the key at `path`, for who knows the one of other software.
  Schema& alias(std::string_view name, std::string_view path) {
    record_.add(Alias{std::string(name), std::string(path)});
    return *this;
  }

  /// See Record::shorthand().
  Schema& shorthand(std::string_view key) {
    record_.set_shorthand(std::string(key));
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
  Schema& add(std::string_view key, M T::*member, std::string_view help, const FieldRules& rules) {
    record_.add(key, help, type_of<M>(), rules, MemberAddress(member));
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

/// fill(), which also tells how many of the errors that it reports are broken relations: values
/// that are right one by one, but not together.
int fill_and_count_broken_relations(void* object, const Node& completed, const Record& record,
                                    Diagnostics& diagnostics);

}  // namespace orrery::config
