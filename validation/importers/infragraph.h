// SPDX-License-Identifier: Apache-2.0
// InfraGraph (Keysight/infragraph v2.4.0, schema/*.yaml; the same since v0.5.0): a description of
// infrastructure that ASTRA-sim 3.0 reads, as YAML or JSON.
//   devices:   components with counts, links, and edges between the components
//   instances: so many copies of a device by a name
//   links:     bandwidth and latency
//   edges:     between components of instances
// Ends of edges are slices as in Python: `host[0:4]`, `nic[0]`, `cx5[:].port[1]`. Schemes:
// `one2one` pairs both ends in order, `many2many` joins each with each, `ring` joins each with the
// next one of both ends together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/node.h"
#include "sim/units/units.h"
#include "validation/importers/importer.h"

namespace orrery {

/// A component of a copy of a device.
struct InfraVertex {
  std::string name;  ///< name with all numbers: "server.0.nic.3"
  std::string type;  ///< "xpu", "nic", "cpu", "switch", "port", "memory", or a type of its own
  int copy = 0;      ///< number of the copy that it is in, over all instances
};

struct InfraEdge {
  std::size_t from = 0, to = 0;
  std::optional<BytesPerSecond> bandwidth;  ///< none: not told
  std::optional<Seconds> latency;           ///< none: not told
};

struct InfraGraph {
  std::string name;
  std::vector<InfraVertex> vertices;
  std::vector<InfraEdge> edges;
  int copies = 0;                  ///< copies of devices
  std::vector<std::string> notes;  ///< what the file has that is left out, each kind in a line
};

/// @throws config::ConfigError with the place of what is wrong
InfraGraph read_infragraph(const std::string& path);

/// Kind of a wire that an edge becomes.
enum class InfraKind : std::uint8_t { kScaleUp, kScaleOut, kHost };
const char* wire_kind(InfraKind kind);

/// Ports of an accelerator of the library.
class InfraPorts {
 public:
  /// @throws config::ConfigError where the library has no such accelerator
  explicit InfraPorts(const std::string& accelerator);

  /// Bandwidth of all ports of a kind, one way; none: the accelerator does not tell.
  std::optional<BytesPerSecond> told(InfraKind kind) const;
  /// @throws config::ConfigError where the accelerator does not tell
  BytesPerSecond of(InfraKind kind) const;

 private:
  std::string name_;
  config::Node node_;
};

/// An InfraGraph with all that a system has to know of its edges.
///
/// Messages between accelerators take wires of kind `host` only where nothing else leads there.
/// Those are the edges inside a server that touch its processors, memory or NICs, or what these
/// reach without passing an accelerator: its PCIe tree. Edges that leave this part of a server are
/// wires of kind `scale_out`, all others `scale_up`.
///
/// Bandwidths that the file does not tell: between components that are no accelerators the largest
/// of those that are told of others at the same end, because ports carry what their links bring;
/// else an equal part of the accelerator's ports, of its link to the host, of its NIC.
///
/// Latencies: a step of a collective takes that of the links between the two nearest accelerators,
/// and each further link of a route makes the route between the two farthest right.
class InfraSystem {
 public:
  /// @param path of the file, for messages
  /// @throws config::ConfigError for a graph without accelerators, or one that is not connected
  InfraSystem(std::string path, InfraGraph graph);

  const std::string& name() const { return graph_.name; }
  const std::vector<std::string>& notes() const { return graph_.notes; }
  std::size_t accelerators() const { return ranks_.size(); }
  /// Accelerators of each copy of a device that has some; 0: they have different numbers.
  std::size_t accelerators_of_copy() const;
  std::size_t processors() const;

  bool tells_latency() const { return nearest_.told; }
  bool tells_hop_latency() const { return farthest_.told; }
  Seconds step_latency() const;
  Seconds hop_latency() const;

  /// Fills in the bandwidths that the file does not tell.
  /// @param ports null: no accelerator is known
  /// @throws config::ConfigError where ports would have to tell
  void fill_bandwidths(const InfraPorts* ports);
  /// Scale-up bandwidth of every accelerator and its number of links; nothing where they differ.
  /// After fill_bandwidths().
  std::optional<std::pair<BytesPerSecond, int>> ports() const;
  /// A row for all parallel edges between two components: from, to, kind, links, bytes/s.
  std::vector<std::vector<ImportedCell>> rows() const;

 private:
  /// A route between two accelerators.
  struct Route {
    int links = 0;
    Seconds latency;
    bool told = false;
  };

  std::optional<std::size_t> rank_of(std::size_t vertex) const;
  std::string name_of(std::size_t vertex) const;
  std::size_t other_end(std::size_t edge, std::size_t vertex) const;
  void find_kinds();
  std::vector<bool> parts_of_hosts(const std::vector<bool>& has_ranks) const;
  std::vector<Route> routes_from(std::size_t rank) const;
  void find_latencies();
  std::optional<BytesPerSecond> largest_beside(const InfraEdge& edge) const;
  int sharing(std::size_t edge) const;

  std::string path_;
  InfraGraph graph_;
  std::vector<std::vector<std::size_t>> at_;  // edges by vertex
  std::vector<std::size_t> ranks_;            // vertices that are accelerators
  std::vector<InfraKind> kinds_;              // by edge
  Route nearest_, farthest_;
};

}  // namespace orrery
