// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "models/topologies/fabric.h"
#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/units/units.h"

namespace orrery {

/// How far apart two accelerators of a PCIe box are, in the names of NCCL (src/graph/topo.h) and of
/// `nvidia-smi topo`; the nearest first.
enum class PcieLevel : std::uint8_t {
  kNone,    ///< nowhere: no peer reaches another one
  kBridge,  ///< an NVLink bridge joins them (NVL)
  kPix,     ///< one PCIe switch
  kPxb,     ///< several PCIe switches, no root complex
  kPhb,     ///< the root complex of one processor
  kSys,     ///< the link between processors
};

/// The PCIe of a system: accelerators below switches, switches below the root complexes of the
/// processors, links between the processors. Kept in order: the first accelerators are on the first
/// switch of the first processor.
struct PcieConfig {
  int generation = 4;                         ///< 3 to 6
  int lanes = 16;                             ///< lanes of an accelerator
  Fact<Bytes> payload = {Bytes(256), kSpec};  ///< most data of a packet (MPS): 128 or 256 B
  /// Share of the line that acknowledgements, flow control and clock compensation leave to packets;
  /// in generation 6 flits carry them, and this counts for nothing.
  Fact<double> link_layer = {0.92, kLinkLayer};
  int packages_per_switch = 0;  ///< 0: each has lanes of a root complex for itself
  int uplink_lanes = 0;         ///< lanes of a switch to its processor; 0: as an accelerator
  int switch_lanes = 0;         ///< lanes between each two switches of a processor; 0: none
  int sockets = 1;              ///< processors, each with a root complex and memory
  /// What flows reach between two processors, one way: the efficiency of the fabric is in it.
  Fact<BytesPerSecond> socket_link;
  PcieLevel peers = PcieLevel::kPxb;
  bool acs = false;  ///< access control: switches send what goes to peers through the root complex
  int bridge = 0;    ///< accelerators that an NVLink bridge joins, in order; 0: there are none
  Fact<double> bridge_efficiency = {0.8, "NCCL 5067397 src/graph/topo.h: 20.0 of 25 GB/s a link"};

  static constexpr const char* kSpec = "PCI-SIG, PCIe 5.0 (2019): Max_Payload_Size, as servers set";
  static constexpr const char* kLinkLayer =
      "Neugebauer et al., Understanding PCIe performance, SIGCOMM 2018, section 3: 57.88 of "
      "62.96 Gb/s";

  static const config::Schema<PcieConfig>& schema();
};

/// Cards in slots, joined by PCIe and bridges.
struct PcieTopology final : ScaleUpTopology {
  PcieConfig pcie;
  static const config::Schema<PcieTopology>& schema();
  bool has_slots() const override { return true; }
  std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                                Topology& topology) const override;
};

/// Data that packets of `payload` carry over so many lanes one way, headers, coding and link layer
/// taken off:
///
///   GT/s x lanes / 8 x coding x link layer x payload / (payload + overhead)
///
/// Generations 3 to 5 code 128 bits in 130, and a packet has 24 B about it: 4 of framing and
/// sequence, 16 of header with a 64-bit address, 4 of checksum. Generation 6 sends flits of 256 B,
/// 236 of them packets, whose header takes 16 B (PCI-SIG, PCIe 5.0, 2019, and 6.0, 2022).
BytesPerSecond pcie_rate(int generation, int lanes, Bytes payload, double link_layer);

namespace config {

template <>
struct EnumNames<PcieLevel> {
  using enum PcieLevel;
  static constexpr std::pair<PcieLevel, const char*> values[] = {
      {kNone, "none"}, {kBridge, "bridge"}, {kPix, "pix"},
      {kPxb, "pxb"},   {kPhb, "phb"},       {kSys, "sys"}};
};

}  // namespace config

}  // namespace orrery
