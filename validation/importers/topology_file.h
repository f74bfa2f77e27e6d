// SPDX-License-Identifier: Apache-2.0
// The topology of nodes as NCCL and RCCL write it (NCCL_TOPO_DUMP_FILE, src/graph/xml.cc): CPUs,
// below them PCI bridges, GPUs and NICs; in a GPU its NVLinks or Infinity Fabric links and its
// chip-to-chip link.
//   <system version="1"><cpu host_hash="0x1" numaid="0" ...>
//     <pci busid="0000:17:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
//       <pci busid="0000:1b:00.0" class="0x030200" vendor="0x10de" device="0x2330" ...>
//         <gpu dev="0" sm="90" rank="0"><nvlink target="..." count="5" tclass="0x068000"/></gpu>
// The class of a link's target says what it is: 0x068000 an NVSwitch, 0x068001 a CPU, 0x03... or
// 0x12... a GPU. Files that are written by hand for NCCL_TOPO_FILE have no <gpu>.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units/units.h"

namespace orrery {

/// Parallel links between two vertices, the same both ways.
struct TopologyWire {
  std::string from, to;
  const char* kind = "scale_up";
  std::int64_t links = 1;
  std::optional<BytesPerSecond> bandwidth;  ///< rate of one link; nothing: the file does not tell
};

class TopologyFile {
 public:
  /// Reads a file, plain or gzip.
  /// @throws config::ConfigError with the place of what is wrong
  explicit TopologyFile(const std::string& path);

  std::size_t gpus() const { return gpus_.size(); }
  std::size_t hosts() const { return hosts_.size(); }
  /// Whether the file has no <gpu>, so that the links between GPUs are not known.
  bool is_stub() const { return is_stub_; }
  /// Whether a GPU has a link to another one or to a switch.
  bool has_scale_up() const;
  const std::vector<TopologyWire>& wires() const { return wires_; }
  /// What was left out or taken for granted.
  const std::vector<std::string>& notes() const { return notes_; }

  /// What the GPUs say they are.
  struct Identity {
    std::uint16_t vendor = 0, device = 0;  ///< PCI identity; 0: not told
    std::string architecture;              ///< AMD's `gcn`; empty: not told
    int sm = 0;                            ///< compute capability, 90 for 9.0; of AMD its units
    bool operator==(const Identity&) const = default;
  };
  /// @throws config::ConfigError where two GPUs say different things
  Identity identity() const;

 private:
  struct Gpu {
    pugi::xml_node pci, gpu;
    std::size_t host = 0;
    std::string name{};  ///< "accelerator0", by rank
  };

  [[noreturn]] void fail(std::ptrdiff_t offset, const std::string& what) const;
  [[noreturn]] void fail(const pugi::xml_node& node, const std::string& what) const;
  std::int64_t number(const pugi::xml_node& node, const char* key, std::int64_t low,
                      std::int64_t high) const;
  void note(const std::string& text);

  void find_gpus(const pugi::xml_node& node, std::size_t host, int depth);
  void order_gpus();
  void add_cpus(const pugi::xml_node& system);
  void add_pci(const pugi::xml_node& pci, const std::string& parent, const std::string& cpu,
               std::size_t host, int depth);
  void add_nic(const pugi::xml_node& nic, const std::string& cpu);
  void add_gpu_links(const Gpu& gpu, const std::string& cpu);
  void add_link(const Gpu& gpu, const pugi::xml_node& link, const std::string& cpu);
  void join_peers();
  void join_switches();
  BytesPerSecond pci_rate(const pugi::xml_node& pci);
  std::optional<BytesPerSecond> link_rate(const Gpu& gpu, bool is_xgmi) const;
  Identity identity_of(const Gpu& gpu) const;
  const Gpu* gpu_on(std::size_t host, const std::string& bus) const;

  std::string path_, text_;
  pugi::xml_document document_;
  std::map<std::string, std::size_t> hosts_;
  std::vector<Gpu> gpus_;                                              // by rank
  std::map<std::pair<std::size_t, std::string>, std::size_t> by_bus_;  // host, bus
  std::map<std::pair<std::size_t, std::string>, std::string> switches_;
  /// Links between two GPUs as each of the two tells them, by the numbers of both.
  struct Peers {
    std::int64_t links[2] = {0, 0};
    std::optional<BytesPerSecond> bandwidth;
  };
  std::map<std::pair<std::size_t, std::size_t>, Peers> peers_;
  bool is_stub_ = false;
  int cpus_ = 0, nics_ = 0, bridges_ = 0;
  std::int64_t own_links_ = 0, lost_links_ = 0, untold_speeds_ = 0;
  std::vector<TopologyWire> wires_;
  std::vector<std::string> notes_;
};

}  // namespace orrery
