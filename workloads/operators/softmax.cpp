// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/operator.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

struct Softmax final : OperatorConfig {
  Softmax() { kind = "softmax"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    const double bytes = activation_bytes(precision);
    return {stream("softmax", KernelClass::kSoftmax, rows, width,
                   {bytes, bytes, vector_cost::kSoftmax})};
  }

  std::int64_t rows = 0, width = 0;

  static const config::Schema<Softmax>& schema() {
    using S = Softmax;
    using config::between;
    static const config::Schema<S> schema =
        operator_schema<S>("softmax", "softmax over rows")
            .required("rows", &S::rows, "independent rows", between(1, operator_limits::kRows))
            .required("width", &S::width, "elements of a row",
                      between(1, operator_limits::kTokens));
    return schema;
  }
};

const RegisterOperator<Softmax> registered_softmax("softmax", "softmax over rows");

}  // namespace
}  // namespace orrery
