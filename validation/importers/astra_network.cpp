// SPDX-License-Identifier: Apache-2.0
// The network and system of an ASTRA-sim run (https://astra-sim.github.io, inputs `--network` and
// `--system`) as a system of ours.
//
// What ASTRA-sim's analytical, congestion-unaware back end does in one dimension of n ranks, and
// what stands for it here:
//  - `bandwidth` is that of one link in GB/s, a GB of 2^30 bytes: bytes/ns = GB/s x 2^30 / 1e9;
//  - a message crosses h links of `latency` each: 1 of a Ring (to the next rank) and of a
//    FullyConnected network, 2 of a Switch; each step of a collective waits for them and for
//    `endpoint-delay`, and its bytes cross at the bandwidth of one link;
//  - the buffer S is cut into `preferred-dataset-splits`, of which `active-chunks-per-dimension`
//    are under way at a time; the others begin behind them, so every step costs its latency that
//    often;
//  - where bytes are summed, the rank reads both operands from its memory and writes the sum, at
//    `local-mem-bw` (GB of 1e9 bytes), and sends on after that: 3 / memory bandwidth a byte.
// Steps of an all-reduce, its bytes over a link, and the form that it has here:
//    ring              2(n-1)    2(n-1)/n S   one way round a ring, whatever the network is: ranks
//                                             talk to the next one alone
//    halvingDoubling   2 lg n    2(n-1)/n S   `recursive` behind a switch with a port of one link a
//                                             rank; n a power of two
//    direct            2         2/n S        `direct` on a link for each pair: FullyConnected
// All-reduce: steps (h latency + delay) splits / active + bytes / bandwidth
//   + (n-1)/n S 3 / memory bandwidth. Gathers and reduce-scatters have half of steps and bytes.
//
// Networks of several dimensions are scale-up fabrics of kind `dimensions`, and so are those where
// messages share links (direct on a Switch or a Ring, halvingDoubling on a Ring) and where direct
// sums. A collective is cut into chunks as above. Each goes through phases, one dimension after the
// other (Sys.cc, generate_collective); a dimension has a queue and works on
// `active-chunks-per-dimension` of it at a time, first come, first served. In a phase of m messages
// one after the other a rank takes
//
//   (m + 1) endpoint-delay + m (links x latency + message / bandwidth) + sums
//
// since it begins with a delay and each message that came has one (Ring.cc, AllToAll.cc,
// HalvingDoubling.cc). m is n-1 of a ring, 1 of direct, log2 n of halving and doubling for a
// reduce-scatter or all-gather, twice that for an all-reduce. Messages of `direct` are summed at
// once, each with all of the memory, which is n-1 times the rate here. The network rounds each
// message down to whole ns, which is not done here. `links` are those to the farthest partner, and
// `message` is all that crosses the busiest link in a step: messages that share it take as long as
// one of all of them.
#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <sstream>

#include "validation/importers/astra_files.h"
#include "validation/importers/importer.h"

namespace orrery {
namespace {

/// A number as YAML has it.
std::string digits(double value) { return fmt::format("{:.12g}", value); }

/// What a network is here.
struct AstraForm {
  std::string algorithm;  ///< key of the replay
  std::string remarks;    ///< comments of the file
  std::string name;       ///< shapes and sizes
  std::string fabric;     ///< keys of the scale-up fabric
  double line = 0;        ///< bytes/s of all links of a package, one way each
  double links = 0;       ///< how many
};

/// Numbers with the files that they come from.
class Facts {
 public:
  explicit Facts(const AstraRun& run) : files_(run.files) {}
  /// `value`, which may have a unit.
  std::string operator()(const std::string& value, const char* why) const {
    return "{value: " + value + ", source: \"" + files_ + ": " + why + "\"}";
  }
  std::string gigabytes(double bytes, const char* why) const {
    return (*this)(digits(bytes / 1e9) + " GB/s", why);
  }
  std::string nanoseconds(double ns, const char* why) const {
    return (*this)(digits(ns) + " ns", why);
  }

