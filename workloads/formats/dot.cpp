// SPDX-License-Identifier: Apache-2.0
// Graphviz's language: a digraph for each block, in a file that dot and its sisters read.
#include <cstddef>
#include <ostream>

#include "sim/graph/dot.h"
#include "workloads/formats/graph_format.h"

namespace orrery {
namespace {

class DotFormat final : public GraphFormat {
 public:
  bool writes() const override { return true; }
  void write(const Program& program, const std::string& name, std::ostream& out) const override {
    for (std::size_t block = 0; block < program.blocks.size(); ++block)
      write_dot(out, program.blocks[block], name + ", " + program.block_names[block]);
  }
};

const GraphFormatRegistry::Register dot("dot", "Graphviz: a digraph for each block of a step",
                                        std::make_shared<DotFormat>());

}  // namespace
}  // namespace orrery
