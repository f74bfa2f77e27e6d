// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <memory>
#include <string>

#include "sim/config/registry.h"
#include "sim/graph/program.h"

namespace orrery {

/// A form in which operator graphs stand in files. `graph export --format` names one; a file that
/// derives a class and registers an object of it adds another.
class GraphFormat {
 public:
  virtual ~GraphFormat() = default;

  /// Writes every block of a program, each once however often it is called.
  /// @param name of the whole, for people
  virtual void write(const Program& program, const std::string& name, std::ostream& out) const = 0;
};

using GraphFormatRegistry = Registry<std::shared_ptr<const GraphFormat>>;

}  // namespace orrery
