// SPDX-License-Identifier: Apache-2.0
// Infrastructure of InfraGraph as one system of kind `graph`: an accelerator for every `xpu`, a
// switch for every other component, a wire for every edge, the same both ways.
//
// Messages between accelerators take wires of kind `host` only where nothing else leads there.
// Those are the edges inside a server that touch its processors, memory or NICs, or what these
// reach without passing an accelerator: its PCIe tree. Edges that leave this part of a server are
// wires of kind `scale_out`, all others `scale_up`.
//
// Bandwidths that the file does not tell: between components that are no accelerators the largest
// of what is told of others at the same end, because ports carry what their links bring; else an
// equal part of the accelerator's ports, of its link to the host, of its NIC.
//
// Latencies: a step of a collective takes that of the links between the two nearest accelerators,
// and each further link of a way what makes the way between the two farthest right.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <queue>
#include <sstream>

#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/config/load.h"
#include "sim/units/text.h"
#include "validation/importers/gpu_parts.h"
#include "validation/importers/importer.h"
#include "validation/importers/infragraph_file.h"

namespace orrery {
namespace {

enum class InfraKind : std::uint8_t { kScaleUp, kScaleOut, kHost };

const char* wire_kind(InfraKind kind) {
  switch (kind) {
    case InfraKind::kScaleOut:
      return "scale_out";
    case InfraKind::kHost:
      return "host";
    case InfraKind::kScaleUp:
      break;
  }
  return "scale_up";
}

bool is_accelerator(const InfraVertex& vertex) {
  return vertex.type == "xpu" || vertex.type == "npu";  // npu: before v0.5.0
}

bool is_of_host(const InfraVertex& vertex) {
  return vertex.type == "cpu" || vertex.type == "memory" || vertex.type == "nic";
}

/// Ports of an accelerator of the library.
class InfraPorts {
 public:
  explicit InfraPorts(const std::string& accelerator) : name_(accelerator) {
    const config::Library& library = config::default_library();
    config::Diagnostics diagnostics;
    node_ = config::load_file(library.locate("accelerators", accelerator, ""), diagnostics, library,
                              "accelerators");
    diagnostics.throw_if_errors();
  }

  BytesPerSecond of(InfraKind kind) const {
    const char* block = kind == InfraKind::kScaleUp ? "scale_up"
                        : kind == InfraKind::kHost  ? "host_link"
                                                    : "scale_out";
    const config::Node* value = node_.at_path(std::string(block) + ".bandwidth");
    if (value != nullptr && value->is_map()) value = value->find("value");
    if (value == nullptr || !value->is_scalar())
      throw config::ConfigError("accelerator " + name_ + " has no " + block +
                                ".bandwidth for links whose bandwidth the file does not tell");
    return parse<BytesPerSecond>(value->text());
  }

 private:
  std::string name_;
  config::Node node_;
};

Seconds whole_picoseconds(Seconds time) { return Seconds(std::round(time.base() * 1e12) / 1e12); }

/// The graph with what a system has to know of its edges.
class InfraSystem {
 public:
  InfraSystem(std::string path, InfraGraph graph)
      : path_(std::move(path)), graph_(std::move(graph)), at_(graph_.vertices.size()) {
    for (std::size_t edge = 0; edge < graph_.edges.size(); ++edge) {
      at_[graph_.edges[edge].from].push_back(edge);
      at_[graph_.edges[edge].to].push_back(edge);
    }
    for (std::size_t vertex = 0; vertex < graph_.vertices.size(); ++vertex)
      if (is_accelerator(graph_.vertices[vertex])) ranks_.push_back(vertex);
    if (ranks_.empty()) throw config::ConfigError(path_ + ": there is no component of type xpu");
    find_kinds();
    find_latencies();
  }

  std::size_t accelerators() const { return ranks_.size(); }
  const std::vector<std::string>& notes() const { return graph_.notes; }
  const std::string& name() const { return graph_.name; }
  bool lacks_bandwidths() const {
    return std::any_of(graph_.edges.begin(), graph_.edges.end(),
                       [](const InfraEdge& edge) { return !edge.bandwidth; });
  }

  /// Accelerators of each copy of a device that has some; 0: they have different numbers.
  std::size_t accelerators_of_copy() const {
    std::map<int, std::size_t> counts;
    for (const std::size_t rank : ranks_) ++counts[graph_.vertices[rank].copy];
    const std::size_t first = counts.begin()->second;
    const bool alike = std::all_of(counts.begin(), counts.end(),
                                   [&](const auto& count) { return count.second == first; });
    return alike ? first : 0;
  }
  std::size_t processors() const {
    return static_cast<std::size_t>(
        std::count_if(graph_.vertices.begin(), graph_.vertices.end(),
                      [](const InfraVertex& vertex) { return vertex.type == "cpu"; }));
  }

