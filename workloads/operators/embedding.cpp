// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/operator.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

struct Embedding final : OperatorConfig {
  Embedding() { kind = "embedding"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    const double bytes = activation_bytes(precision);
    return {stream("embedding", KernelClass::kEmbedding, tokens, hidden, {bytes, bytes, 0})};
  }

  std::int64_t tokens = 0, hidden = 0;

  static const config::Schema<Embedding>& schema() {
    using E = Embedding;
    using config::between;
    static const config::Schema<E> schema =
        operator_schema<E>("embedding", "rows of the embedding table")
            .required("tokens", &E::tokens, "rows that are looked up",
                      between(1, operator_limits::kTokens))
            .required("hidden", &E::hidden, "width of a row", between(1, llm_limits::kHidden));
    return schema;
  }
};

const RegisterOperator<Embedding> registered_embedding("embedding", "rows of the embedding table");

}  // namespace
}  // namespace orrery
