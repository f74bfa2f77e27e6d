// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

namespace orrery {

/// A part of the machine as a SystemC module: a system, node, accelerator, die or switch, with the
/// parts inside it as child modules. What is finer than that, and what is counted, lives in flat
/// arrays, because a module costs a kilobyte.
class Component final : public sc_core::sc_module {
 public:
  /// "system0/node1/accelerator3"; SystemC calls it system0.node1.accelerator3.
  const std::string& path() const { return path_; }
  const std::vector<std::unique_ptr<Component>>& parts() const { return parts_; }

 private:
  friend class Structure;
  struct Plan;
  Component(const sc_core::sc_module_name& name, const Plan& plan, std::string path);

  std::string path_;
  std::vector<std::unique_ptr<Component>> parts_;
};

/// The machine of this process as SystemC modules. There is one: modules cannot be added once time
/// has run.
class Structure {
 public:
  /// Elaborates modules for hierarchical names ("system0/node1/accelerator3"); what is above a name
  /// is made too. Does nothing for the machine that stands already.
  /// @throws std::logic_error for another machine than the one that stands, or an invalid name.
  static Structure& elaborate(const std::vector<std::string>& paths);

  const std::vector<std::unique_ptr<Component>>& roots() const { return roots_; }
  /// @throws std::out_of_range
  Component& at(const std::string& path) const { return *by_path_.at(path); }

 private:
  explicit Structure(const std::vector<std::string>& paths);
  void index(Component& component);

  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<Component>> roots_;
  std::map<std::string, Component*> by_path_;
};

}  // namespace orrery
