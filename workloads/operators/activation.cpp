// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/operator.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

enum class GatedActivation { kSwiGlu, kGelu };

}  // namespace

template <>
struct config::EnumNames<GatedActivation> {
  static constexpr std::pair<GatedActivation, const char*> values[] = {
      {GatedActivation::kSwiGlu, "swiglu"}, {GatedActivation::kGelu, "gelu"}};
};

namespace {

struct Activation final : OperatorConfig {
  Activation() { kind = "activation"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    return {activation("activation", precision, rows, width, function == GatedActivation::kSwiGlu)};
  }

  std::int64_t rows = 0, width = 0;
  GatedActivation function = GatedActivation::kSwiGlu;

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
