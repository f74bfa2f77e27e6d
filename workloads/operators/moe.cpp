// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/layer_kernels.h"
#include "workloads/operators/operator.h"

namespace orrery {
namespace {

struct Moe final : OperatorConfig {
  Moe() { kind = "moe"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    LlmConfig model;
    model.hidden = hidden;
    model.mlp.gated = gated;
    model.moe.experts = experts;
    model.moe.experts_per_token = top_k;
    model.moe.intermediate = expert_ffn;
    model.moe.shared_experts = shared_ffn > 0 ? 1 : 0;
    model.moe.shared_intermediate = shared_ffn;
    return layer_kernels(moe_ops, model, tokens, precision);
  }

  std::int64_t tokens = 0, hidden = 0, expert_ffn = 0, top_k = 0, experts = 0, shared_ffn = 0;
  bool gated = true;

  static const config::Schema<Moe>& schema() {
    using M = Moe;
    using config::between;
    static const config::Schema<M> schema =
        operator_schema<M>("moe", "mixture of experts, all of them on one rank")
            .required("tokens", &M::tokens, "tokens that are routed",
                      between(1, operator_limits::kTokens))
            .required("hidden", &M::hidden, "width of a token", between(1, llm_limits::kHidden))
            .required("expert_ffn", &M::expert_ffn, "width of an expert",
                      between(1, llm_limits::kIntermediate))
            .required("top_k", &M::top_k, "experts of a token", between(1, llm_limits::kExperts))
            .required("experts", &M::experts, "experts to choose from",
                      between(1, llm_limits::kExperts))
            .optional("shared_ffn", &M::shared_ffn, "width of the shared experts; 0: none",
                      between(0, llm_limits::kIntermediate))
            .optional("gated", &M::gated, "experts of three matrices (SwiGLU)")
            .check(
                "top_k experts of a token must be among `experts`",
                [](const M& m) { return m.top_k <= m.experts; }, "top_k");
    return schema;
  }
};

const RegisterOperator<Moe> registered_moe(
    "moe", "mixture of experts: router, permute, up, activation, down, finalise");

}  // namespace
}  // namespace orrery
