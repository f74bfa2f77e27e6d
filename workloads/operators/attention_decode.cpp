// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/cache_format.h"
#include "workloads/operators/cache_lengths.h"

namespace orrery {
namespace {

/// The cache is paged; a page table has 4 bytes for some 10 KB of keys and values, and is left out.
struct AttentionDecode final : OperatorConfig, CacheLengths {
  AttentionDecode() { kind = "attention_decode"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    const KernelGraph graph = stored_attention(core(precision));
    return kernels_of(fused ? fuse(graph) : graph);
  }
  std::vector<Kernel> unfused_kernels(Precision precision) const override {
    return kernels_of(stored_attention(core(precision)));
  }

  AttentionCore core(Precision precision) const {
    AttentionCore core;
    core.kind = KernelClass::kAttentionDecode;
    core.heads = heads;
    core.kv_heads = kv_heads > 0 ? kv_heads : heads;
    set(core);
    core.window = window;
    core.qk_dim = core.v_dim = head_dim;
    read_cache(core, kv_precision, precision);
    return core;
  }

  std::int64_t heads = 0, kv_heads = 0, head_dim = 128, window = 0;
  bool fused = true;
  CacheFormat kv_precision = CacheFormat::kByPrecision;

  static const config::Schema<AttentionDecode>& schema() {
    using A = AttentionDecode;
    using config::between;
    static const config::Schema<A> schema =
        cached_schema<A>("attention_decode", "attention of one new token a sequence")
            .required("heads", &A::heads, "heads of queries", between(1, llm_limits::kHeads))
            .optional("kv_heads", &A::kv_heads,
                      "heads of keys and values (GQA; 1: MQA); 0: as many as heads",
                      between(0, llm_limits::kHeads))
            .optional("head_dim", &A::head_dim, "width of a head", between(1, llm_limits::kHeadDim))
            .optional("window", &A::window, "earlier tokens that a query sees; 0: all",
                      between(0, llm_limits::kTokens))
            .optional("kv_precision", &A::kv_precision, kCacheFormatHelp)
            .optional("fused", &A::fused, "one kernel; false: scores and probabilities in memory")
            .check(
                "kv_heads must divide heads",
                [](const A& a) { return a.kv_heads == 0 || a.heads % a.kv_heads == 0; },
                "kv_heads");
    return schema;
  }
};

const RegisterOperator<AttentionDecode> registered_attention_decode(
    "attention_decode", "attention of one new token a sequence over its cache");

}  // namespace
}  // namespace orrery
