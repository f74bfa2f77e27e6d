// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/real.h"
#include "workloads/operators/operator.h"
#include "workloads/training/optimizer_step.h"

namespace orrery {
namespace {

enum class OptimizerAlgorithm { kAdam };

}  // namespace

template <>
struct config::EnumNames<OptimizerAlgorithm> {
  static constexpr std::pair<OptimizerAlgorithm, const char*> values[] = {
      {OptimizerAlgorithm::kAdam, "adam"}};
};

namespace {

struct Optimizer final : OperatorConfig {
  Optimizer() { kind = "optimizer"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    return optimizer_kernels(real(parameters), precision);
  }

  std::int64_t parameters = 0;
  OptimizerAlgorithm algorithm = OptimizerAlgorithm::kAdam;

  static const config::Schema<Optimizer>& schema() {
    using O = Optimizer;
    constexpr double kMostParameters = 1e13;
    static const config::Schema<O> schema =
        operator_schema<O>("optimizer", "update of a rank's parameters")
            .required("parameters", &O::parameters, "that the rank updates",
                      config::between(1, kMostParameters))
            .optional("algorithm", &O::algorithm, "fp32 master weights and two moments");
    return schema;
  }
};

const RegisterOperator<Optimizer> registered("optimizer",
                                             "mixed-precision Adam, as Megatron-LM runs it");

}  // namespace
}  // namespace orrery
