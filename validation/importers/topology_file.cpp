// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/topology_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "sim/config/diagnostics.h"
#include "validation/importers/gpu_parts.h"
#include "validation/importers/log_text.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

using namespace literals;

constexpr int kMostDepth = 32;
constexpr std::int64_t kMostLinks = 1000;
constexpr std::size_t kMostVertices = 2048;
constexpr std::string_view kUnseen = "fffffff:ffff:ff.0";  // a switch outside of the node

/// "0000:1b:00.0": in small letters, with a domain of four digits and a function. NVML writes
/// domains of eight digits, and some tools no function.
std::string plain_bus(std::string_view text) {
  std::string bus;
  for (const char c : text) bus += c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  if (bus.find('.') == bus.npos) bus += ".0";
  while (bus.find(':') > 4 && bus.starts_with('0') && bus.find(':') != bus.npos) bus.erase(0, 1);
  return bus;
}

bool is_named(const pugi::xml_node& node, std::string_view name) { return node.name() == name; }

/// 3D and other display controllers and processing accelerators, not the VGA of a board's
/// management (PCI Code and ID Assignment Specification).
bool has_gpu_class(const pugi::xml_node& pci) {
  const std::string_view code = pci.attribute("class").value();
  return code.starts_with("0x0302") || code.starts_with("0x0380") || code.starts_with("0x1200");
}

/// As NCCL assumes it (src/graph/topo.h: AMD_BW, SKL_QPI_BW, ARM_BW).
BytesPerSecond between_cpus(const pugi::xml_node& cpu) {
  const std::string_view vendor = cpu.attribute("vendor").value();
  if (vendor == "AuthenticAMD" || vendor == "AMD") return 16_GBps;
  return std::string_view(cpu.attribute("arch").value()) == "arm64" ? 6_GBps : 10_GBps;
}

std::uint16_t pci_number(const pugi::xml_node& pci, const char* key) {
  std::string_view text = pci.attribute(key).value();
  if (!text.starts_with("0x")) return 0;
  text.remove_prefix(2);
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? value : std::uint16_t{0};
}

}  // namespace

TopologyFile::TopologyFile(const std::string& path) : path_(path), text_(read_log(path)) {
  const pugi::xml_parse_result result = document_.load_buffer(text_.data(), text_.size());
  if (!result) fail(result.offset, std::string("this is no XML: ") + result.description());
  const pugi::xml_node system = document_.child("system");
  if (!system) fail(0, "there is no <system>: this is no topology of NCCL");
  if (!system.child("cpu")) fail(system, "there is no <cpu>");
  for (const bool stub : {false, true}) {
    is_stub_ = stub;
    for (const pugi::xml_node cpu : system.children("cpu")) {
      const auto host = hosts_.try_emplace(cpu.attribute("host_hash").value(), hosts_.size()).first;
      find_gpus(cpu, host->second, 0);
    }
    if (!gpus_.empty()) break;
  }
  if (gpus_.empty()) fail(system, "there is no <gpu>, and no PCI device of a GPU's class");
  order_gpus();
  add_cpus(system);
  join_peers();
  join_switches();
  if (own_links_ > 0)
    note(
        fmt::format("left out {} links of GPUs to themselves, which hypervisors show for those "
                    "that they hide",
                    own_links_));
  if (lost_links_ > 0)
    note(fmt::format("left out {} links to GPUs that are not in the file", lost_links_));
  if (untold_speeds_ > 0)
    note(fmt::format("{} PCI devices tell no link_speed: taken for 8 GT/s", untold_speeds_));
}

bool TopologyFile::has_scale_up() const {
  return std::any_of(wires_.begin(), wires_.end(), [](const TopologyWire& wire) {
    return std::string_view(wire.kind) == "scale_up";
  });
}

void TopologyFile::note(const std::string& text) { notes_.push_back(path_ + ": " + text); }

void TopologyFile::fail(std::ptrdiff_t offset, const std::string& what) const {
  const auto end = static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0));
  const std::string_view before = std::string_view(text_).substr(0, std::min(end, text_.size()));
  config::throw_error(text_, place_behind(path_, before), 1, what);
}

void TopologyFile::fail(const pugi::xml_node& node, const std::string& what) const {
  fail(node.offset_debug(), what);
}

std::int64_t TopologyFile::number(const pugi::xml_node& node, const char* key, std::int64_t low,
                                  std::int64_t high) const {
  const std::string_view text = node.attribute(key).value();
  const auto value = whole_number<std::int64_t>(text);
  if (!value || *value < low || *value > high)
    fail(node,
         fmt::format("'{}' must be a number between {} and {}, not '{}'", key, low, high, text));
  return *value;
}

