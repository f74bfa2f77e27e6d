// SPDX-License-Identifier: Apache-2.0
#include "sim/events/structure.h"

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>

namespace orrery {

/// The names inside a module, in the order in which they were first mentioned.
struct Component::Plan {
  std::string name;
  std::vector<Plan> parts;
  std::map<std::string, std::size_t, std::less<>> places;  ///< in parts, by name

  Plan& part(const std::string& part_name) {
    const auto [place, added] = places.try_emplace(part_name, parts.size());
    if (added) parts.push_back({part_name, {}, {}});
    return parts[place->second];
  }
};

// Modules constructed while `name` lives become child modules of this one: it has to be the
// caller's temporary.
Component::Component(const sc_core::sc_module_name& name, const Plan& plan, std::string path)
    : sc_module(name), path_(std::move(path)) {
  for (const Plan& part : plan.parts) {
    parts_.push_back(std::unique_ptr<Component>(
        new Component(part.name.c_str(), part, path_ + "/" + part.name)));
  }
}

Structure::Structure(const std::vector<std::string>& paths) : paths_(paths) {
  Component::Plan plan;
  for (const std::string& path : paths) {
    Component::Plan* at = &plan;
    std::size_t begin = 0;
    while (begin <= path.size()) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      if (end == begin) throw std::logic_error("'" + path + "' is no name of a component");
      at = &at->part(path.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  for (const Component::Plan& root : plan.parts) {
    roots_.push_back(std::unique_ptr<Component>(new Component(root.name.c_str(), root, root.name)));
    index(*roots_.back());
  }
}

void Structure::index(Component& component) {
  by_path_[component.path()] = &component;
  for (const auto& part : component.parts()) index(*part);
}

Structure& Structure::elaborate(const std::vector<std::string>& paths) {
  // Never destroyed: SystemC's own statics may be gone at exit.
  static auto* const structure = new Structure(paths);
  if (structure->paths_ != paths) {
    throw std::logic_error("another machine stands in this process; simulate in one of its own");
  }
  return *structure;
}

}  // namespace orrery
