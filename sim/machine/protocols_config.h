// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "sim/config/schema.h"
#include "sim/units/units.h"

namespace orrery {

/// How a collective library moves bytes inside a system (models/network/protocols.h has the
/// equations, models/network/README.md the reasons). Efficiencies and rates are shares of the line
/// rate of a rank's scale-up links, so that they carry over to a sibling with other links; what is
/// `fitted` is a time or a share, and what is not is a choice of the library. Defaults are NCCL's
/// own constants where it has them.
struct ProtocolsConfig {
  std::string library;  ///< "nccl_hopper": the library, and the hardware it was tuned for

  // Choices of the library and the hardware: not fitted.
  int channels = 24;            ///< thread blocks that NCCL uses at most, each on an SM of its own
  int in_switch_channels = 16;  ///< the same where switches reduce
  int net_peer_channels = 2;    ///< of messages, for each peer in another system
  int one_shot_blocks = 24;     ///< of the one-shot kernels (TensorRT-LLM: MAX_ALL_REDUCE_BLOCKS)
  bool ll128 = true;            ///< whether the library has LL128 on this hardware
  int in_switch_ranks = 0;      ///< from how many ranks on NCCL reduces in switches; 0: never
  Fact<Bytes> one_shot_limit = {Bytes(8388608), "TensorRT-LLM: workspace of its all-reduce"};
  Fact<double> nominal_ll = {0.39, {}};    ///< line share that NCCL's tuner gives LL
  Fact<double> nominal_nvls = {0.66, {}};  ///< and in-switch reduction
  Fact<Seconds> nvls_setup = {Seconds(25e-6), {}};
  Fact<Seconds> net_ll = {Seconds(2.7e-6), {}};       ///< one step between systems
  Fact<Seconds> net_ll128 = {Seconds(4.0e-6), {}};    ///< likewise
  Fact<Seconds> net_simple = {Seconds(14.0e-6), {}};  ///< likewise, flush included

  // Fitted, at most 20: see protocol_parameters().
  Fact<Seconds> launch = {Seconds(6.6e-6), {}};
  Fact<Seconds> ll_hop = {Seconds(0.6e-6), {}};
  Fact<Seconds> ll_spread = {Seconds(1e-6), {}};
  Fact<double> ll_efficiency = {0.39, {}};
  Fact<Seconds> ll128_setup = {Seconds(7.4e-6), {}};
  Fact<double> ll128_efficiency = {0.75, {}};
  Fact<Seconds> simple_setup = {Seconds(5e-6), {}};
  Fact<Seconds> simple_hop = {Seconds(3.4e-6), {}};
  Fact<double> simple_efficiency = {0.82, {}};
  Fact<double> own_copy = {0.7, {}};
  Fact<double> byte_sums = {0.05, {}};
  Fact<double> beyond_cache = {0.01, {}};
  Fact<double> nvls_efficiency = {0.58, {}};
  Fact<double> nvls_fill = {0.8, {}};
  Fact<Seconds> p2p_peer = {Seconds(0.3e-6), {}};
  Fact<double> p2p_efficiency = {0.7, {}};
  Fact<double> p2p_own_copy = {0.3, {}};
  Fact<double> p2p_fill = {1.1, {}};
  Fact<Seconds> one_shot_launch = {Seconds(3e-6), {}};
  Fact<double> one_shot_efficiency = {0.6, {}};

  static const config::Schema<ProtocolsConfig>& schema();
};

/// A parameter that is fitted to measured collectives.
struct ProtocolParameter {
  const char* name;
  const char* meaning;
  double lower, upper;  ///< what is physical, in `unit()`
  std::variant<Fact<Seconds> ProtocolsConfig::*, Fact<double> ProtocolsConfig::*> member;

  /// "us", or "1": a share of the line rate, or of the time that bytes take there.
  const char* unit() const { return member.index() == 0 ? "us" : "1"; }
  /// In `unit()`.
  double get(const ProtocolsConfig& protocols) const;
  void set(ProtocolsConfig& protocols, double value) const;
};

/// All of them, in the order of the equations.
const std::vector<ProtocolParameter>& protocol_parameters();

}  // namespace orrery
