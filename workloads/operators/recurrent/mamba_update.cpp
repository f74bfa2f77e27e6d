// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/recurrent/mamba_heads.h"
#include "workloads/operators/recurrent/state_format.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// What selective_state_update of mamba_ssm does: states are read and written.
struct MambaUpdate final : OperatorConfig, RecurrentTokens, MambaHeads {
  MambaUpdate() { kind = "mamba_update"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    return {state_update(shape(*this, activation_bytes(precision)), state_bytes(kept))};
  }

  StateFormat kept = StateFormat::kFp32;

  static const config::Schema<MambaUpdate>& schema() {
    static const auto schema =
        mamba_schema<MambaUpdate>("mamba_update", "states of a Mamba-2, updated by new tokens",
                                  kNewTokens)
            .optional("state_precision", &MambaUpdate::kept, kStateFormatHelp);
    return schema;
  }
};

const RegisterOperator<MambaUpdate> registered_mamba_update(
    "mamba_update", "states of a Mamba-2, updated by new tokens");

}  // namespace
}  // namespace orrery
