// SPDX-License-Identifier: Apache-2.0
// Networks of ASTRA-sim of several dimensions, as scale-up fabrics of kind `dimensions`.
//
// A collective is cut into `preferred-dataset-splits` chunks. Each goes through phases, one
// dimension after the other (Sys.cc, generate_collective); a dimension has a queue and works on
// `active-chunks-per-dimension` of it at a time, first come, first served. In a phase of m
// messages one after the other a rank takes
//
//   (m + 1) endpoint-delay + m (links x latency + message / bandwidth) + sums
//
// since it begins with a delay and each message that came has one (Ring.cc, AllToAll.cc,
// HalvingDoubling.cc). m is n-1 of a ring, 1 of direct, log2 n of halving and doubling for a
// reduce-scatter or all-gather, twice that for an all-reduce. A message that is summed takes two
// reads and a write of the local memory; those of `direct` do at once, each with all of it, which
// is n-1 times the rate here. The network rounds each message down to whole ns, which is not done
// here. `links` are those to the farthest partner, and `message` is all that crosses the busiest
// link in a step: messages that share it take as long as one of all of them.
#include <cmath>
#include <cstdint>
#include <functional>
#include <sstream>

#include "sim/config/diagnostics.h"
#include "validation/importers/astra_files.h"

namespace orrery {
namespace {

const char* shape_name(AstraShape shape) {
  switch (shape) {
    case AstraShape::kRing:
      return "ring";
    case AstraShape::kFullyConnected:
      return "mesh";
    case AstraShape::kSwitch:
      break;
  }
  return "switch";
}

const char* algorithm_name(AstraAlgorithm algorithm) {
  switch (algorithm) {
    case AstraAlgorithm::kRing:
      return "ring";
    case AstraAlgorithm::kDirect:
      return "direct";
    case AstraAlgorithm::kHalvingDoubling:
      break;
  }
  return "halving_doubling";
}

double links_of_rank(const AstraDimension& dimension) {
  if (dimension.shape == AstraShape::kFullyConnected) return dimension.ranks - 1;
  return dimension.shape == AstraShape::kRing && dimension.ranks > 2 ? 2 : 1;
}

/// Bytes/s that a rank sums; 0: sums are free.
double sum_rate(const AstraDimension& dimension, const AstraSystem& system) {
  const double at_once = dimension.algorithm == AstraAlgorithm::kDirect ? dimension.ranks - 1 : 1;
  return system.memory / 3 * at_once;
}

}  // namespace

void check_astra_algorithms(const AstraRun& run, std::vector<std::string>& notes) {
  for (const AstraDimension& dimension : run.dimensions) {
    const std::string place =
        run.algorithm_place + ": dimension " + std::to_string(dimension.number) + ": ";
    const auto ranks = static_cast<std::uint64_t>(dimension.ranks);
    if (dimension.algorithm == AstraAlgorithm::kHalvingDoubling && (ranks & (ranks - 1)) != 0)
      throw config::ConfigError(place + "halvingDoubling among " + std::to_string(ranks) +
                                " ranks: expected a power of two, as ASTRA-sim does");
    if (dimension.shares_links())
      notes.push_back(place + "messages of one step share links of this " + dimension.name +
                      " here, as in ASTRA-sim's congestion-aware network; its congestion-unaware "
                      "one gives each of them a whole link");
  }
}

std::string astra_dimensions_text(const AstraRun& run) {
  const AstraSystem& system = run.system;
  const auto fact = [&](const std::string& value, const char* why) {
    return "{value: " + value + ", source: \"" + run.files + ": " + why + "\"}";
  };
  double ranks = 1, line = 0, links = 0;
  std::string product;
  std::ostringstream list;
  for (const AstraDimension& dimension : run.dimensions) {
    ranks *= dimension.ranks;
    line += dimension.bandwidth * links_of_rank(dimension);
    links += links_of_rank(dimension);
    product +=
        (product.empty() ? "" : " x ") + dimension.name + " of " + astra_digits(dimension.ranks);
    list << "      - shape: " << shape_name(dimension.shape)
         << "\n        size: " << astra_digits(dimension.ranks) << "\n        bandwidth: "
         << fact(astra_digits(dimension.bandwidth / 1e9) + " GB/s", "bandwidth")
         << "\n        latency: " << fact(astra_digits(dimension.latency_ns) + " ns", "latency")
         << "\n        algorithm: " << algorithm_name(dimension.algorithm) << "\n";
    if (system.memory > 0)
      list << "        sum_rate: "
           << fact(astra_digits(sum_rate(dimension, system) / 1e9) + " GB/s",
                   "two reads and a write of local-mem-bw")
           << "\n";
  }
  std::ostringstream out;
  out << "# A network of ASTRA-sim, from " << run.files
      << ". Its GB of the network have 2^30 bytes.\n"
      << "# Collectives take the same time with `algorithm: dimensions` in the replay. Those of "
         "part of a\n# line go by rank, and single messages pay the endpoint delay, which "
         "ASTRA-sim's do not.\n"
      << "system: astra_network\nextends: tpu_v4_pod\nname: ASTRA-sim " << product << "\n";
  put_astra_accelerator(out, {line, links}, system, fact);
  out << "accelerators: " << fact(astra_digits(ranks), "npus_count")
      << "\naccelerators_per_node: " << astra_digits(ranks)
      << "\nscale_up:\n  kind: dimensions\n  dimensions:\n    axes:\n"
      << list.str() << "    chunks: " << astra_digits(std::ceil(system.splits / system.active))
      << "\n    start: " << fact(astra_digits(system.endpoint_delay_ns) + " ns", "endpoint-delay")
      << "\n    all_reduce: " << (system.hierarchical ? "hierarchical" : "each_dimension")
      << "\n  latency: " << fact(astra_digits(system.endpoint_delay_ns) + " ns", "endpoint-delay")
      << "\n  hop_latency: " << fact("0 s", "links have theirs")
      << "\n  efficiency: " << fact("1", "no overhead") << "\n";
  return out.str();
}

}  // namespace orrery