 private:
  const std::string& files_;
};

AstraForm one_dimension(const AstraRun& run, const Facts& fact) {
  const AstraDimension& dimension = run.dimensions.front();
  const std::string ranks = digits(dimension.ranks);
  AstraForm form;
  form.name = dimension.name + " of " + ranks;
  double share = 1;  // payload of a collective over `line`
  std::string kind;
  if (dimension.algorithm == "direct") {
    form.algorithm = "direct";
    form.links = dimension.ranks - 1;
    kind = "mesh";
  } else if (dimension.algorithm == "halving_doubling") {
    form.algorithm = "recursive";
    form.links = 1;
    kind = "nvswitch\n  links_per_switch: [1]";
  } else {
    form.algorithm = "torus";  // both ways round, of which a collective goes one
    form.links = 2;
    share = 0.5;
    kind = "torus\n  torus: [" + ranks + "]\n  cube: 1";
  }
  form.line = form.links * dimension.bandwidth;
  form.remarks =
      "# Every step of a collective costs the latency as often as chunks follow each other; "
      "single\n# messages pay that too, which ASTRA-sim's do not.\n"
      "# Collectives take the same time with `algorithm: " +
      form.algorithm + "` in the replay; without it small ones go another, faster way.\n";
  const double rounds = std::ceil(run.splits / run.active);
  const double way = (dimension.shape == "switch" ? 2 : 1) * dimension.latency_ns;
  // Ranks of a Ring are further apart than the next one; of others all are as near.
  const double hop = dimension.shape == "ring" ? dimension.latency_ns : 0;
  const double rate = form.line * share;
  const double sum_rate = 1 / (1 / rate + (run.memory > 0 ? 3 / run.memory : 0));
  form.fabric =
      kind + "\n  latency: " +
      fact.nanoseconds((way + run.endpoint_delay_ns) * rounds,
                       "latency and endpoint-delay, once for each chunk that follows another") +
      "\n  hop_latency: " + fact.nanoseconds(hop, "latency") +
      "\n  efficiency: " + fact("1", "no overhead") +
      "\n  bulk:\n    from: 1 B\n    start: " + fact("0 s", "none") +
      "\n    peer: " + fact("0 s", "none") +
      "\n    efficiency: " + fact(digits(share), "links that a collective takes") +
      "\n    sum_efficiency: " +
      fact(digits(sum_rate / form.line),
           "links that a collective takes, then two reads and a write of local memory") +
      "\n";
  return form;
}

AstraForm several_dimensions(const AstraRun& run, const Facts& fact) {
  AstraForm form;
  form.algorithm = "dimensions";
  form.remarks =
      "# Collectives take the same time with `algorithm: dimensions` in the replay. Those of part "
      "of a\n# line go by rank, and single messages pay the endpoint delay, which ASTRA-sim's do "
      "not.\n";
  std::string axes;
  for (const AstraDimension& dimension : run.dimensions) {
    const bool mesh = dimension.shape == "mesh", direct = dimension.algorithm == "direct";
    const double wide = dimension.shape == "ring" && dimension.ranks > 2 ? 2 : 1;
    const double links = mesh ? dimension.ranks - 1 : wide;
    form.line += dimension.bandwidth * links;
    form.links += links;
    form.name +=
        (form.name.empty() ? "" : " x ") + dimension.name + " of " + digits(dimension.ranks);
    axes += "      - shape: " + dimension.shape + "\n        size: " + digits(dimension.ranks) +
            "\n        bandwidth: " + fact.gigabytes(dimension.bandwidth, "bandwidth") +
            "\n        latency: " + fact.nanoseconds(dimension.latency_ns, "latency") +
            "\n        algorithm: " + dimension.algorithm + "\n";
    if (run.memory > 0)
      axes += "        sum_rate: " +
              fact.gigabytes(run.memory / 3 * (direct ? dimension.ranks - 1 : 1),
                             "two reads and a write of local-mem-bw") +
              "\n";
  }
  form.fabric = "dimensions\n  dimensions:\n    axes:\n" + axes +
                "    chunks: " + digits(std::ceil(run.splits / run.active)) +
                "\n    start: " + fact.nanoseconds(run.endpoint_delay_ns, "endpoint-delay") +
                "\n    all_reduce: " + (run.hierarchical ? "hierarchical" : "each_dimension") +
                "\n  latency: " + fact.nanoseconds(run.endpoint_delay_ns, "endpoint-delay") +
                "\n  hop_latency: " + fact("0 s", "links have theirs") +
                "\n  efficiency: " + fact("1", "no overhead") + "\n";
  return form;
}

std::string system_text(const AstraRun& run, const AstraForm& form, const Facts& fact) {
  const bool alone = form.algorithm != "dimensions";
  const AstraDimension& first = run.dimensions.front();
  double ranks = 1;
  for (const AstraDimension& dimension : run.dimensions) ranks *= dimension.ranks;
  std::ostringstream out;
  out << "# A " << (alone ? first.name : "network") << " of ASTRA-sim, from " << run.files
      << ". Its GB of the network have 2^30 bytes.\n"
      << form.remarks << "system: astra_" << (alone && first.shape == "ring" ? "ring" : "network")
      << "\nextends: tpu_v4_pod\nname: ASTRA-sim " << form.name
      << "\naccelerator:\n  extends: tpu_v4\n  accelerator: astra_npu\n  scale_up:\n    bandwidth: "
      << fact.gigabytes(form.line, "all links of a rank")
      << "\n    links: " << fact(digits(form.links), "links of a rank") << "\n";
  if (run.memory > 0) {
    // One stack of 1,024 pins, for a bandwidth is that of all pins.
    out << "  memory:\n    bandwidth: " << fact.gigabytes(run.memory, "local-mem-bw")
        << "\n    stacks: " << fact("1", "none are told") << "\n    data_rate: "
        << fact(digits(run.memory * 8 / 1024 / 1e9) + " Gb/s", "local-mem-bw over 1,024 pins")
        << "\n";
  }
  if (run.peak_tflops > 0)
    out << "  compute:\n    matrix:\n      bf16: "
        << fact(digits(run.peak_tflops) + " TFLOP/s", "peak-perf") << "\n";
  out << "accelerators: " << fact(digits(ranks), "npus_count")
      << "\naccelerators_per_node: " << digits(ranks) << "\nscale_up:\n  kind: " << form.fabric;
  return out.str();
}

ImportedTable read_astra_network(const std::string& path, const ImportOptions& options) {
  const AstraRun run = read_astra_run(path, options.system);
  const AstraDimension& first = run.dimensions.front();
  // Bytes that are summed as they come from all ranks at once have a rate of their own.
  const bool sums_at_once = first.algorithm == "direct" && run.memory > 0;
  const bool plain = run.dimensions.size() == 1 && !sums_at_once && !first.shares_links();
  const Facts fact(run);
  const AstraForm form = plain ? one_dimension(run, fact) : several_dimensions(run, fact);
  ImportedTable table;
  table.document = system_text(run, form, fact);
  table.notes = run.notes;
  table.notes.push_back("replay with `algorithm: " + form.algorithm +
                        "`: a system here does not name one");
  table.columns = {"ranks",  "link_bytes_per_s",  "latency_s", "endpoint_delay_s",
                   "splits", "memory_bytes_per_s"};
  for (const AstraDimension& dimension : run.dimensions)
    table.rows.push_back({static_cast<std::int64_t>(dimension.ranks), dimension.bandwidth,
                          dimension.latency_ns * 1e-9, run.endpoint_delay_ns * 1e-9, run.splits,
                          run.memory});
  return table;
}

const ImporterRegistry::Register astra_network(
    "astra-network",
    "network of ASTRA-sim (YAML), with its system by --system FILE.json: -o writes a system",
    read_astra_network);

}  // namespace
}  // namespace orrery
