// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/protocols_config.h"

#include "sim/config/schema.h"

namespace orrery {
namespace {

constexpr double kMicro = 1e-6;

}  // namespace

ProtocolsConfig::ProtocolsConfig() = default;
ProtocolsConfig::ProtocolsConfig(const ProtocolsConfig&) = default;
ProtocolsConfig::ProtocolsConfig(ProtocolsConfig&&) noexcept = default;
ProtocolsConfig& ProtocolsConfig::operator=(const ProtocolsConfig&) = default;
ProtocolsConfig& ProtocolsConfig::operator=(ProtocolsConfig&&) noexcept = default;
ProtocolsConfig::~ProtocolsConfig() = default;

double ProtocolParameter::get(const ProtocolsConfig& protocols) const {
  if (const auto* time = std::get_if<0>(&member)) return (protocols.**time).value.base() / kMicro;
  return (protocols.*std::get<1>(member)).value;
}

void ProtocolParameter::set(ProtocolsConfig& protocols, double value) const {
  if (const auto* time = std::get_if<0>(&member)) {
    (protocols.**time).value = Seconds(value * kMicro);
  } else {
    (protocols.*std::get<1>(member)).value = value;
  }
}

const std::vector<ProtocolParameter>& protocol_parameters() {
  using P = ProtocolsConfig;
  static const std::vector<ProtocolParameter> all = {
      {"launch", "a collective kernel from start to end without a step", 1, 30, &P::launch},
      {"ll_hop", "one step of LL between two ranks", 0.1, 10, &P::ll_hop},
      {"ll_spread", "more channels, once every thread has a line to send", 0.01, 10, &P::ll_spread},
      {"ll_write", "and each share of the others that a rank writes into its output", 0.001, 10,
       &P::ll_write},
      {"ll_efficiency", "payload rate of LL, whose flags double the bytes", 0.05, 0.5,
       &P::ll_efficiency},
      {"ll128_setup", "what LL128 needs before its first byte, beyond the launch", 0.1, 50,
       &P::ll128_setup},
      {"ll128_efficiency", "payload rate of LL128", 0.1, 0.9375, &P::ll128_efficiency},
      {"simple_setup", "what Simple needs before its first byte, beyond the launch", 0.1, 50,
       &P::simple_setup},
      {"simple_hop", "one step of Simple: a chunk has to arrive before it goes on", 0.1, 30,
       &P::simple_hop},
      {"simple_efficiency", "payload rate of Simple", 0.1, 1, &P::simple_efficiency},
      {"own_copy", "time to move a rank's own share into its output, over the time on the line",
       0.01, 3, &P::own_copy},
      {"byte_sums", "extra time of sums of bytes, over the time of a rank's share on the line",
       0.001, 2, &P::byte_sums},
      {"fill", "extra time of the first slices of all channels, over their time on the line", 1e-3,
       2, &P::fill},
      {"nvls_efficiency", "rate at which switches reduce and multicast", 0.1, 0.95,
       &P::nvls_efficiency},
      {"nvls_fill", "time to fill the window of all ranks before switches stream", 0.01, 5,
       &P::nvls_fill},
      {"p2p_setup", "what messages by Simple need before their first byte, beyond the launch", 0.1,
       50, &P::p2p_setup},
      {"p2p_efficiency", "payload rate of grouped sends and receives", 0.1, 1, &P::p2p_efficiency},
      {"p2p_own_copy", "time to copy the message to oneself, over the time on the line", 0.01, 3,
       &P::p2p_own_copy},
      {"one_shot_launch", "a one-shot all-reduce kernel with its barriers", 0.5, 30,
       &P::one_shot_launch},
      {"one_shot_efficiency", "rate at which a rank reads the buffers of all others", 0.1, 1,
       &P::one_shot_efficiency},
  };
  return all;
}

namespace {

/// The parameters that can be fitted, each as a key.
void add_parameters(config::Schema<ProtocolsConfig>& schema, const config::Bounds& time) {
  for (const ProtocolParameter& p : protocol_parameters()) {
    std::visit(
        [&](auto member) {
          constexpr bool is_time =
              std::is_same_v<decltype(member), Fact<Seconds> ProtocolsConfig::*>;
          if constexpr (is_time) {
            schema.optional(p.name, member, std::string(p.meaning) + " [us]", time);
          } else {
            schema.optional(p.name, member, p.meaning, config::between(0, 5));
          }
        },
        p.member);
  }
}

using Protocols = ProtocolsConfig;

/// What the library and the hardware choose from.
void add_choices(config::Schema<Protocols>& s) {
  using config::between;
  const auto size = between(Bytes(0), Bytes(1e12));
  s.named("protocols", &Protocols::library)
      .optional("topologies", &Protocols::topologies,
                "scale-up topologies on which the library chooses the algorithm; on others auto "
                "takes the fastest")
      .optional("channels", &Protocols::channels,
                "thread blocks that the library uses at most, each on an SM of its own",
                between(1, 1024))
      .optional("in_switch_channels", &Protocols::in_switch_channels,
                "thread blocks that the library uses where switches reduce", between(0, 1024))
      .optional("net_peer_channels", &Protocols::net_peer_channels,
                "thread blocks of messages, for each peer in another system", between(0, 1024))
      .optional("one_shot_blocks", &Protocols::one_shot_blocks,
                "thread blocks of the one-shot all-reduce kernels", between(0, 1024))
      .optional("ll", &Protocols::ll, "whether rings and trees may go by LL (NCCL_PROTO)")
      .optional("ll128", &Protocols::ll128, "whether the library has LL128 on this hardware")
      .optional("pat", &Protocols::pat,
                "whether all_gather and reduce_scatter among one rank a system may go by PAT (NCCL "
                "from 2.23 on)")
      .optional("all_pairs_ranks", &Protocols::all_pairs_ranks,
                "ranks of a system whose all-reduces may go from each to each; 0: never",
                between(0, 1024))
      .optional("all_pairs_ll", &Protocols::all_pairs_ll,
                "largest all-reduce that goes from each rank to each by LL", size)
      .optional("all_pairs_simple", &Protocols::all_pairs_simple,
                "largest all-reduce that goes from each rank to each by Simple", size)
      .optional("in_switch_ranks", &Protocols::in_switch_ranks,
                "least ranks of a system for which NCCL reduces in switches; 0: never",
                between(0, 1e6))
      .optional("one_shot_limit", &Protocols::one_shot_limit,
                "largest all-reduce of the one-shot kernels", size)
      .optional("p2p_ll_limit", &Protocols::p2p_ll_limit,
                "largest message of grouped sends and receives that LL carries", size);
}

/// What the library's tuner expects.
void add_nominal(config::Schema<Protocols>& s, const config::Bounds& time) {
  using config::between;
  const auto rate = between(BytesPerSecond(1e9), BytesPerSecond(1e15));
  s.optional("nominal_links", &Protocols::nominal_links,
             "links whose latencies the library's tuner expects of a step inside a system")
      .optional("nominal_ll", &Protocols::nominal_ll, "line share that NCCL's tuner gives LL",
                between(0.01, 1))
      .optional("nominal_nvls", &Protocols::nominal_nvls,
                "line share that it gives in-switch reduction", between(0.01, 1))
      .optional("nominal_nvls_tree_pair", &Protocols::nominal_nvls_tree_pair,
                "most that it gives each rank of two systems by nvls_tree", rate)
      .optional("nominal_nvls_tree_systems", &Protocols::nominal_nvls_tree_systems,
                "most that it gives each rank of more systems by nvls_tree", rate)
      .optional("nominal_collnet", &Protocols::nominal_collnet,
                "share of Simple's rate that the tuner gives reduction between systems",
                between(0.01, 1))
      .optional("nominal_ll_pair", &Protocols::nominal_ll_pair,
                "most that the tuner gives LL between two systems", rate)
      .optional("nominal_ll_systems", &Protocols::nominal_ll_systems,
                "most that the tuner gives LL between more systems", rate)
      .optional("nominal_net_latency", &Protocols::nominal_net_latency,
                "latency of a message between systems that its plugin reports to the tuner [us]",
                time);
}

/// Times that are not fitted.
void add_times(config::Schema<Protocols>& s, const config::Bounds& time) {
  s.optional("nvls_setup", &Protocols::nvls_setup,
             "start of an in-switch reduction, beyond the launch [us]", time)
      .optional("net_latency", &Protocols::net_latency,
                "latency of the network on which net_ll, net_ll128 and net_simple were measured; "
                "what scale_out.latency has beyond it comes to each step between systems [us]",
                time)
      .optional("net_ll", &Protocols::net_ll, "one step of LL between systems [us]", time)
      .optional("net_ll128", &Protocols::net_ll128, "one step of LL128 between systems [us]", time)
      .optional("net_simple", &Protocols::net_simple, "one step of Simple between systems [us]",
                time)
      .optional("net_post", &Protocols::net_post,
                "posting of a message between systems, one for each step of a ring [us]", time)
      .optional("p2p_peer", &Protocols::p2p_peer, "each peer of grouped sends and receives [us]",
                time);
}

}  // namespace

const config::Schema<ProtocolsConfig>& ProtocolsConfig::schema() {
  const auto build = [] {
    config::Schema<ProtocolsConfig> s("protocols",
                                      "how a collective library moves bytes inside a system");
    const auto time = config::between(Seconds(0), Seconds(1e-3));
    add_choices(s);
    add_nominal(s, time);
    add_times(s, time);
    add_parameters(s, time);
    return s;
  };
  static const config::Schema<ProtocolsConfig> schema = build();
  return schema;
}

}  // namespace orrery
