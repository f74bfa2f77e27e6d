// SPDX-License-Identifier: Apache-2.0
// An operation of a listed layer is the kernel that `experiment: operator` has for that shape, in
// 16 bits: in others, operators have their results and caches in 16 bits, lists in their own
// format.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/config/library.h"
#include "sim/config/load.h"
#include "workloads/layers/listed/layer_model.h"
#include "workloads/layers/listed/layer_step.h"
#include "workloads/operators/operator.h"

namespace orrery::listed_operators_test {
namespace {

/// A kernel of a list over 64 positions of 16 channels, and an operator's keys.
struct SameKernel {
  const char* layer;
  const char* kernel;
  const char* op;
};
const SameKernel kSame[] = {
    {"{kind: dense, channels: 32}", "matrix", "{kind: gemm, m: 64, n: 32, k: 16}"},
    {"{kind: norm, method: rms}", "norm", "{kind: rms_norm, rows: 64, width: 16}"},
    {"{kind: norm, method: layer}", "norm", "{kind: layer_norm, rows: 64, width: 16}"},
    {"{kind: activation, function: gelu}", "activation",
     "{kind: activation, rows: 64, width: 16, function: gelu}"},
    {"{kind: activation, function: softmax}", "activation", "{kind: softmax, rows: 64, width: 16}"},
    {"{kind: embedding, vocabulary: 100, channels: 32}", "embedding",
     "{kind: embedding, tokens: 64, hidden: 32}"},
    {"{kind: attention, heads: 2}", "attention",
     "{kind: attention_prefill, query: 64, heads: 2, head_dim: 8, causal: false}"},
    {"{kind: transformer, heads: 2, causal: true}", "attention",
     "{kind: attention_prefill, query: 64, heads: 2, head_dim: 8}"},
};

struct Pair {
  LayerModelConfig model;
  config::OneOf<OperatorConfig> op;
  static const config::Schema<Pair>& schema() {
    static const auto schema = config::Schema<Pair>("pair", "of a list and an operator")
                                   .required("model", &Pair::model, "a list")
                                   .required("op", &Pair::op, "an operator");
    return schema;
  }
};

Pair pair_of(const SameKernel& same) {
  config::Diagnostics diagnostics;
  const config::Node node = config::parse_yaml(
      std::string("model: {layer_model: test, input: {channels: 16, rows: 64}, layers: [") +
          same.layer + "]}\nop: " + same.op + "\n",
      "test.yaml", diagnostics);
  auto pair = config::read<Pair>(node, diagnostics, config::default_library());
  diagnostics.throw_if_errors();
  return pair;
}

TEST(ListedOperators, AreTheKernelsOfOperatorsOfThatShape) {
  for (const SameKernel& same : kSame) {
    for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
      const Pair pair = pair_of(same);
      const std::vector<Kernel> listed =
          forward_kernels(pair.model.build({.precision = precision}));
      const auto kernel = std::find_if(listed.begin(), listed.end(), [&](const Kernel& k) {
        return k.name.ends_with(std::string(" ") + same.kernel);
      });
      ASSERT_NE(kernel, listed.end()) << same.layer;
      Kernel wanted = pair.op->kernels(precision).front();
      wanted.name = kernel->name;
      EXPECT_EQ(*kernel, wanted) << same.layer;
    }
  }
}

}  // namespace
}  // namespace orrery::listed_operators_test