void TopologyFile::find_gpus(const pugi::xml_node& node, std::size_t host, int depth) {
  if (depth > kMostDepth) fail(node, "nested too deep");
  for (const pugi::xml_node child : node.children()) {
    if (!is_stub_ && is_named(child, "gpu")) gpus_.push_back({node, child, host});
    if (is_stub_ && is_named(child, "pci") && has_gpu_class(child)) {
      gpus_.push_back({child, {}, host});
    }
    find_gpus(child, host, depth + 1);
  }
}

/// Sorts by rank; without ranks by device number, and else leaves the order of the file.
void TopologyFile::order_gpus() {
  for (const char* key : {"rank", "dev"}) {
    std::set<std::pair<std::size_t, std::string>> numbers;
    const bool told = std::all_of(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) {
      const std::size_t host = std::string_view(key) == "dev" ? gpu.host : 0;
      return gpu.gpu.attribute(key) && numbers.emplace(host, gpu.gpu.attribute(key).value()).second;
    });
    if (!told) continue;
    std::stable_sort(gpus_.begin(), gpus_.end(), [&](const Gpu& a, const Gpu& b) {
      const std::int64_t first = number(a.gpu, key, 0, 1 << 20);
      const std::int64_t second = number(b.gpu, key, 0, 1 << 20);
      const bool by_host = std::string_view(key) == "dev" && a.host != b.host;
      return by_host ? a.host < b.host : first < second;
    });
    break;
  }
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    gpus_[i].name = "accelerator" + std::to_string(i);
    const std::string bus = plain_bus(gpus_[i].pci.attribute("busid").value());
    if (!by_bus_.emplace(std::pair(gpus_[i].host, bus), i).second)
      fail(gpus_[i].pci, "a second GPU on bus '" + bus + "'");
  }
}

void TopologyFile::add_cpus(const pugi::xml_node& system) {
  std::map<std::size_t, std::string> first;  // of each host
  for (const pugi::xml_node cpu : system.children("cpu")) {
    const std::string name = "cpu" + std::to_string(cpus_++);
    const std::size_t host = hosts_.at(cpu.attribute("host_hash").value());
    const auto [known, is_first] = first.try_emplace(host, name);
    if (!is_first) wires_.push_back({known->second, name, "host", 1, between_cpus(cpu)});
    for (const pugi::xml_node child : cpu.children()) {
      if (is_named(child, "pci")) add_pci(child, name, name, host, 0);
      if (is_named(child, "nic")) add_nic(child, name);
    }
  }
}

/// Line rate of a PCI Express link: 8b/10b to 5 GT/s, then 128b/130b. NCCL takes what it cannot
/// read for 16 lanes of generation 3, as here.
BytesPerSecond TopologyFile::pci_rate(const pugi::xml_node& pci) {
  const std::string_view speed = pci.attribute("link_speed").value();
  double transfers = 0;  // GT/s
  std::from_chars(speed.data(), speed.data() + speed.size(), transfers);
  if (!(transfers > 0 && transfers <= 1000)) {
    ++untold_speeds_;
    transfers = 8;
  }
  // Virtual machines show no width, 0 or 255.
  std::int64_t lanes = parse_count(pci.attribute("link_width").value()).value_or(0);
  if (lanes == 0 || lanes > 64) lanes = 16;
  const double coding = transfers < 6 ? 0.8 : 128.0 / 130;
  return BytesPerSecond(transfers * 1e9 / 8 * coding * static_cast<double>(lanes));
}

/// A NIC that is no PCI device, such as that of a virtual machine.
void TopologyFile::add_nic(const pugi::xml_node& nic, const std::string& cpu) {
  const std::string name = "nic" + std::to_string(nics_++);
  double rate = 0;
  for (const pugi::xml_node net : nic.children("net")) {
    if (net.attribute("speed")) rate += static_cast<double>(number(net, "speed", 0, 100000000));
  }
  if (rate > 0) {
    wires_.push_back({cpu, name, "host", 1, BytesPerSecond(rate * 1e6 / 8)});  // Mb/s
  } else {
    note(name + " below " + cpu + " tells no speed and is left out");
  }
}

void TopologyFile::add_pci(const pugi::xml_node& pci, const std::string& parent,
                           const std::string& cpu, std::size_t host, int depth) {
  if (depth > kMostDepth || wires_.size() > kMostVertices) fail(pci, "too many PCI devices");
  const BytesPerSecond rate = pci_rate(pci);
  const Gpu* gpu = gpu_on(host, pci.attribute("busid").value());
  if (gpu != nullptr && gpu->pci == pci) {
    wires_.push_back({parent, gpu->name, "host", 1, rate});
    add_gpu_links(*gpu, cpu);
    return;
  }
  const bool is_nic = !pci.child("nic").empty() ||
                      std::string_view(pci.attribute("class").value()).starts_with("0x02");
  const std::string name =
      is_nic ? "nic" + std::to_string(nics_++) : "pci" + std::to_string(bridges_++);
  wires_.push_back({parent, name, "host", 1, rate});
  for (const pugi::xml_node below : pci.children("pci")) {
    add_pci(below, name, cpu, host, depth + 1);
  }
}

