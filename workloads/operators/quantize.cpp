// SPDX-License-Identifier: Apache-2.0
#include "sim/config/diagnostics.h"
#include "workloads/operators/operator.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

struct Quantize final : OperatorConfig {
  Quantize() { kind = "quantize"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    if (element_bytes(precision) >= 2) {
      throw config::KeyError(
          std::vector<std::string>{"precision", "operator.kind"},
          "of the operator quantize it is the format to quantise to, one of 8 bits or fewer, not " +
              std::string(to_string(precision)));
    }
    return {quantize("quantize", precision, rows, width)};
  }

  std::int64_t rows = 0, width = 0;

  static const config::Schema<Quantize>& schema() {
    using Q = Quantize;
    using config::between;
    static const config::Schema<Q> schema =
        operator_schema<Q>("quantize", "16-bit activations to the experiment's precision")
            .required("rows", &Q::rows, "rows: tokens", between(1, operator_limits::kRows))
            .required("width", &Q::width, "elements of a row", between(1, operator_limits::kRows));
    return schema;
  }
};

const RegisterOperator<Quantize> registered_quantize(
    "quantize", "16-bit activations to the experiment's precision");

}  // namespace
}  // namespace orrery
