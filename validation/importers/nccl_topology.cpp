// SPDX-License-Identifier: Apache-2.0
// The topology of a node as NCCL writes it (NCCL_TOPO_DUMP_FILE, src/graph/xml.cc): CPUs, below
// them PCI bridges, GPUs and NICs; in a GPU its NVLinks and its chip-to-chip link.
//   <system version="1"><cpu numaid="0" ...>
//     <pci busid="0000:17:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
//       <pci busid="0000:1b:00.0" class="0x030200" ...>
//         <gpu dev="0" sm="90" rank="0"><nvlink target="..." count="5" tclass="0x068000"/></gpu>
// The class of an NVLink's target says what it is: 0x068000 an NVSwitch, 0x068001 a CPU, 0x03... a
// GPU. It becomes a system of kind `graph` that extends one of the library, which has what NCCL
// does not write down: the accelerator, latencies, power.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <pugixml.hpp>
#include <sstream>

#include "sim/config/diagnostics.h"
#include "sim/config/packed_file.h"
#include "sim/units/text.h"
#include "sim/units/units.h"
#include "validation/importers/importer.h"

namespace orrery {
namespace {

using namespace literals;

constexpr int kMostDepth = 32;
constexpr std::int64_t kMostLinks = 1000;
constexpr std::size_t kMostVertices = 2048;

struct Wire {
  std::string from, to;
  const char* kind = "scale_up";
  std::int64_t links = 1;
  BytesPerSecond bandwidth;  ///< bandwidth of one link
};

/// A GPU generation by NCCL's `sm`: one NVLink, one way, at its line rate (NVIDIA's NVLink page),
/// and the system of the library that has it.
struct Generation {
  int sm;
  BytesPerSecond nvlink;
  const char* system;  ///< null: the library has none
};
constexpr auto kGenerations = std::to_array<Generation>({
    {60, 20_GBps, nullptr},
    {70, 25_GBps, nullptr},
    {80, 25_GBps, "dgx_a100"},
    {90, 25_GBps, "dgx_h100"},
    {100, 50_GBps, "dgx_b200"},
    {103, 50_GBps, "dgx_b300"},
});

class TopologyReader {
 public:
  explicit TopologyReader(const std::string& path) : path_(path), text_(read_input(path)) {
    const pugi::xml_parse_result result = document_.load_buffer(text_.data(), text_.size());
    if (!result) fail(result.offset, std::string("this is no XML: ") + result.description());
    system_ = document_.child("system");
    if (!system_) fail(0, "there is no <system>: this is no topology of NCCL");
  }

  void read() {
    find_gpus(system_, 0);
    if (gpus_.empty()) fail(system_, "there is no <gpu>");
    std::sort(gpus_.begin(), gpus_.end(), [this](const auto& a, const auto& b) {
      return number(a, "dev", 0, 1 << 20) < number(b, "dev", 0, 1 << 20);
    });
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const std::string bus = gpus_[i].parent().attribute("busid").value();
      const std::string name = "accelerator" + std::to_string(i);
      if (!by_bus_.emplace(bus, name).second) fail(gpus_[i], "a second GPU on bus '" + bus + "'");
    }
    int cpus = 0;
    for (const pugi::xml_node cpu : system_.children("cpu")) {
      const std::string name = "cpu" + std::to_string(cpus++);
      if (cpus > 1) wires_.push_back({"cpu0", name, "host", 1, between_cpus(cpu)});
      for (const pugi::xml_node pci : cpu.children("pci")) add_pci(pci, name, name, 0);
    }
    if (cpus == 0) fail(system_, "there is no <cpu>");
  }

  std::size_t gpus() const { return gpus_.size(); }
  /// @throws config::ConfigError for a GPU of another generation than the first.
  const Generation& generation(const pugi::xml_node& gpu) const {
    const std::int64_t sm = number(gpu, "sm", 0, 10000);
    for (const Generation& known : kGenerations) {
      if (known.sm == sm) return known;
    }
    fail(gpu, "the NVLink rate of sm " + std::to_string(sm) + " is not known");
  }
  const Generation& generation() const { return generation(gpus_.front()); }