  bool tells_latency() const { return nearest_.told; }
  Seconds step_latency() const { return whole_picoseconds(nearest_.latency); }
  Seconds hop_latency() const {
    const int further = farthest_.links - nearest_.links;
    if (further <= 0 || farthest_.latency <= nearest_.latency) return {};
    return whole_picoseconds((farthest_.latency - nearest_.latency) / static_cast<double>(further));
  }

  /// Fills in the bandwidths that the file does not tell.
  void fill_bandwidths(const InfraPorts* ports) {
    std::vector<std::optional<BytesPerSecond>> found(graph_.edges.size());
    std::map<InfraKind, int> of_ports;
    int of_neighbours = 0;
    for (std::size_t i = 0; i < graph_.edges.size(); ++i) {
      const InfraEdge& edge = graph_.edges[i];
      if (edge.bandwidth) continue;
      if (!rank_of(edge.from) && !rank_of(edge.to)) found[i] = largest_beside(edge);
      if (found[i]) {
        ++of_neighbours;
        continue;
      }
      ++of_ports[kinds_[i]];
      if (ports == nullptr)
        throw config::ConfigError(path_ + ": the bandwidth between " + name_of(edge.from) +
                                  " and " + name_of(edge.to) +
                                  " is not told; name the accelerator with --accelerator, whose "
                                  "ports then have it");
      found[i] = ports->of(kinds_[i]) / static_cast<double>(sharing(i));
    }
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i]) graph_.edges[i].bandwidth = found[i];
    if (of_neighbours > 0)
      graph_.notes.push_back("no bandwidth: " + std::to_string(of_neighbours) +
                             " edges, which have that of the links at their ends");
    for (const auto& [kind, count] : of_ports)
      graph_.notes.push_back("no bandwidth: " + std::to_string(count) + " edges of kind " +
                             wire_kind(kind) + ", which have that of the accelerator's ports");
  }

  /// Scale-up bandwidth of every accelerator and its number of links; nothing where they differ.
  std::optional<std::pair<BytesPerSecond, int>> ports() const {
    std::optional<std::pair<BytesPerSecond, int>> all;
    for (const std::size_t rank : ranks_) {
      std::pair<BytesPerSecond, int> own{BytesPerSecond(0), 0};
      for (const std::size_t edge : at_[rank]) {
        if (kinds_[edge] != InfraKind::kScaleUp) continue;
        own.first += *graph_.edges[edge].bandwidth;
        ++own.second;
      }
      if (own.second == 0 || (all && *all != own)) return {};
      all = own;
    }
    return all;
  }

  /// A row for all parallel edges between two components.
  std::vector<std::vector<ImportedCell>> rows() const {
    std::map<std::tuple<std::string, std::string, InfraKind, double>, std::int64_t> wires;
    for (std::size_t i = 0; i < graph_.edges.size(); ++i) {
      const InfraEdge& edge = graph_.edges[i];
      ++wires[{name_of(edge.from), name_of(edge.to), kinds_[i], edge.bandwidth->base()}];
    }
    std::vector<std::vector<ImportedCell>> rows;
    for (const auto& [wire, links] : wires) {
      const auto& [from, to, kind, bandwidth] = wire;
      rows.push_back({from, to, std::string(wire_kind(kind)), links, bandwidth});
    }
    return rows;
  }

 private:
  /// A way between two accelerators.
  struct Way {
    int links = 0;
    Seconds latency;
    bool told = false;
  };

