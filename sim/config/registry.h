// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

/// @param what what the name is of
/// @param names the names that exist
/// @throws config::KeyError of the key at `path`
[[noreturn]] void refuse_name(const std::string& what, const std::string& name,
                              const std::string& path, const std::vector<std::string>& names);

/// Implementations by the name that configurations use. A file adds itself with one static Register
/// object; the map is ordered, so neither listings nor ties depend on link order.
template <class Entry>
class Registry {
 public:
  struct Item {
    std::string help;  ///< one line, for `describe`
    Entry entry;
  };

  /// `static const Registry<E>::Register ring("ring", "one line of help", entry);`
  /// @throws std::logic_error for a name that is registered twice
  struct Register {
    Register(const std::string& name, std::string help, Entry entry) {
      if (!mutable_items().emplace(name, Item{std::move(help), std::move(entry)}).second)
        throw std::logic_error("registered twice: " + name);
    }
    /// The same entry by several names, which nobody lists.
    Register(std::initializer_list<const char*> names, const Entry& entry) {
      for (const char* name : names) Register(name, std::string(), entry);
    }
  };

  static const std::map<std::string, Item>& items() { return mutable_items(); }

  /// The entry of a name; null: nothing is called so.
  static const Entry* find(const std::string& name) {
    const auto found = items().find(name);
    return found == items().end() ? nullptr : &found->second.entry;
  }

  /// @param what what the name is of, for the message: "topology"
  /// @param path the key that says it, from the top of an experiment; empty: `what`
  /// @throws config::KeyError listing the names that exist.
  static const Entry& at(const std::string& what, const std::string& name,
                         const std::string& path = {}) {
    if (const Entry* found = find(name)) return *found;
    std::vector<std::string> names;
    for (const auto& [other, item] : items()) names.push_back(other);
    refuse_name(what, name, path.empty() ? what : path, names);
  }

 private:
  /// Made at its first use, because files register while statics are initialised.
  static std::map<std::string, Item>& mutable_items() {
    static std::map<std::string, Item> items;
    return items;
  }
};

}  // namespace orrery