  const std::vector<Wire>& wires() const { return wires_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  [[noreturn]] void fail(std::ptrdiff_t offset, const std::string& what) const {
    const auto end = static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0));
    const std::string_view before = std::string_view(text_).substr(0, end);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    config::Diagnostics diagnostics;
    diagnostics.add_source(path_, text_);
    diagnostics.error({path_, static_cast<int>(line), static_cast<int>(before.size() - start + 1)},
                      1, what);
    diagnostics.throw_if_errors();
    throw std::logic_error("an error that is none");
  }
  [[noreturn]] void fail(const pugi::xml_node& node, const std::string& what) const {
    fail(node.offset_debug(), what);
  }

  std::int64_t number(const pugi::xml_node& node, const char* key, std::int64_t low,
                      std::int64_t high) const {
    const std::string_view text = node.attribute(key).value();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
      fail(node, std::string("'") + key + "' must be a number between " + std::to_string(low) +
                     " and " + std::to_string(high) + ", not '" + std::string(text) + "'");
    }
    return value;
  }

  void find_gpus(const pugi::xml_node& node, int depth) {
    if (depth > kMostDepth) fail(node, "nested too deep");
    for (const pugi::xml_node child : node.children()) {
      if (std::string_view(child.name()) == "gpu") gpus_.push_back(child);
      find_gpus(child, depth + 1);
    }
  }

  /// Line rate of a PCI Express link: 8b/10b to 5 GT/s, then 128b/130b. NCCL takes what it cannot
  /// read for 16 lanes of generation 3, as here.
  BytesPerSecond pci_rate(const pugi::xml_node& pci) {
    const std::string_view speed = pci.attribute("link_speed").value();
    double transfers = 0;  // GT/s
    std::from_chars(speed.data(), speed.data() + speed.size(), transfers);
    if (!(transfers > 0 && transfers <= 1000)) {
      notes_.push_back(std::string("bus ") + pci.attribute("busid").value() +
                       " tells no link_speed: taken for 8 GT/s");
      transfers = 8;
    }
    const bool given = !std::string_view(pci.attribute("link_width").value()).empty();
    std::int64_t lanes = given ? number(pci, "link_width", 0, 64) : 16;
    if (lanes == 0) lanes = 16;
    const double coding = transfers < 6 ? 0.8 : 128.0 / 130;
    return BytesPerSecond(transfers * 1e9 / 8 * coding * static_cast<double>(lanes));
  }

  /// As NCCL assumes it (src/graph/topo.h: AMD_BW, SKL_QPI_BW, ARM_BW).
  static BytesPerSecond between_cpus(const pugi::xml_node& cpu) {
    const std::string_view vendor = cpu.attribute("vendor").value();
    if (vendor == "AuthenticAMD") return 16_GBps;
    return std::string_view(cpu.attribute("arch").value()) == "arm64" ? 6_GBps : 10_GBps;
  }

  void add_pci(const pugi::xml_node& pci, const std::string& parent, const std::string& cpu,
               int depth) {
    if (depth > kMostDepth || wires_.size() > kMostVertices) fail(pci, "too many PCI devices");
    const BytesPerSecond rate = pci_rate(pci);
    if (const pugi::xml_node gpu = pci.child("gpu")) {
      const std::string name = by_bus_.at(pci.attribute("busid").value());
      wires_.push_back({parent, name, "host", 1, rate});
      add_gpu_links(gpu, name, cpu);
      return;
    }
    const bool is_nic = !pci.child("nic").empty();
    const std::string name =
        is_nic ? "nic" + std::to_string(nics_++) : "pci" + std::to_string(bridges_++);
    wires_.push_back({parent, name, "host", 1, rate});
    for (const pugi::xml_node below : pci.children("pci")) add_pci(below, name, cpu, depth + 1);
  }

  void add_gpu_links(const pugi::xml_node& gpu, const std::string& name, const std::string& cpu) {
    for (const pugi::xml_node link : gpu.children("nvlink")) {
      const std::int64_t count = number(link, "count", 1, kMostLinks);
      const std::string target = link.attribute("target").value();
      const std::string_view type = link.attribute("tclass").value();
      const BytesPerSecond rate = generation(gpu).nvlink;
      if (type == "0x068001") {
        wires_.push_back({cpu, name, "host", count, rate});
      } else if (type == "0x068000") {
        const auto known = switches_.emplace(target, "nvswitch" + std::to_string(switches_.size()));
        wires_.push_back({name, known.first->second, "scale_up", count, rate});
      } else {
        const auto other = by_bus_.find(target);
        if (other == by_bus_.end()) fail(link, "there is no GPU on bus '" + target + "'");
        if (other->second == name) fail(link, "a GPU has no link to itself");
        const bool first = other->second.size() != name.size() ? name.size() < other->second.size()
                                                               : name < other->second;
        if (first) wires_.push_back({name, other->second, "scale_up", count, rate});
      }
    }
    for (const pugi::xml_node link : gpu.children("c2c")) {  // bw in MB/s
      const auto rate = static_cast<double>(number(link, "bw", 1, 100000000)) * 1e6;
      wires_.push_back(
          {cpu, name, "host", number(link, "count", 1, kMostLinks), BytesPerSecond(rate)});
    }
  }

  std::string path_, text_;
  pugi::xml_document document_;
  pugi::xml_node system_;
  std::vector<pugi::xml_node> gpus_;             // by device number
  std::map<std::string, std::string> by_bus_;    // names of GPUs
  std::map<std::string, std::string> switches_;  // names by bus
  int nics_ = 0, bridges_ = 0;
  std::vector<Wire> wires_;
  std::vector<std::string> notes_;
};

