// SPDX-License-Identifier: Apache-2.0
// Damaged models: a graph or a ConfigError with the file, and never anything else. The damages
// follow from a seed, so that one that fails is the same at the next run.
#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>

#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/formats/onnx/imported.h"
#include "tests/unit/workloads/formats/onnx/models.h"

namespace orrery::onnx::onnx_mutation_test {
namespace {

std::size_t below(std::mt19937& random, std::size_t limit) {
  return limit == 0 ? 0 : random() % limit;
}

void damage(std::mt19937& random, std::string& text) {
  switch (below(random, 5)) {
    case 0:
      for (std::size_t n = below(random, 8) + 1; n > 0 && !text.empty(); --n)
        text[below(random, text.size())] ^= static_cast<char>(1U << below(random, 8));
      break;
    case 1:
      text.resize(below(random, text.size()));
      break;
    case 2: {  // a part stands twice
      const std::size_t start = below(random, text.size());
      text.insert(start, text.substr(start, below(random, 200)));
      break;
    }
    case 3:
      text.erase(below(random, text.size()), below(random, 20));
      break;
    default:  // a number of 64 bits
      text.replace(below(random, text.size()), below(random, 3),
                   "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  }
}

class DamagedOnnx : public testing::TestWithParam<std::string> {};

TEST_P(DamagedOnnx, GivesAGraphOrAConfigError) {
  constexpr int kRounds = 400;
  std::mt19937 random(20250101);
  int graphs = 0, errors = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string damaged = GetParam();
    for (std::size_t n = below(random, 3) + 1; n > 0; --n) damage(random, damaged);
    try {
      imported(damaged,
               {.dimensions = {{"batch", 2}, {"length", 16}, {"past", 16}, {"total", 32}}});
      ++graphs;
    } catch (const config::ConfigError& error) {
      ++errors;
      EXPECT_NE(std::string(error.what()).find("model.onnx"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(graphs + errors, kRounds);
  EXPECT_GT(errors, 0);
}

/// Control flow, functions, shapes: what the large models lack.
std::string mixed() {
  GraphWriter body;
  body.input("i", {}, kInt64);
  body.input("go", {}, kBool);
  body.input("h", {"batch", 16});
  body.output(body.add("Identity", {"go"}), {}, kBool);
  body.output(body.add("MatMul", {"h", "w"}));
  GraphWriter g;
  g.input("x", {"batch", 16});
  g.weight("w", {16, 16});
  std::string x = g.add("Loop", {g.scalar(3), "", "x"}, {graph("body", body.text())});
  x = g.add("F", {x}, {real("slope", 0.1F)}, 1, "custom");
  const std::string dims = g.add("Slice", {g.add("Shape", {x}), g.constant({0}), g.constant({1})});
  x = g.add("Reshape", {x, g.add("Concat", {dims, g.constant({2, 8})}, {integer("axis", 0)})});
  x = g.add("Softmax", {g.add("Transpose", {x}, {integers("perm", {0, 2, 1})})});
  g.output(
      g.add("TopK", {g.add("Pad", {x, g.constant({0, 1, 0, 0, 1, 0})}), g.constant({1})}, {}, 2));
  const std::string f =
      function("custom", "F", {"a"}, {"b"},
               {node("LeakyRelu", {"a"}, {"b"}, {reference("alpha", "slope")})}, {"slope"});
  return model(g, 17, {f});
}

std::string name_of_case(const testing::TestParamInfo<std::string>& tested) {
  constexpr const char* kNames[] = {"Bert", "Llama", "Mixed"};
  return kNames[tested.index];
}

INSTANTIATE_TEST_SUITE_P(Models, DamagedOnnx,
                         testing::Values(Bert().build(), Llama(1).build(), mixed()), name_of_case);

}  // namespace
}  // namespace orrery::onnx::onnx_mutation_test
