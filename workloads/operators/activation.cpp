// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/operator.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

enum class ActivationFunction { kSwiGlu, kGelu };

}  // namespace

template <>
struct config::EnumNames<ActivationFunction> {
  static constexpr std::pair<ActivationFunction, const char*> values[] = {
      {ActivationFunction::kSwiGlu, "swiglu"}, {ActivationFunction::kGelu, "gelu"}};
};

namespace {

struct Activation final : OperatorConfig {
  Activation() { kind = "activation"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    return {
        activation("activation", precision, rows, width, function == ActivationFunction::kSwiGlu)};
  }

  std::int64_t rows = 0, width = 0;
  ActivationFunction function = ActivationFunction::kSwiGlu;

  static const config::Schema<Activation>& schema() {
    using A = Activation;
    using config::between;
    static const config::Schema<A> schema =
        operator_schema<A>("activation", "the function between the matrices of an MLP")
            .required("rows", &A::rows, "rows: tokens", between(1, operator_limits::kRows))
            .required("width", &A::width, "columns of the result",
                      between(1, llm_limits::kIntermediate))
            .optional("function", &A::function, "swiglu reads twice the width: gate and up");
    return schema;
  }
};

const RegisterOperator<Activation> registered_activation("activation", "SwiGLU or GELU over rows");

}  // namespace
}  // namespace orrery
