// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/cache_format.h"
#include "workloads/operators/operator.h"

namespace orrery {
namespace {

struct AttentionPrefill final : OperatorConfig {
  AttentionPrefill() { kind = "attention_prefill"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    const KernelGraph graph = stored_attention(core(precision), dropout);
    return kernels_of(fused ? fuse(graph) : graph);
  }
  std::vector<Kernel> unfused_kernels(Precision precision) const override {
    return kernels_of(stored_attention(core(precision), dropout));
  }

  AttentionCore core(Precision precision) const {
    AttentionCore core;
    core.kind = KernelClass::kAttentionPrefill;
    core.sequences = batch;
    core.heads = heads;
    core.kv_heads = kv_heads > 0 ? kv_heads : heads;
    core.query = query;
    core.context = prefix + query;
    core.window = window;
    core.causal = causal;
    core.qk_dim = core.v_dim = head_dim;
    read_cache(core, kv_precision, precision);
    return core;
  }

  std::int64_t batch = 1, query = 0, prefix = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 128, window = 0;
  bool causal = true, fused = true, dropout = false;
  CacheFormat kv_precision = CacheFormat::kByPrecision;

  static const config::Schema<AttentionPrefill>& schema() {
    using A = AttentionPrefill;
    using config::between;
    static const config::Schema<A> schema =
        operator_schema<A>("attention_prefill", "attention over prompts")
            .optional("batch", &A::batch, "number of sequences",
                      between(1, operator_limits::kSequences))
            .required("query", &A::query, "new tokens of a sequence",
                      between(1, operator_limits::kTokens))
            .optional("prefix", &A::prefix, "earlier tokens of a sequence",
                      between(0, operator_limits::kTokens))
            .required("heads", &A::heads, "heads of queries", between(1, llm_limits::kHeads))
            .optional("kv_heads", &A::kv_heads,
                      "heads of keys and values (GQA; 1: MQA); 0: as many as heads",
                      between(0, llm_limits::kHeads))
            .optional("head_dim", &A::head_dim, "width of a head", between(1, llm_limits::kHeadDim))
            .optional("window", &A::window, "earlier tokens that a query sees; 0: all",
                      between(0, llm_limits::kTokens))
            .optional("causal", &A::causal, "a token does not see later ones")
            .optional("kv_precision", &A::kv_precision, kCacheFormatHelp)
            .optional("fused", &A::fused,
                      "one kernel (FlashAttention); false: scores and probabilities in memory, "
                      "masked pairs computed")
            .optional("dropout", &A::dropout,
                      "probabilities are dropped at random, by a kernel of their own")
            .check(
                "kv_heads must divide heads",
                [](const A& a) { return a.kv_heads == 0 || a.heads % a.kv_heads == 0; }, "kv_heads")
            .check(
                "a window goes with a causal mask",
                [](const A& a) { return a.causal || a.window == 0; }, "window")
            .check(
                "dropout goes with fused: false",
                [](const A& a) { return !(a.dropout && a.fused); }, "dropout");
    return schema;
  }
};

const RegisterOperator<AttentionPrefill> registered_attention_prefill(
    "attention_prefill", "attention over prompts: causal, GQA, windows, prefixes");

}  // namespace
}  // namespace orrery
