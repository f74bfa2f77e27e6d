// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/chosen_keys.h"

namespace orrery {
namespace {

/// What the lightning indexer does. Defaults are the sizes of DeepSeek-V3.2 (its config.json:
/// index_n_heads, index_head_dim).
struct IndexScores final : OperatorConfig, ChosenKeys {
  IndexScores() { kind = "index_scores"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    const IndexerConfig indexer{heads, head_dim, top_k, 1};
    std::vector<Kernel> all{
        index_scores(seen(), indexer, heads, 1, precision, element_bytes(precision))};
    if (top_k > 0) all.push_back(index_selection(seen(), indexer, 1));
    return all;
  }

  std::int64_t heads = 64, head_dim = 128;

  static const config::Schema<IndexScores>& schema() {
    using config::between;
    static const auto schema =
        chosen_schema<IndexScores>("index_scores", "scores of an indexer for sparse attention")
            .optional("heads", &IndexScores::heads, "heads of the indexer",
                      between(1, llm_limits::kHeads))
            .optional("head_dim", &IndexScores::head_dim, "columns of a head, and of the one key",
                      between(1, llm_limits::kHeadDim))
            .optional("top_k", static_cast<std::int64_t IndexScores::*>(&ChosenKeys::top_k),
                      "tokens that each then chooses; 0: scores alone",
                      between(0, llm_limits::kTokens));
    return schema;
  }
};

const RegisterOperator<IndexScores> registered_index_scores(
    "index_scores", "scores of an indexer for sparse attention");

}  // namespace
}  // namespace orrery
