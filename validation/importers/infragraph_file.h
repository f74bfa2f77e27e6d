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

#include <optional>
#include <string>
#include <vector>

#include "sim/units/units.h"

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

}  // namespace orrery
