// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/optimizer/optimizer_config.h"

#include <map>

#include "sim/config/schema.h"

namespace orrery {

using config::between;

const config::Schema<MuonConfig>& MuonConfig::schema() {
  using M = MuonConfig;
  static const auto schema =
      config::Schema<M>("muon", "how Muon makes the momentum of each matrix orthogonal")
          .optional("num_ns_steps", &M::num_ns_steps,
                    "Newton-Schulz iterations, three products each (Megatron-Core: "
                    "muon_num_ns_steps)",
                    between(1, 100))
          .optional("tp_mode", &M::tp_mode,
                    "ranks that share a matrix gather it whole (duplicated), add up Gram matrices "
                    "of their parts (distributed), or take their parts alone (blockwise; "
                    "Megatron-Core: muon_tp_mode)");
  return schema;
}

const config::Schema<OptimizerStates>& OptimizerStates::schema() {
  using S = OptimizerStates;
  static const auto schema =
      config::Schema<S>("optimizer_states", "number formats of what is kept of each parameter")
          .optional("gradients", &S::gradients,
                    "format in which gradients are added up; auto: that of the software "
                    "(`main_gradients`)")
          .optional("momentum", &S::momentum,
                    "format of the first moment, of Muon's and SGD's momentum (Megatron-Core: "
                    "exp_avg_dtype; int8: bitsandbytes' blocks of 256)")
          .optional("variance", &S::variance,
                    "format of Adam's second moment (Megatron-Core: exp_avg_sq_dtype)")
          .optional("master", &S::master,
                    "whether weights of 32 bits are kept beside those of products; none: new "
                    "weights are rounded to the format of products")
          .optional("placement", &S::placement,
                    "moments lie on the device, or are paged: what the device has no room for lies "
                    "on the host, and crosses the link there and back in each step");
  return schema;
}

double moment_bytes(MomentFormat format) {
  static const std::map<MomentFormat, double> kBytes = {
      {MomentFormat::kFp32, 4},
      {MomentFormat::kBf16, 2},
      {MomentFormat::kFp8, 1},
      {MomentFormat::kInt8, 1 + 4.0 / 256},  // with a scale
  };
  return kBytes.at(format);
}

const config::Schema<OptimizerOffload>& OptimizerOffload::schema() {
  using O = OptimizerOffload;
  static const auto schema =
      config::Schema<O>("optimizer_offload", "states of Adam in the memory of the host")
          .optional("fraction", &O::fraction,
                    "share of a rank's parameters that the host updates (Megatron-Core: "
                    "optimizer_offload_fraction)",
                    between(0, 1))
          .optional("overlap", &O::overlap,
                    "copies of gradients and weights beside the updates of other tensors "
                    "(Megatron-Core: overlap_cpu_optimizer_d2h_h2d)")
          .shorthand("fraction");
  return schema;
}

}  // namespace orrery
