// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/config/file_path.h"
#include "sim/config/node.h"
#include "sim/units/quantity.h"

namespace orrery::config {

class Record;

/// Name and value of each enumerator, in the order of EnumNames.
using EnumTable = std::vector<std::pair<std::string, std::int64_t>>;

/// A leaf in transit between YAML and a member: real numbers and quantities, integers and
/// enumerators, flags, texts.
using Scalar = std::variant<double, std::int64_t, bool, std::string>;

enum class TypeKind {
  kQuantity,
  kReal,
  kInteger,
  kFlag,
  kText,
  kEnum,
  kPath,
  kNode,  ///< any YAML, kept as it is written
  kList,
  kMap,
  kOptional,
  kFact,
  kRecord,
  kChoice,  ///< one of several structs: see OneOf
};

/// The structs that a map may be, by the word that its key `tag` says. Each of them has that key.
struct Choices {
  std::string tag;       ///< key that tells the struct: "kind"
  std::string fallback;  ///< word of a map that does not say
  std::map<std::string, std::function<const Record&()>> records;
  /// Words of maps that do not say, but have such a key.
  std::map<std::string, std::string> telling = {};

  std::vector<std::string> names() const;
  /// What a map is called ("gemm"); empty where the tag is no scalar.
  std::string name_in(const Node& node) const;
  /// The struct of that map; null where there is none of that name.
  const Record* record_of(const Node& node) const;
};

/// A value of one of several structs that derive from `Base`, which has
///  - `static const Choices& choices()`
///  - `static const Base* view(const std::string& name, void* object)`: the base of such a struct.
/// As a default it is empty.
template <class Base>
struct OneOf {
  std::string name;
  std::shared_ptr<const Base> object;
  const Base* operator->() const { return object.get(); }
};

/// The description of a member's C++ type that every walker of configurations (reading, defaults,
/// documentation) works on, so that templates end here. The functions take the address of a value
/// of that type.
struct Type {
  TypeKind kind = TypeKind::kText;
  Dimension dimension{};                 ///< kQuantity: dimension of the value
  std::int64_t lowest = 0, highest = 0;  ///< kInteger: range of the C++ type
  const EnumTable* names = nullptr;      ///< kEnum; kMap: of the keys, null for text keys
  const Type* element = nullptr;         ///< kList, kMap, kOptional, kFact
  /// kRecord; late, because a record's schema names its members' types.
  const Record& (*record)() = nullptr;

  void (*store)(void* value, const Scalar& scalar) = nullptr;  ///< leaves: stores the scalar
  Scalar (*load)(const void* value) = nullptr;  ///< leaves: the scalar that the value has

  const Choices& (*choices)() = nullptr;  ///< kChoice: the structs to choose from
  /// kChoice: makes the struct of that name.
  void* (*choose)(void* value, const std::string& name) = nullptr;

  void (*assign)(void* value, const Node& node) = nullptr;  ///< kNode: keeps the node as the value
  void (*clear)(void* value) = nullptr;                     ///< kList, kMap, kOptional
  /// kList and kOptional, which ignore the key, and kMap.
  void* (*append)(void* value, const Scalar& key) = nullptr;
  std::vector<std::pair<Scalar, const void*>> (*children)(const void* value) = nullptr;

