// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/operator.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

struct Rotary final : OperatorConfig {
  Rotary() { kind = "rotary"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    const std::int64_t all = heads + (kv_heads > 0 ? kv_heads : heads);
    return {rotate("rotary", precision, tokens, all * head_dim)};
  }

  std::int64_t tokens = 0, heads = 0, kv_heads = 0, head_dim = 128;

  static const config::Schema<Rotary>& schema() {
    using R = Rotary;
    using config::between;
    static const config::Schema<R> schema =
        operator_schema<R>("rotary", "rotary positions of queries and keys")
            .required("tokens", &R::tokens, "rows: tokens", between(1, operator_limits::kTokens))
            .required("heads", &R::heads, "heads of queries", between(1, llm_limits::kHeads))
            .optional("kv_heads", &R::kv_heads, "heads of keys; 0: as many as heads",
                      between(0, llm_limits::kHeads))
            .optional("head_dim", &R::head_dim, "width of a head",
                      between(1, llm_limits::kHeadDim));
    return schema;
  }
};

const RegisterOperator<Rotary> registered_rotary("rotary", "rotary positions of queries and keys");

}  // namespace
}  // namespace orrery
