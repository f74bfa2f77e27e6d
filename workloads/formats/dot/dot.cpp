// SPDX-License-Identifier: Apache-2.0
// Graphviz's language: a digraph for each block, in a file that dot and its sisters read.
#include <fmt/core.h>

#include <cstddef>
#include <ostream>

#include "sim/graph/dot.h"
#include "workloads/formats/dependencies.h"
#include "workloads/formats/dot/imported_dot.h"
#include "workloads/formats/graph_format.h"

namespace orrery {
namespace {

std::string dot_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

void write_dot(const ImportedGraph& graph, const std::string& name, std::ostream& out) {
  out << "digraph \"" << dot_text(name) << "\" {\n  rankdir=LR;\n";
  for (NodeId node = 0; node < graph.size(); ++node) {
    const ImportedNode& of = graph.nodes[node];
    out << "  n" << node << " [label=\"" << dot_text(graph.name(node)) << "@"
        << dot_text(graph.streams[of.stream].name)
        << "\", shape=" << (of.kind > NodeKind::kKernel ? "ellipse" : "box") << "];\n";
  }
  for (NodeId node = 0; node < graph.size(); ++node)
    for (const NodeId next : next_of(graph, node)) out << "  n" << node << " -> n" << next << ";\n";
  out << "}\n";
}

namespace {

class DotFormat final : public GraphFormat {
 public:
  bool writes() const override { return true; }
  void write(const Program& program, const std::string& name, std::ostream& out) const override {
    for (std::size_t block = 0; block < program.blocks.size(); ++block)
      write_dot(out, program.blocks[block], name + ", " + program.block_names[block]);
  }

  bool writes_runs() const override { return true; }
  std::uint64_t write_run(const ImportedRun& run, const Files& files) const override {
    std::uint64_t nodes = 0;
    for (int rank = 0; rank < run.ranks(); ++rank) {
      const std::uint32_t graph = run.graph_of_rank[static_cast<std::size_t>(rank)];
      if (graph == ImportedRun::kAbsent) continue;
      files(fmt::format(".{}.dot", rank), [&](std::ostream& out) {
        write_dot(run.graphs[graph], fmt::format("rank {}", rank), out);
        nodes += run.graphs[graph].size();
      });
    }
    return nodes;
  }
};

const GraphFormatRegistry::Register dot("dot", "Graphviz: a digraph for each block of a step",
                                        std::make_shared<DotFormat>());

}  // namespace
}  // namespace orrery
