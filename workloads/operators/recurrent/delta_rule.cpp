// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/recurrent/kimi_delta_kernels.h"
#include "workloads/operators/recurrent/delta_heads.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// What chunk_gated_delta_rule and chunk_kda of flash-linear-attention launch: without the short
/// convolution in front and the norm behind.
struct DeltaRule final : OperatorConfig, RecurrentTokens, DeltaHeads {
  DeltaRule() { kind = "delta_rule"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    const DeltaShape s = shape(*this, activation_bytes(precision));
    std::vector<Kernel> all;
    if (decays == DeltaDecays::kColumn) all.push_back(kimi_decays(s));
    if (unit) all.push_back(unit_keys(s));
    for (Kernel& kernel : decays == DeltaDecays::kColumn ? kimi_chunks(s) : delta_chunks(s))
      all.push_back(std::move(kernel));
    return all;
  }

  bool unit = false;

  static const config::Schema<DeltaRule>& schema() {
    static const auto schema =
        delta_schema<DeltaRule>("delta_rule", "chunks of a gated delta network over prompts",
                                kChunkTokens)
            .optional("unit_keys", &DeltaRule::unit, "queries and keys are normalised first")
            .check([](const DeltaRule& d) { return d.fault(); }, "key_heads");
    return schema;
  }
};

const RegisterOperator<DeltaRule> registered_delta_rule(
    "delta_rule", "chunks of a gated delta network over prompts");

}  // namespace
}  // namespace orrery
