// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/operators/cache_format.h"
#include "workloads/operators/chosen_keys.h"

namespace orrery {
namespace {

/// Absorbed latent attention of each token to those that it has chosen. Defaults are the sizes of
/// DeepSeek-V3.2 (its config.json: index_topk, kv_lora_rank, qk_rope_head_dim).
struct SparseMla final : OperatorConfig, ChosenKeys {
  SparseMla() {
    kind = "sparse_attention";
    top_k = 2048;
  }

  std::vector<Kernel> kernels(Precision precision) const override {
    AttentionCore cache;
    read_cache(cache, kv_precision, precision);
    return {chosen_attention(seen(),
                             {.groups = 1,
                              .heads = heads,
                              .qk_dim = kv_lora_rank + rope_head_dim,
                              .v_dim = kv_lora_rank,
                              .latent = true,
                              .cache_bytes = cache.cache_bytes},
                             unquantised(precision))};
  }

  std::int64_t heads = 0, kv_lora_rank = 512, rope_head_dim = 64;
  CacheFormat kv_precision = CacheFormat::kByPrecision;

  static const config::Schema<SparseMla>& schema() {
    using A = SparseMla;
    using config::between;
    static const auto schema =
        chosen_schema<A>("sparse_attention", "latent attention to chosen tokens")
            .required("heads", &A::heads, "heads of queries", between(1, llm_limits::kHeads))
            .optional("top_k", static_cast<std::int64_t A::*>(&ChosenKeys::top_k),
                      "tokens that each attends to at most", between(1, llm_limits::kTokens))
            .optional("kv_lora_rank", &A::kv_lora_rank, "columns of the latent",
                      between(1, llm_limits::kHeadDim))
            .optional("rope_head_dim", &A::rope_head_dim, "columns of the shared rotary key",
                      between(0, llm_limits::kHeadDim))
            .optional("kv_precision", &A::kv_precision, kCacheFormatHelp);
    return schema;
  }
};

const RegisterOperator<SparseMla> registered_sparse_mla("sparse_attention",
                                                        "latent attention to chosen tokens");

}  // namespace
}  // namespace orrery
