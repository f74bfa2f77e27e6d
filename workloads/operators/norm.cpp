// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/operator.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

template <bool kBias>
struct Norm final : OperatorConfig {
  static constexpr const char* kName = kBias ? "layer_norm" : "rms_norm";

  Norm() { kind = kName; }

  std::vector<Kernel> kernels(Precision precision) const override {
    return {norm(kName, precision, {rows, width, kBias, residual})};
  }

  std::int64_t rows = 0, width = 0;
  bool residual = false;

  static const config::Schema<Norm>& schema() {
    using config::between;
    static const config::Schema<Norm> schema =
        operator_schema<Norm>(kName, "a norm over rows")
            .required("rows", &Norm::rows, "rows: tokens", between(1, operator_limits::kRows))
            .required("width", &Norm::width, "elements of a row", between(1, llm_limits::kHidden))
            .optional("residual", &Norm::residual,
                      "adds the residual first and writes the sum as well");
    return schema;
  }
};

const RegisterOperator<Norm<false>> rms_norm("rms_norm", "x / rms(x) * weight over rows");
const RegisterOperator<Norm<true>> layer_norm("layer_norm",
                                              "(x - mean) / deviation * weight + bias over rows");

}  // namespace
}  // namespace orrery