const TopologyFile::Gpu* TopologyFile::gpu_on(std::size_t host, const std::string& bus) const {
  const auto found = by_bus_.find({host, plain_bus(bus)});
  return found == by_bus_.end() ? nullptr : &gpus_[found->second];
}

std::optional<BytesPerSecond> TopologyFile::link_rate(const Gpu& gpu, bool is_xgmi) const {
  const Identity identity = identity_of(gpu);
  return is_xgmi ? xgmi_rate(identity.architecture) : nvlink_rate(identity.sm);
}

void TopologyFile::add_gpu_links(const Gpu& gpu, const std::string& cpu) {
  for (const pugi::xml_node link : gpu.gpu.children()) {
    if (is_named(link, "nvlink") || is_named(link, "xgmi")) add_link(gpu, link, cpu);
    if (!is_named(link, "c2c")) continue;
    const auto rate = static_cast<double>(number(link, "bw", 1, 100000000)) * 1e6;  // MB/s
    wires_.push_back(
        {cpu, gpu.name, "host", number(link, "count", 1, kMostLinks), BytesPerSecond(rate)});
  }
}

void TopologyFile::add_link(const Gpu& gpu, const pugi::xml_node& link, const std::string& cpu) {
  const std::int64_t count = number(link, "count", 1, kMostLinks);
  const std::string bus = plain_bus(link.attribute("target").value());
  const std::string_view type = link.attribute("tclass").value();
  const auto rate = link_rate(gpu, is_named(link, "xgmi"));
  if (type == "0x068001") {
    wires_.push_back({cpu, gpu.name, "host", count, rate});
    return;
  }
  if (type == "0x068000" || bus == kUnseen) {
    // Switches outside of the node are the same for all hosts of a fabric.
    const std::size_t host = bus == kUnseen ? hosts_.size() : gpu.host;
    const auto known =
        switches_.emplace(std::pair(host, bus), "nvswitch" + std::to_string(switches_.size()));
    wires_.push_back({gpu.name, known.first->second, "scale_up", count, rate});
    return;
  }
  const Gpu* other = gpu_on(gpu.host, bus);
  if (other == nullptr || other == &gpu) {
    (other == nullptr ? lost_links_ : own_links_) += count;
    return;
  }
  const auto self = static_cast<std::size_t>(&gpu - gpus_.data());
  const auto peer = static_cast<std::size_t>(other - gpus_.data());
  Peers& peers = peers_[{std::min(self, peer), std::max(self, peer)}];
  peers.links[self < peer ? 0 : 1] += count;
  peers.bandwidth = rate;
}

void TopologyFile::join_peers() {
  for (const auto& [ends, peers] : peers_) {
    const std::string& from = gpus_[ends.first].name;
    const std::string& to = gpus_[ends.second].name;
    if (peers.links[0] != peers.links[1])
      note(fmt::format("{} tells {} links to {}, and that one {}: the larger number is taken", from,
                       peers.links[0], to, peers.links[1]));
    wires_.push_back(
        {from, to, "scale_up", std::max(peers.links[0], peers.links[1]), peers.bandwidth});
  }
}

/// Links between switches are not in the file. Where no switch has all GPUs, as on the two boards
/// of a DGX-2, all are taken for one, as NCCL does.
void TopologyFile::join_switches() {
  std::map<std::string, std::set<std::string>> reached;  // switches of each GPU
  for (const TopologyWire& wire : wires_) {
    if (wire.to.starts_with("nvswitch")) reached[wire.from].insert(wire.to);
  }
  const bool same = std::all_of(reached.begin(), reached.end(), [&](const auto& gpu) {
    return gpu.second == reached.begin()->second;
  });
  if (same || reached.size() < gpus_.size()) return;
  note(
      "no switch has links to all GPUs, and links between switches are not in the file: all "
      "switches are taken for one, as NCCL does");
  for (TopologyWire& wire : wires_) {
    if (wire.to.starts_with("nvswitch")) wire.to = "nvswitch0";
  }
}

TopologyFile::Identity TopologyFile::identity_of(const Gpu& gpu) const {
  Identity identity{pci_number(gpu.pci, "vendor"), pci_number(gpu.pci, "device"),
                    gpu.gpu.attribute("gcn").value(), 0};
  if (gpu.gpu.attribute("sm")) identity.sm = static_cast<int>(number(gpu.gpu, "sm", 0, 10000));
  return identity;
}

TopologyFile::Identity TopologyFile::identity() const {
  Identity first = identity_of(gpus_.front());
  for (const Gpu& gpu : gpus_) {
    if (!(identity_of(gpu) == first)) fail(gpu.pci, "another GPU than the first one");
  }
  return first;
}

}  // namespace orrery
