// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/pcie_config.h"

#include <cmath>

namespace orrery {
namespace {

constexpr int kFlitGeneration = 6;
constexpr double kBlockCoding = 128.0 / 130;
constexpr double kFlitPackets = 236.0 / 256;
constexpr Bytes kHeader(16);
constexpr Bytes kFraming(8);  // start, sequence number and checksum of a packet

}  // namespace

BytesPerSecond pcie_rate(int generation, int lanes, Bytes payload, double link_layer) {
  const bool flits = generation >= kFlitGeneration;
  const double transfers = 1e9 * std::ldexp(1.0, generation);  // generation 3: 8 GT/s a lane
  const Bytes overhead = flits ? kHeader : kHeader + kFraming;
  const double coding = flits ? kFlitPackets : kBlockCoding * link_layer;
  return BytesPerSecond(transfers / 8 * lanes * coding * (payload / (payload + overhead)));
}

const config::Schema<PcieConfig>& PcieConfig::schema() {
  using C = PcieConfig;
  using config::between;
  static const auto lanes = between(0, 64);
  static const auto schema =
      config::Schema<C>("pcie", "switches, root complexes and processors between accelerators")
          .required("generation", &C::generation, "PCIe generation, 3 to 6", between(3, 6))
          .optional("lanes", &C::lanes, "lanes of an accelerator", between(1, 32))
          .optional("payload", &C::payload, "most data of a packet [B]",
                    between(Bytes(64), Bytes(4096)))
          .optional("link_layer", &C::link_layer,
                    "share of the line that acknowledgements and flow control leave",
                    between(0.5, 1))
          .optional("packages_per_switch", &C::packages_per_switch,
                    "accelerators of a PCIe switch; 0: each has a root port", between(0, 1e3))
          .optional("uplink_lanes", &C::uplink_lanes,
                    "lanes of a switch to its processor; 0: as many as an accelerator has", lanes)
          .optional("switch_lanes", &C::switch_lanes,
                    "lanes between each two switches of a processor; 0: none", lanes)
          .optional("sockets", &C::sockets, "processors with root complexes", between(1, 64))
          .optional("socket_link", &C::socket_link,
                    "rate that flows reach between two processors, one way [GB/s]",
                    between(BytesPerSecond(0), BytesPerSecond(1e13)))
          .optional("peers", &C::peers,
                    "farthest peers that write to each other; beyond, through the host's memory")
          .optional("acs", &C::acs, "switches send what goes to peers through the root complex")
          .optional("bridge", &C::bridge, "accelerators that an NVLink bridge joins; 0: none",
                    between(0, 64))
          .optional("bridge_efficiency", &C::bridge_efficiency,
                    "share of the bridge's line rate that flows reach", between(0.01, 1))
          .check(
              "several processors need a socket_link between them",
              [](const C& c) { return c.sockets == 1 || c.socket_link.value.base() > 0; },
              "sockets")
          .check(
              "switch_lanes join switches: packages_per_switch says how many accelerators each has",
              [](const C& c) { return c.switch_lanes == 0 || c.packages_per_switch > 0; },
              "switch_lanes");
  return schema;
}

}  // namespace orrery
