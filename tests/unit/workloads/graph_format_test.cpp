// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_format.h"
#include "sim/config/diagnostics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace orrery::graph_format_test {
namespace {

/// Number of places where `part` stands in `text`.
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

Operator on_stream(StreamId stream, const std::string& name) {
  Operator op;
  op.name = name;
  op.stream = stream;
  return op;
}

TEST(GraphFormats, DotHasADigraphForEachBlockAndAnEdgeForEachDependency) {
  Program program;
  OperatorGraph forward, backward;
  forward.add(on_stream(0, "qkv"));
  forward.depends(forward.add(on_stream(1, "reduce")), 0);
  backward.add(on_stream(0, "dgrad"));
  program.blocks = {forward, backward};
  program.block_names = {"forward", "backward"};
  program.roles = {{"rank", {0, 0, 0, 1}, {0}}};
  std::ostringstream out;
  GraphFormatRegistry::at("graph format", "dot")->write(program, "step", out);
  EXPECT_EQ(count(out.str(), "digraph"), 2U) << "blocks, not calls";
  EXPECT_EQ(count(out.str(), "->"), 1U);
  EXPECT_EQ(count(out.str(), "label=\"step, backward\""), 1U);
}

TEST(GraphFormats, AnUnknownNameIsRefusedWithTheKnownOnes) {
  try {
    GraphFormatRegistry::at("graph format", "dott", "--format");
    FAIL() << "no error";
  } catch (const config::KeyError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(
        text.starts_with("--format: unknown graph format 'dott'; did you mean 'dot'?; there are: "))
        << text;
  }
}

}  // namespace
}  // namespace orrery::graph_format_test