std::string to_yaml(const TopologyReader& topology, const std::string& base) {
  std::ostringstream out;
  out << "# Links of a node as NCCL dumped them; all else as the system that it extends.\n"
      << "extends: " << base << "\n"
      << "name: " << base << " with the links of an NCCL topology\n"
      << "accelerators: {value: " << topology.gpus() << ", source: the topology of NCCL}\n"
      << "accelerators_per_node: " << topology.gpus() << "\n\n"
      << "scale_up:\n  kind: graph\n  wires:\n";
  for (const Wire& wire : topology.wires()) {
    out << "    - {from: " << wire.from << ", to: " << wire.to << ", kind: " << wire.kind
        << ", links: " << wire.links << ", bandwidth: " << print(wire.bandwidth) << "}\n";
  }
  return out.str();
}

ImportedTable import_nccl_topology(const std::string& path, const ImportOptions& options) {
  TopologyReader topology(path);
  topology.read();
  std::string base = options.system;
  if (base.empty()) {
    const char* known = topology.generation().system;
    if (known == nullptr) {
      throw config::ConfigError(path +
                                ": the library has no system of this GPU; name one with "
                                "--system that the topology extends");
    }
    base = known;
  }
  ImportedTable table;
  table.columns = {"from", "to", "kind", "links", "bytes_per_s"};
  for (const Wire& wire : topology.wires()) {
    table.rows.push_back(
        {wire.from, wire.to, std::string(wire.kind), wire.links, wire.bandwidth.base()});
  }
  table.notes = topology.notes();
  table.document = to_yaml(topology, base);
  return table;
}

const ImporterRegistry::Register registered_nccl_topology(
    "nccl-topology", "NCCL_TOPO_DUMP_FILE of a node: a system of kind graph", import_nccl_topology);

}  // namespace

}  // namespace orrery
