// SPDX-License-Identifier: Apache-2.0
// The network and system of an ASTRA-sim run (https://astra-sim.github.io, inputs `--network` and
// `--system`) as a system of ours.
//
// What ASTRA-sim's analytical, congestion-unaware back end does in one dimension of n ranks, and
// what stands for it here (networks of several: astra_dimensions.cpp):
//  - `bandwidth` is that of one link in GB/s, a GB of 2^30 bytes: bytes/ns = GB/s x 2^30 / 1e9;
//  - a message crosses h links of `latency` each: 1 of a Ring (to the next rank) and of a
//    FullyConnected network, 2 of a Switch; each step of a collective waits for them and for
//    `endpoint-delay`, and its bytes cross at the bandwidth of one link;
//  - the buffer S is cut into `preferred-dataset-splits`, of which `active-chunks-per-dimension`
//  are
//    under way at a time; the others begin behind them, so every step costs its latency that often;
//  - where bytes are summed, the rank reads both operands from its memory and writes the sum, at
//    `local-mem-bw` (GB of 1e9 bytes), and sends on after that: 3 / memory bandwidth a byte.
// Steps of an all-reduce, its bytes over a link, and the form that it has here:
//    ring              2(n-1)    2(n-1)/n S   one way round a ring, whatever the network is: ranks
//                                             talk to the next one alone
//    halvingDoubling   2 lg n    2(n-1)/n S   `recursive` behind a switch with a port of one link a
//                                             rank; n a power of two
//    direct            2         2/n S        `direct` on a link for each pair: FullyConnected
// Messages of direct on a Switch or a Ring and of halvingDoubling on a Ring share links: those have
// the form of astra_dimensions.cpp.
// All-reduce: steps (h latency + delay) splits / active + bytes / bandwidth
//   + (n-1)/n S 3 / memory bandwidth. Gathers and reduce-scatters have half of steps and bytes.
#include <cmath>
#include <functional>
#include <sstream>

#include "sim/config/diagnostics.h"
#include "validation/importers/astra_files.h"
#include "validation/importers/importer.h"

namespace orrery {
namespace {

/// The links of a package, and the share of them that a collective has.
struct AstraForm {
  const char* kind;       ///< kind of the scale-up fabric
  std::string wiring;     ///< keys that the kind has
  double line = 0;        ///< bytes/s of all links of a package, one way each
  double share = 1;       ///< payload of a collective over `line`
  double links = 1;       ///< links of a package
  const char* algorithm;  ///< key of the replay
};

AstraForm form_of(const AstraDimension& dimension, AstraAlgorithm algorithm) {
  switch (algorithm) {
    case AstraAlgorithm::kDirect:
      return {"mesh",  "", (dimension.ranks - 1) * dimension.bandwidth, 1, dimension.ranks - 1,
              "direct"};
    case AstraAlgorithm::kHalvingDoubling:
      return {"nvswitch", "\n  links_per_switch: [1]", dimension.bandwidth, 1, 1, "recursive"};
    case AstraAlgorithm::kRing:
      break;
  }
  // Both ways round, of which a collective goes one.
  return {"torus",
          "\n  torus: [" + astra_digits(dimension.ranks) + "]\n  cube: 1",
          2 * dimension.bandwidth,
          0.5,
          2,
          "torus"};
}

std::string system_text(const AstraDimension& dimension, const AstraSystem& system,
                        const std::string& files) {
  const AstraForm form = form_of(dimension, dimension.algorithm);
  const double rounds = std::ceil(system.splits / system.active);
  const double rate = form.line * form.share;
  const double sum_rate = 1 / (1 / rate + (system.memory > 0 ? 3 / system.memory : 0));
  const auto fact = [&](const std::string& value, const char* why) {
    return "{value: " + value + ", source: \"" + files + ": " + why + "\"}";
  };
  const std::string ranks = astra_digits(dimension.ranks);
  const double way = dimension.hops() * dimension.latency_ns;
  // Ranks of a Ring are further apart than the next one; of others all are as near.
  const double hop = dimension.shape == AstraShape::kRing ? dimension.latency_ns : 0;
  std::ostringstream out;
  out << "# A " << dimension.name << " of ASTRA-sim, from " << files
      << ". Its GB of the network have 2^30 bytes.\n"
      << "# Every step of a collective costs the latency as often as chunks follow each other; "
         "single\n"
      << "# messages pay that too, which ASTRA-sim's do not.\n";
  out << "# Collectives take the same time with `algorithm: " << form.algorithm
      << "` in the replay; without it small ones go another, faster way.\n";
  out << "system: astra_" << (dimension.shape == AstraShape::kRing ? "ring" : "network")
      << "\nextends: tpu_v4_pod\nname: ASTRA-sim " << dimension.name << " of " << ranks << "\n";
  put_astra_accelerator(out, {form.line, form.links}, system, fact);
  out << "accelerators: " << fact(ranks, "npus_count") << "\naccelerators_per_node: " << ranks
      << "\nscale_up:\n  kind: " << form.kind << form.wiring << "\n  latency: "
      << fact(astra_digits((way + system.endpoint_delay_ns) * rounds) + " ns",
              "latency and endpoint-delay, once for each chunk that follows another")
      << "\n  hop_latency: " << fact(astra_digits(hop) + " ns", "latency")
      << "\n  efficiency: " << fact("1", "no overhead")
      << "\n  bulk:\n    from: 1 B\n    start: " << fact("0 s", "none")
      << "\n    peer: " << fact("0 s", "none")
      << "\n    efficiency: " << fact(astra_digits(form.share), "links that a collective takes")
      << "\n    sum_efficiency: "
      << fact(astra_digits(sum_rate / form.line),
              "links that a collective takes, then two reads and a write of local memory")
      << "\n";
  return out.str();
}

ImportedTable read_astra_network(const std::string& path, const ImportOptions& options) {
  const AstraRun run = read_astra_run(path, options.system);
  const AstraSystem& system = run.system;
  ImportedTable table;
  table.notes = run.notes;
  table.columns = {"ranks",  "link_bytes_per_s",  "latency_s", "endpoint_delay_s",
                   "splits", "memory_bytes_per_s"};
  const AstraDimension& first = run.dimensions.front();
  // Bytes that are summed as they come from all ranks at once have a rate of their own there.
  const bool sums_at_once = first.algorithm == AstraAlgorithm::kDirect && system.memory > 0;
  std::string algorithm = "dimensions";
  check_astra_algorithms(run, table.notes);
  if (run.dimensions.size() == 1 && !sums_at_once && !first.shares_links()) {
    algorithm = form_of(first, first.algorithm).algorithm;
    table.document = system_text(first, system, run.files);
  } else {
    table.document = astra_dimensions_text(run);
  }
  table.notes.push_back("replay with `algorithm: " + algorithm +
                        "`: a system here does not name one");
  for (const AstraDimension& dimension : run.dimensions)
    table.rows.push_back({static_cast<std::int64_t>(dimension.ranks), dimension.bandwidth,
                          dimension.latency_ns * 1e-9, system.endpoint_delay_ns * 1e-9,
                          system.splits, system.memory});
  return table;
}

const ImporterRegistry::Register astra_network(
    "astra-network",
    "network of ASTRA-sim (YAML), with its system by --system FILE.json: -o writes a system",
    read_astra_network);

}  // namespace
}  // namespace orrery
