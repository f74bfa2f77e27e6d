// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/cache_format.h"
#include "workloads/operators/cache_lengths.h"

namespace orrery {
namespace {

/// Absorbed: all heads attend to one latent a token. Defaults are the sizes of DeepSeek-V2 and V3
/// (arXiv 2412.19437, section 4.2).
struct MlaDecode final : OperatorConfig, CacheLengths {
  MlaDecode() { kind = "mla_decode"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    AttentionCore core;
    core.kind = KernelClass::kMlaDecode;
    core.heads = heads;
    core.kv_heads = 1;
    set(core);
    core.qk_dim = kv_lora_rank + rope_head_dim;
    core.v_dim = kv_lora_rank;
    core.latent = true;
    read_cache(core, kv_precision, precision);
    return {flash_attention(to_string(core.kind), core)};
  }

  std::int64_t heads = 0;
  std::int64_t kv_lora_rank = 512, rope_head_dim = 64;
  CacheFormat kv_precision = CacheFormat::kByPrecision;

  static const config::Schema<MlaDecode>& schema() {
    using A = MlaDecode;
    using config::between;
    static const config::Schema<A> schema =
        cached_schema<A>("mla_decode", "absorbed latent attention of one new token a sequence")
            .required("heads", &A::heads, "heads of queries", between(1, llm_limits::kHeads))
            .optional("kv_lora_rank", &A::kv_lora_rank, "columns of the latent",
                      between(1, llm_limits::kHeadDim))
            .optional("rope_head_dim", &A::rope_head_dim, "columns of the shared rotary key",
                      between(0, llm_limits::kHeadDim))
            .optional("kv_precision", &A::kv_precision, kCacheFormatHelp);
    return schema;
  }
};

const RegisterOperator<MlaDecode> registered_mla_decode(
    "mla_decode", "absorbed latent attention of one new token a sequence");

}  // namespace
}  // namespace orrery
