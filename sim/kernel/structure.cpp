// SPDX-License-Identifier: Apache-2.0
#include "sim/kernel/structure.h"

#include <algorithm>
#include <stdexcept>

namespace orrery {

/// The names inside a module, in the order in which they were first mentioned.
struct Component::Plan {
  std::string name;
  std::vector<Plan> parts;

  Plan& part(const std::string& part_name) {
    // A machine lists neighbours next to each other, so the last part is nearly always the one.
    const auto found = std::find_if(parts.rbegin(), parts.rend(),
                                    [&](const Plan& part) { return part.name == part_name; });
    if (found != parts.rend()) return *found;
    parts.push_back({part_name, {}});
    return parts.back();
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

Picoseconds Component::total_busy() const {
  Picoseconds total = busy;
  for (const auto& part : parts_) total += part->total_busy();
  return total;
}

double Component::total_sent() const {
  double total = sent;
  for (const auto& part : parts_) total += part->total_sent();
  return total;
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
  for (auto& [path, component] : structure->by_path_) {
    component->busy = 0;
    component->sent = 0;
  }
  return *structure;
}

}  // namespace orrery