  std::optional<std::size_t> rank_of(std::size_t vertex) const {
    const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), vertex);
    if (found == ranks_.end() || *found != vertex) return {};
    return static_cast<std::size_t>(found - ranks_.begin());
  }
  /// "accelerator3", or the name in the file.
  std::string name_of(std::size_t vertex) const {
    if (const auto rank = rank_of(vertex)) return "accelerator" + std::to_string(*rank);
    return graph_.vertices[vertex].name;
  }
  std::size_t other_end(std::size_t edge, std::size_t vertex) const {
    return graph_.edges[edge].from == vertex ? graph_.edges[edge].to : graph_.edges[edge].from;
  }

  void find_kinds() {
    std::vector<bool> has_ranks(static_cast<std::size_t>(graph_.copies));
    for (const std::size_t rank : ranks_)
      has_ranks[static_cast<std::size_t>(graph_.vertices[rank].copy)] = true;
    const auto in_server = [&](std::size_t vertex) {
      return has_ranks[static_cast<std::size_t>(graph_.vertices[vertex].copy)];
    };
    std::vector<bool> of_host(graph_.vertices.size());
    std::vector<std::size_t> next;
    const auto reach = [&](std::size_t vertex) {
      if (of_host[vertex] || rank_of(vertex)) return;
      of_host[vertex] = true;
      next.push_back(vertex);
    };
    for (std::size_t vertex = 0; vertex < graph_.vertices.size(); ++vertex)
      if (in_server(vertex) && is_of_host(graph_.vertices[vertex])) reach(vertex);
    while (!next.empty()) {
      const std::size_t vertex = next.back();
      next.pop_back();
      for (const std::size_t edge : at_[vertex]) reach(other_end(edge, vertex));
    }
    for (const InfraEdge& edge : graph_.edges) {
      const bool inside = graph_.vertices[edge.from].copy == graph_.vertices[edge.to].copy;
      if (!of_host[edge.from] && !of_host[edge.to]) {
        kinds_.push_back(InfraKind::kScaleUp);
      } else {
        kinds_.push_back(inside && in_server(edge.from) ? InfraKind::kHost : InfraKind::kScaleOut);
      }
    }
  }

  /// Ways from an accelerator to all others, as a system of kind graph takes them.
  std::vector<Way> ways_from(std::size_t rank) const {
    constexpr int kDetour = 1000;
    constexpr int kNone = std::numeric_limits<int>::max();
    std::vector<int> distance(graph_.vertices.size(), kNone);
    std::vector<Way> ways(graph_.vertices.size());
    std::priority_queue<std::pair<int, std::size_t>> next;
    distance[rank] = 0;
    next.emplace(0, rank);
    while (!next.empty()) {
      const auto [far, vertex] = next.top();
      next.pop();
      if (-far != distance[vertex]) continue;
      for (const std::size_t edge : at_[vertex]) {
        const std::size_t to = other_end(edge, vertex);
        const int length = -far + (kinds_[edge] == InfraKind::kHost ? kDetour : 1);
        if (length >= distance[to]) continue;
        distance[to] = length;
        const std::optional<Seconds>& latency = graph_.edges[edge].latency;
        ways[to] = {ways[vertex].links + 1, ways[vertex].latency + latency.value_or(Seconds()),
                    ways[vertex].told || latency.has_value()};
        next.emplace(-length, to);
      }
    }
    for (const std::size_t other : ranks_)
      if (distance[other] == kNone)
        throw config::ConfigError(path_ + ": no edges lead from " + graph_.vertices[rank].name +
                                  " to " + graph_.vertices[other].name);
    return ways;
  }

  void find_latencies() {
    bool first = true;
    for (const std::size_t rank : ranks_) {
      const std::vector<Way> ways = ways_from(rank);
      for (const std::size_t other : ranks_) {
        if (other == rank) continue;
        if (first || ways[other].links < nearest_.links) nearest_ = ways[other];
        if (first || ways[other].links > farthest_.links) farthest_ = ways[other];
        first = false;
      }
    }
  }

  std::optional<BytesPerSecond> largest_beside(const InfraEdge& edge) const {
    std::optional<BytesPerSecond> largest;
    for (const std::size_t end : {edge.from, edge.to}) {
      for (const std::size_t other : at_[end]) {
        const std::optional<BytesPerSecond>& told = graph_.edges[other].bandwidth;
        if (told && (!largest || *told > *largest)) largest = told;
      }
    }
    return largest;
  }

  /// Edges of an accelerator whose bandwidth is not told and which share its ports with this one.
  int sharing(std::size_t edge) const {
    const std::size_t from = graph_.edges[edge].from, to = graph_.edges[edge].to;
    if (!rank_of(from) && !rank_of(to)) return 1;
    const std::size_t rank = rank_of(from) ? from : to;
    return static_cast<int>(
        std::count_if(at_[rank].begin(), at_[rank].end(), [&](std::size_t other) {
          return !graph_.edges[other].bandwidth && kinds_[other] == kinds_[edge];
        }));
  }

  std::string path_;
  InfraGraph graph_;
  std::vector<std::vector<std::size_t>> at_;  // edges by vertex
  std::vector<std::size_t> ranks_;            // vertices that are accelerators
  std::vector<InfraKind> kinds_;              // by edge
  Way nearest_, farthest_;
};

/// The accelerator of a system of the library; empty where it is written out there.
std::string accelerator_of(const std::string& system) {
  const config::Library& library = config::default_library();
  config::Diagnostics diagnostics;
  const config::Node node =
      config::load_file(library.locate("systems", system, ""), diagnostics, library, "systems");
  diagnostics.throw_if_errors();
  const config::Node* accelerator = node.find("accelerator");
  return accelerator != nullptr && accelerator->is_scalar() ? accelerator->text() : std::string();
}

std::string quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

class InfraText {
 public:
  InfraText(const std::string& file, const InfraSystem& system) : system_(system) {
    source_ = std::filesystem::path(file).filename().string();
  }

