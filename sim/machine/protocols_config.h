// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/units/units.h"

namespace orrery {

/// Links inside a system, as the tuners of NCCL (NVLink, PCIe) and RCCL (xGMI of MI250X and of
/// MI300X) tell them apart to expect latencies and rates.
enum class NominalLinks : std::uint8_t { kNvlink, kPcie, kXgmi, kXgmi3 };

/// How a collective library moves bytes inside a system (models/transfers/protocols.h has the
/// equations, models/transfers/README.md the reasons). Efficiencies and rates are shares of the
/// line rate of a rank's scale-up links, so that they carry over to a sibling with other links;
/// what is `fitted` is a time or a share, and what is not is a choice of the library. Defaults are
/// NCCL's own constants where it has them.
struct ProtocolsConfig {
  // Defined once: they are long, and many files copy one.
  ProtocolsConfig();
  ProtocolsConfig(const ProtocolsConfig&);
  ProtocolsConfig(ProtocolsConfig&&) noexcept;
  ProtocolsConfig& operator=(const ProtocolsConfig&);
  ProtocolsConfig& operator=(ProtocolsConfig&&) noexcept;
  ~ProtocolsConfig();
  static constexpr const char* kTuner = "NCCL 5067397 src/graph/tuning.cc";
  static constexpr const char* kAsMeasured = "estimate: as fitted on A100 to GB200";

  std::string library;  ///< "nccl_hopper": the library, and the hardware it was tuned for

  // Choices of the library and the hardware: not fitted.
  /// Scale-up topologies that its tuner knows: there it chooses the algorithm. Elsewhere it moves
  /// bytes as it does here, by whichever algorithm is fastest.
  std::vector<std::string> topologies = {"nvswitch"};
  int channels = 24;            ///< thread blocks that NCCL uses at most, each on an SM of its own
  int in_switch_channels = 16;  ///< thread blocks that NCCL uses where switches reduce
  int net_peer_channels = 2;    ///< channels of messages, for each peer in another system
  int one_shot_blocks = 24;  ///< blocks of one-shot kernels (TensorRT-LLM: MAX_ALL_REDUCE_BLOCKS)
  bool ll = true;            ///< whether rings and trees may go by LL (NCCL_PROTO)
  bool ll128 = true;         ///< whether the library has LL128 on this hardware
  bool pat = false;          ///< whether it has PAT for one rank a system (NCCL from 2.23 on)
  int all_pairs_ranks = 0;   ///< ranks of a system whose all-reduces may go all to all; 0: never
  Fact<Bytes> all_pairs_ll;  ///< and the largest that LL carries
  Fact<Bytes> all_pairs_simple;  ///< larger ones, up to here, go by Simple
  int in_switch_ranks = 0;       ///< ranks from which on NCCL reduces in switches; 0: never
  Fact<Bytes> one_shot_limit = {Bytes(8388608), "TensorRT-LLM: workspace of its all-reduce"};
  Fact<Bytes> p2p_ll_limit = {Bytes(524288), "NCCL src/enqueue.cc: 16 KiB x 32 channels a peer"};
  NominalLinks nominal_links = NominalLinks::kNvlink;  ///< whose latencies the tuner expects
  Fact<double> nominal_ll = {0.39, kTuner};            ///< line share that NCCL's tuner gives LL
  Fact<double> nominal_nvls = {0.66, kTuner};          ///< and in-switch reduction
  Fact<double> nominal_collnet = {0.85, kTuner};
  /// What the tuner believes LL to carry at most between two systems, and between more: of all
  /// links of a system together, by the vendor of its processors.
  Fact<BytesPerSecond> nominal_ll_pair = {BytesPerSecond(39e9), kTuner};
  Fact<BytesPerSecond> nominal_ll_systems = {BytesPerSecond(20.4e9), kTuner};
  /// What the tuner gives a channel of in-switch reduction with trees between two systems, and
  /// between more: each rank of a system heads one.
  Fact<BytesPerSecond> nominal_nvls_tree_pair = {BytesPerSecond(57.7e9), kTuner};
  Fact<BytesPerSecond> nominal_nvls_tree_systems = {BytesPerSecond(45.5e9), kTuner};
  /// Latency of a message that the network's plugin reports to the tuner, which adds it to each
  /// step between systems; that of InfiniBand reports none.
  Fact<Seconds> nominal_net_latency = {Seconds(0), "NCCL 5067397 src/transport/net_ib: none"};
  Fact<Seconds> nvls_setup = {Seconds(25e-6), kTuner};
  /// Latency of the network that the next three were measured on. What `scale_out.latency` has
  /// beyond it comes to each step between systems.
  Fact<Seconds> net_latency = {
      Seconds(3.6e-6),
      "estimate: InfiniBand and RoCE, 2.8 and 3.6 us over one leaf (DeepSeek-V3 insights, arXiv "
      "2505.09343, table 5, 2025)"};
  Fact<Seconds> net_ll = {Seconds(2.7e-6), kTuner};       ///< one step between systems
  Fact<Seconds> net_ll128 = {Seconds(4.0e-6), kTuner};    ///< one step by LL128
  Fact<Seconds> net_simple = {Seconds(14.0e-6), kTuner};  ///< one step by Simple, flush included
  /// Posting of one message between systems by the processors: for each step of a ring that spans
  /// systems one, of Simple three.
  Fact<Seconds> net_post = {Seconds(1e-6), kTuner};
  Fact<Seconds> p2p_peer = {Seconds(0.25e-6), "estimate: 0.1 to 0.4 us on A100 to GB200"};

