// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/operator.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

struct CrossEntropy final : OperatorConfig {
  CrossEntropy() { kind = "cross_entropy"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    return {cross_entropy("cross entropy", precision, tokens, vocabulary)};
  }

  std::int64_t tokens = 0, vocabulary = 0;

  static const config::Schema<CrossEntropy>& schema() {
    using C = CrossEntropy;
    using config::between;
    static const config::Schema<C> schema =
        operator_schema<C>("cross_entropy", "loss of logits, probabilities kept in fp32")
            .required("tokens", &C::tokens, "rows of logits", between(1, operator_limits::kTokens))
            .required("vocabulary", &C::vocabulary, "columns of logits",
                      between(1, llm_limits::kVocabulary));
    return schema;
  }
};

const RegisterOperator<CrossEntropy> registered_cross_entropy("cross_entropy",
                                                              "loss of logits over a vocabulary");

}  // namespace
}  // namespace orrery
