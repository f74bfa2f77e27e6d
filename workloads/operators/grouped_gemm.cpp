// SPDX-License-Identifier: Apache-2.0
#include "workloads/base/real.h"
#include "workloads/operators/operator.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

struct GroupedGemm final : OperatorConfig {
  GroupedGemm() { kind = "grouped_gemm"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    return {grouped_gemm("grouped gemm", precision, {real(experts), real(rows), n, k})};
  }

  std::int64_t experts = 0, rows = 0, n = 0, k = 0;

  static const config::Schema<GroupedGemm>& schema() {
    using G = GroupedGemm;
    using config::between;
    static const config::Schema<G> schema =
        operator_schema<G>("grouped_gemm", "a product for each expert")
            .required("experts", &G::experts,
                      "experts that have rows, each with its own k x n weights",
                      between(1, llm_limits::kExperts))
            .required("rows", &G::rows, "rows of all experts together",
                      between(1, operator_limits::kRows))
            .required("n", &G::n, "columns of the result", between(1, operator_limits::kRows))
            .required("k", &G::k, "summed dimension", between(1, operator_limits::kRows));
    return schema;
  }
};

const RegisterOperator<GroupedGemm> registered_grouped_gemm(
    "grouped_gemm", "products of experts, each with its share of rows");

}  // namespace
}  // namespace orrery