  // Fitted, at most 20: see protocol_parameters().
  Fact<Seconds> launch = {Seconds(6.6e-6), kTuner};
  Fact<Seconds> ll_hop = {Seconds(0.6e-6), kTuner};
  Fact<Seconds> ll_spread = {Seconds(1e-6), kAsMeasured};
  Fact<Seconds> ll_write = {Seconds(0.3e-6), kAsMeasured};
  Fact<double> ll_efficiency = {0.39, kTuner};
  Fact<Seconds> ll128_setup = {Seconds(7.4e-6), kTuner};  // 14.0 of LL128 less 6.6 of LL
  Fact<double> ll128_efficiency = {0.75, kTuner};         // 0.92 of Simple's 0.82
  Fact<Seconds> simple_setup = {Seconds(5e-6), kAsMeasured};
  Fact<Seconds> simple_hop = {Seconds(3.4e-6), kTuner};
  Fact<double> simple_efficiency = {0.82, "NCCL 5067397 src/graph/topo.h: what one link delivers"};
  Fact<double> own_copy = {0.5, kAsMeasured};
  Fact<double> byte_sums = {0.2, kAsMeasured};
  Fact<double> fill = {0.3, kAsMeasured};
  Fact<double> nvls_efficiency = {0.58, kTuner};
  Fact<double> nvls_fill = {0.8, kAsMeasured};
  Fact<Seconds> p2p_setup = {Seconds(5e-6), kAsMeasured};
  Fact<double> p2p_efficiency = {0.7, kAsMeasured};
  Fact<double> p2p_own_copy = {0.3, kAsMeasured};
  Fact<Seconds> one_shot_launch = {Seconds(3e-6), kAsMeasured};
  Fact<double> one_shot_efficiency = {0.6, kAsMeasured};

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

namespace config {

template <>
struct EnumNames<NominalLinks> {
  using enum NominalLinks;
  static constexpr std::pair<NominalLinks, const char*> values[] = {
      {kNvlink, "nvlink"}, {kPcie, "pcie"}, {kXgmi, "xgmi"}, {kXgmi3, "xgmi3"}};
};

}  // namespace config

}  // namespace orrery
