// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/cache_format.h"
#include "workloads/operators/operator.h"

namespace orrery {
namespace {

/// Defaults are the sizes of DeepSeek-V2 and V3 (arXiv 2412.19437, section 4.2).
struct MlaPrefill final : OperatorConfig {
  MlaPrefill() { kind = "mla_prefill"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    AttentionCore core;
    core.kind = KernelClass::kMlaPrefill;
    core.sequences = batch;
    core.heads = core.kv_heads = heads;
    core.query = query;
    core.context = prefix + query;
    core.qk_dim = nope_head_dim + rope_head_dim;
    core.v_dim = v_head_dim;
    read_cache(core, CacheFormat::kByPrecision, precision);
    return {flash_attention(to_string(core.kind), core)};
  }

  std::int64_t batch = 1, query = 0, prefix = 0, heads = 0;
  std::int64_t nope_head_dim = 128, rope_head_dim = 64, v_head_dim = 128;

  static const config::Schema<MlaPrefill>& schema() {
    using A = MlaPrefill;
    using config::between;
    static const config::Schema<A> schema =
        operator_schema<A>("mla_prefill", "multi-head latent attention over prompts")
            .optional("batch", &A::batch, "number of sequences",
                      between(1, operator_limits::kSequences))
            .required("query", &A::query, "new tokens of a sequence",
                      between(1, operator_limits::kTokens))
            .optional("prefix", &A::prefix, "earlier tokens, expanded from the cache before",
                      between(0, operator_limits::kTokens))
            .required("heads", &A::heads, "heads of queries, keys and values",
                      between(1, llm_limits::kHeads))
            .optional("nope_head_dim", &A::nope_head_dim, "columns of a query that are not rotated",
                      between(1, llm_limits::kHeadDim))
            .optional("rope_head_dim", &A::rope_head_dim, "columns of a query that are rotated",
                      between(0, llm_limits::kHeadDim))
            .optional("v_head_dim", &A::v_head_dim, "columns of a value",
                      between(1, llm_limits::kHeadDim));
    return schema;
  }
};

const RegisterOperator<MlaPrefill> registered_mla_prefill(
    "mla_prefill", "latent attention over prompts, keys and values expanded");

}  // namespace
}  // namespace orrery
