// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/recurrent/mamba_kernels.h"
#include "workloads/operators/recurrent_keys.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// What causal_conv1d_fn and causal_conv1d_update do in front of a recurrence, with SiLU.
struct CausalConvolution final : OperatorConfig, RecurrentTokens {
  CausalConvolution() { kind = "causal_convolution"; }

  std::vector<Kernel> kernels(Precision precision) const override {
    ScanShape s;
    s.sequences = batch;
    s.query = query;
    s.heads = channels;
    s.groups = 0;
    s.bytes = activation_bytes(precision);
    return {update ? conv_update(s, taps) : conv_forward(s, taps)};
  }

  std::int64_t channels = 0, taps = 4;
  bool update = false;

  static const config::Schema<CausalConvolution>& schema() {
    using C = CausalConvolution;
    using config::between;
    static const auto schema =
        recurrent_schema<C>("causal_convolution",
                            "short convolution over tokens, channel by channel", kChunkTokens)
            .required("channels", &C::channels, "number of channels",
                      between(1, llm_limits::kHidden * std::int64_t{8}))
            .optional("taps", &C::taps, "tokens that each result sees, itself included",
                      between(1, 1024))
            .optional("update", &C::update, "earlier inputs are read from a state and kept there");
    return schema;
  }
};

const RegisterOperator<CausalConvolution> registered_causal_convolution(
    "causal_convolution", "short convolution over tokens, channel by channel");

}  // namespace
}  // namespace orrery
