// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/schema.h"

namespace orrery::config {

/// The structs with keys of their own that a map of a configuration may be: what OneOf<Base> asks
/// for, filled by one object in the file of each. `Base` has a member `std::string` that the tag
/// fills, and
/// @code
/// static const config::Choices& choices() { return config::Registered<Base>::choices("kind", "");
/// } static const Base* view(const std::string& name, void* object) {
///   return config::Registered<Base>::view(name, object);
/// }
/// @endcode
template <class Base>
class Registered {
 public:
  struct Item {
    std::string help;     ///< one line
    std::string telling;  ///< key that only such a map has, which may leave its tag out; or none
    const Record& (*record)() = nullptr;
    Base* (*view)(void* object) = nullptr;
  };

  /// `const Registered<Base>::Add<T> added("name", "one line of help");`, where T derives from Base
  /// and has `static const Schema<T>& schema()`. A third text is a key that tells such a map.
  template <class T>
  struct Add {
    Add(const std::string& name, std::string help, std::string telling = {}) {
      const Item item{std::move(help), std::move(telling),
                      []() -> const Record& { return T::schema().record(); },
                      [](void* object) -> Base* { return static_cast<T*>(object); }};
      if (!mutable_items().emplace(name, item).second)
        throw std::logic_error("registered twice: " + name);
    }
  };

  static const std::map<std::string, Item>& items() { return mutable_items(); }

  /// @param tag the key that names the struct
  /// @param fallback of a map that does not say; may be empty
  static const Choices& choices(const std::string& tag, const std::string& fallback) {
    static const Choices all = [&] {
      Choices made{.tag = tag, .fallback = fallback, .records = {}};
      for (const auto& [name, item] : items()) {
        made.records.emplace(name, item.record);
        if (!item.telling.empty()) made.telling.emplace(item.telling, name);
      }
      return made;
    }();
    return all;
  }

  /// Names of those that have a key, for Schema::elsewhere().
  static std::vector<std::string> with_key(const std::string& key) {
    std::vector<std::string> names;
    for (const auto& [name, item] : items())
      if (item.record().find(key) != nullptr) names.push_back(name);
    return names;
  }

  static Base* view(const std::string& name, void* object) { return items().at(name).view(object); }

 private:
  /// Made at its first use, because files register while statics are initialised.
  static std::map<std::string, Item>& mutable_items() {
    static std::map<std::string, Item> items;
    return items;
  }
};

}  // namespace orrery::config
