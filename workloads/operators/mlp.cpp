// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/layer_kernels.h"
#include "workloads/operators/operator.h"
#include "workloads/ops/fusion.h"

namespace orrery {
namespace {

struct Mlp final : OperatorConfig {
  Mlp() { kind = "mlp"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    std::vector<Kernel> layer = unfused_kernels(precision);
    return fused_epilogue ? kernels_of(fuse(chain(layer))) : layer;
  }
  std::vector<Kernel> unfused_kernels(Precision precision) const override {
    LlmConfig model;
    model.hidden = hidden;
    model.mlp.intermediate = intermediate;
    model.mlp.gated = gated;
    return layer_kernels(mlp_ops, model, tokens, precision);
  }

  std::int64_t tokens = 0, hidden = 0, intermediate = 0;
  bool gated = true, fused_epilogue = false;

  static const config::Schema<Mlp>& schema() {
    using M = Mlp;
    using config::between;
    static const config::Schema<M> schema =
        operator_schema<M>("mlp", "the two or three matrices of a dense layer")
            .required("tokens", &M::tokens, "rows of the products",
                      between(1, operator_limits::kTokens))
            .required("hidden", &M::hidden, "width of a token", between(1, llm_limits::kHidden))
            .required("intermediate", &M::intermediate, "width between the matrices",
                      between(1, llm_limits::kIntermediate))
            .optional("gated", &M::gated, "SwiGLU: gate and up; false: GELU of one matrix")
            .optional("fused_epilogue", &M::fused_epilogue,
                      "the activation works on the product's results before they leave the chip");
    return schema;
  }
};

const RegisterOperator<Mlp> registered_mlp("mlp", "dense MLP: up, activation, down");

}  // namespace
}  // namespace orrery
