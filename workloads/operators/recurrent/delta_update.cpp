// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/recurrent/kimi_delta_kernels.h"
#include "workloads/operators/recurrent/delta_heads.h"
#include "workloads/operators/recurrent/state_format.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// What fused_recurrent_gated_delta_rule and its like do: states are read and written.
struct DeltaUpdate final : OperatorConfig, RecurrentTokens, DeltaHeads {
  DeltaUpdate() { kind = "delta_update"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    const DeltaShape s = shape(*this, activation_bytes(precision));
    const double bytes = state_bytes(state);
    return {decays == DeltaDecays::kColumn ? kimi_update(s, bytes) : state_update(s, bytes)};
  }

  StateFormat state = StateFormat::kFp32;

  static const config::Schema<DeltaUpdate>& schema() {
    static const auto schema =
        delta_schema<DeltaUpdate>(
            "delta_update", "states of a gated delta network, updated by new tokens", kNewTokens)
            .optional("state_precision", &DeltaUpdate::state, kStateFormatHelp)
            .check([](const DeltaUpdate& d) { return d.fault(); }, "key_heads");
    return schema;
  }
};

const RegisterOperator<DeltaUpdate> registered_delta_update(
    "delta_update", "states of a gated delta network, updated by new tokens");

}  // namespace
}  // namespace orrery