  /// kFact: its value, its nameplate (made if `make`, else null when absent), its texts by key.
  void* (*fact_value)(void* fact) = nullptr;
  void* (*fact_nameplate)(void* fact, bool make) = nullptr;
  std::string* (*fact_text)(void* fact, std::string_view key) = nullptr;
};

namespace detail {

std::shared_ptr<void> make_object(const Record& record);

template <class M>
struct TypeOf;

template <class M, class S>
Type leaf(TypeKind kind) {
  Type type;
  type.kind = kind;
  type.store = [](void* value, const Scalar& scalar) {
    *static_cast<M*>(value) = static_cast<M>(std::get<S>(scalar));
  };
  type.load = [](const void* value) -> Scalar {
    return static_cast<S>(*static_cast<const M*>(value));
  };
  return type;
}

template <class I>
Type integer() {
  Type type = leaf<I, std::int64_t>(TypeKind::kInteger);
  type.lowest = std::numeric_limits<I>::min();
  type.highest = std::numeric_limits<I>::max();
  return type;
}

template <class E>
const EnumTable& enum_table() {
  static const EnumTable table = [] {
    EnumTable names;
    for (const auto& [value, name] : EnumNames<E>::values) {
      names.emplace_back(name, static_cast<std::int64_t>(value));
    }
    return names;
  }();
  return table;
}

template <class M>
concept HasSchema = requires {
  { M::schema() } -> std::same_as<const Schema<M>&>;
};

}  // namespace detail

/// The description of `M`; the same object for every member of that type.
template <class M>
const Type& type_of() {
  static const Type type = detail::TypeOf<M>::make();
  return type;
}

namespace detail {

template <class M>
struct TypeOf {
  static Type make() {
    if constexpr (std::is_enum_v<M>) {
      Type type = leaf<M, std::int64_t>(TypeKind::kEnum);
      type.names = &enum_table<M>();
      return type;
    } else if constexpr (std::is_same_v<M, bool>) {
      return leaf<bool, bool>(TypeKind::kFlag);
    } else if constexpr (std::is_same_v<M, int> || std::is_same_v<M, std::int64_t>) {
      return integer<M>();
    } else if constexpr (std::is_same_v<M, double>) {
      return leaf<double, double>(TypeKind::kReal);
    } else if constexpr (std::is_same_v<M, std::string>) {
      return leaf<std::string, std::string>(TypeKind::kText);
    } else {
      static_assert(HasSchema<M>, "a configured struct needs `static const Schema<M>& schema()`");
      Type type;
      type.kind = TypeKind::kRecord;
      type.record = []() -> const Record& { return M::schema().record(); };
      return type;
    }
  }
};

template <Dimension D>
struct TypeOf<Quantity<D>> {
  static Type make() {
    Type type;
    type.kind = TypeKind::kQuantity;
    type.dimension = D;
    type.store = [](void* value, const Scalar& scalar) {
      *static_cast<Quantity<D>*>(value) = Quantity<D>(std::get<double>(scalar));
    };
    type.load = [](const void* value) -> Scalar {
      return static_cast<const Quantity<D>*>(value)->base();
    };
    return type;
  }
};

template <>
struct TypeOf<FilePath> {
  static Type make();
};
/// YAML that is kept as it is, for who holds it to interpret.
template <>
struct TypeOf<Node> {
  static Type make();
};

template <class Base>
struct TypeOf<OneOf<Base>> {
  static Type make() {
    Type type;
    type.kind = TypeKind::kChoice;
    type.choices = &Base::choices;
    type.choose = [](void* value, const std::string& name) -> void* {
      const std::shared_ptr<void> made = make_object(Base::choices().records.at(name)());
      auto& one = *static_cast<OneOf<Base>*>(value);
      one.name = name;
      one.object = std::shared_ptr<const Base>(made, Base::view(name, made.get()));
      return made.get();
    };
    return type;
  }
};

template <class M>
struct TypeOf<std::vector<M>> {
  static_assert(!std::is_same_v<M, bool>, "std::vector<bool> has no addressable elements");
  static Type make() {
    Type type;
    type.kind = TypeKind::kList;
    type.element = &type_of<M>();
    type.clear = [](void* value) { static_cast<std::vector<M>*>(value)->clear(); };
    type.append = [](void* value, const Scalar&) -> void* {
      return &static_cast<std::vector<M>*>(value)->emplace_back();
    };
    type.children = [](const void* value) {
      std::vector<std::pair<Scalar, const void*>> children;
      for (const M& item : *static_cast<const std::vector<M>*>(value)) {
        children.emplace_back(static_cast<std::int64_t>(children.size()), &item);
      }
      return children;
    };
    return type;
  }
};

template <class K, class M>
struct TypeOf<std::map<K, M>> {
  static_assert(std::is_enum_v<K> || std::is_same_v<K, std::string>);
  using KeyScalar = std::conditional_t<std::is_enum_v<K>, std::int64_t, std::string>;
  static Type make() {
    Type type;
    type.kind = TypeKind::kMap;
    type.element = &type_of<M>();
    if constexpr (std::is_enum_v<K>) type.names = &enum_table<K>();
    type.clear = [](void* value) { static_cast<std::map<K, M>*>(value)->clear(); };
    type.append = [](void* value, const Scalar& key) -> void* {
      return &(*static_cast<std::map<K, M>*>(value))[static_cast<K>(std::get<KeyScalar>(key))];
    };
    type.children = [](const void* value) {
      std::vector<std::pair<Scalar, const void*>> children;
      for (const auto& [key, item] : *static_cast<const std::map<K, M>*>(value)) {
        children.emplace_back(static_cast<KeyScalar>(key), &item);
      }
      return children;
    };
    return type;
  }
};

template <class M>
struct TypeOf<std::optional<M>> {
  static Type make() {
    Type type;
    type.kind = TypeKind::kOptional;
    type.element = &type_of<M>();
    type.clear = [](void* value) { static_cast<std::optional<M>*>(value)->reset(); };
    type.append = [](void* value, const Scalar&) -> void* {
      return &static_cast<std::optional<M>*>(value)->emplace();
    };
    type.children = [](const void* value) {
      const auto& optional = *static_cast<const std::optional<M>*>(value);
      std::vector<std::pair<Scalar, const void*>> children;
      if (optional) children.emplace_back(std::int64_t{0}, &*optional);
      return children;
    };
    return type;
  }
};

template <class M>
struct TypeOf<Fact<M>> {
  static Type make() {
    Type type;
    type.kind = TypeKind::kFact;
    type.element = &type_of<M>();
    type.fact_value = [](void* fact) -> void* { return &static_cast<Fact<M>*>(fact)->value; };
    type.fact_nameplate = [](void* fact, bool make) -> void* {
      auto& nameplate = static_cast<Fact<M>*>(fact)->nameplate;
      if (make) nameplate.emplace();
      return nameplate ? &*nameplate : nullptr;
    };
    type.fact_text = [](void* fact, std::string_view key) -> std::string* {
      auto& f = *static_cast<Fact<M>*>(fact);
      return key == "source" ? &f.source : key == "reason" ? &f.reason : &f.nameplate_source;
    };
    return type;
  }
};

}  // namespace detail

}  // namespace orrery::config