  std::string text(const std::string& base, const std::string& accelerator) {
    const std::string name = system_.name().empty() ? source_ : system_.name();
    out_ << "# Components and links of an InfraGraph" << (base.empty() ? "" : "; all else as ")
         << base << ".\n";
    if (!base.empty()) out_ << "extends: " << base << "\n";
    out_ << "system: infragraph\nname: " << quoted(name) << "\n";
    put_accelerator(accelerator);
    const std::size_t all = system_.accelerators(), of_copy = system_.accelerators_of_copy();
    out_ << "accelerators: " << fact(std::to_string(all), "components of type xpu")
         << "\naccelerators_per_node: " << (of_copy > 0 ? of_copy : all) << "\n";
    put_scale_up(base.empty());
    if (base.empty()) put_rest();
    return out_.str();
  }

 private:
  std::string fact(const std::string& value, const std::string& why) const {
    return "{value: " + value + ", source: " + quoted(source_ + ": " + why) + "}";
  }
  static std::string estimate(const std::string& value, const std::string& why) {
    return "{value: " + value + ", source: " + quoted("estimate: " + why) + "}";
  }

  void put_accelerator(const std::string& accelerator) {
    if (accelerator.empty()) return;
    const auto ports = system_.ports();
    if (!ports) {
      out_ << "accelerator: " << accelerator << "\n";
      return;
    }
    out_ << "accelerator:\n  extends: " << accelerator << "\n  scale_up:\n    bandwidth: "
         << fact(print(ports->first), "edges of an xpu that are no host's") << "\n    links: "
         << fact(std::to_string(ports->second), "edges of an xpu that are no host's") << "\n";
  }

  void put_scale_up(bool alone) {
    out_ << "scale_up:\n  kind: graph\n";
    if (system_.tells_latency()) {
      out_ << "  latency: "
           << fact(print(system_.step_latency()), "links between the nearest xpus, no software")
           << "\n  hop_latency: "
           << fact(print(system_.hop_latency()), "links between the farthest xpus") << "\n";
    } else if (alone) {
      out_ << "  latency: " << estimate("2 us", "the file tells none; a kernel and its message")
           << "\n";
    }
    if (alone) out_ << "  efficiency: " << fact("1", "no overhead") << "\n";
    out_ << "  wires:\n";
    for (const std::vector<ImportedCell>& row : system_.rows()) {
      out_ << "    - {from: " << quoted(to_text(row[0])) << ", to: " << quoted(to_text(row[1]))
           << ", kind: " << to_text(row[2]) << ", links: " << to_text(row[3])
           << ", bandwidth: " << print(BytesPerSecond(std::get<double>(row[4]))) << "}\n";
    }
  }

  /// Systems need these; no message takes them here, where all is one system.
  void put_rest() {
    out_ << "scale_out:\n  latency: " << estimate("5 us", "between copies of the whole")
         << "\n  efficiency: " << estimate("1", "between copies of the whole")
         << "\nhost:\n  processors: "
         << fact(std::to_string(std::max<std::size_t>(1, system_.processors())),
                 "components of type cpu")
         << "\n  memory: " << estimate("2 TB", "the file tells none") << "\n";
  }

  const InfraSystem& system_;
  std::string source_;
  std::ostringstream out_;
};

ImportedTable import_infragraph(const std::string& path, const ImportOptions& options) {
  const std::string& base = options.system;
  if (!base.empty()) require_system(base);
  if (base.empty() && options.accelerator.empty())
    throw config::ConfigError(
        path +
        ": the file does not tell which accelerators its xpus are; name one with "
        "--accelerator, or a system of the library with --system");
  InfraSystem system(path, read_infragraph(path));
  const std::string accelerator =
      options.accelerator.empty() ? accelerator_of(base) : options.accelerator;
  std::optional<InfraPorts> ports;
  if (!accelerator.empty()) ports.emplace(accelerator);
  system.fill_bandwidths(ports ? &*ports : nullptr);
  ImportedTable table;
  table.columns = {"from", "to", "kind", "links", "bytes_per_s"};
  table.rows = system.rows();
  const bool is_path = config::Library::is_path(base);
  table.document =
      InfraText(path, system)
          .text(is_path ? std::filesystem::absolute(base).string() : base, accelerator);
  for (const std::string& note : system.notes()) table.notes.push_back(path + ": " + note);
  if (!system.tells_latency())
    table.notes.push_back(path + ": no latency: a step takes " +
                          (base.empty() ? "2 us (estimate)" : "that of " + base));
  return table;
}

const ImporterRegistry::Register registered_infragraph(
    "infragraph",
    "infrastructure of InfraGraph (ASTRA-sim 3.0; YAML or JSON): -o writes a system of kind graph",
    import_infragraph);

}  // namespace
}  // namespace orrery
