// SPDX-License-Identifier: Apache-2.0
#include "workloads/base/real.h"
#include "workloads/operators/operator.h"
#include "workloads/steps/training/optimizer_step.h"

namespace orrery {
namespace {

struct Optimizer final : OperatorConfig {
  Optimizer() { kind = "optimizer"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    return optimizer_kernels(real(parameters), precision, *default_software());
  }

  std::int64_t parameters = 0;

  static const config::Schema<Optimizer>& schema() {
    using O = Optimizer;
    constexpr double kMostParameters = 1e13;
    static const config::Schema<O> schema =
        operator_schema<O>("optimizer", "update of a rank's parameters")
            .required("parameters", &O::parameters, "parameters that the rank updates",
                      config::between(1, kMostParameters));
    return schema;
  }
};

const RegisterOperator<Optimizer> registered_optimizer(
    "optimizer", "mixed-precision Adam, as Megatron-LM runs it");

}  // namespace
}  // namespace orrery
