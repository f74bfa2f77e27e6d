// SPDX-License-Identifier: Apache-2.0
#include "workloads/operators/recurrent/mamba_heads.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// What mamba_chunk_scan_combined of mamba_ssm launches: without the convolution in front and the
/// norm behind.
struct MambaScan final : OperatorConfig, RecurrentTokens, MambaHeads {
  MambaScan() { kind = "mamba_scan"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    const ScanShape s = shape(*this, activation_bytes(precision));
    std::vector<Kernel> all = scan_states(s);
    all.push_back(scan_outputs(s));
    return all;
  }

  static const config::Schema<MambaScan>& schema() {
    static const auto schema =
        mamba_schema<MambaScan>("mamba_scan", "chunks of a Mamba-2 over prompts", kChunkTokens)
            .optional("chunk", static_cast<std::int64_t MambaScan::*>(&MambaHeads::chunk),
                      "tokens that products work on", config::between(1, 65536));
    return schema;
  }
};

const RegisterOperator<MambaScan> registered_mamba_scan("mamba_scan",
                                                        "chunks of a Mamba-2 over prompts");

}  // namespace
}  // namespace orrery
