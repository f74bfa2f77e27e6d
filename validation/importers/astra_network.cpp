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
//  are
//    under way at a time; the others begin behind them, so every step costs its latency that often;
//  - where bytes are summed, the rank reads both operands from its memory and writes the sum, at
//    `local-mem-bw` (GB of 1e9 bytes), and sends on after that: 3 / memory bandwidth a byte.
// Steps of an all-reduce, its bytes over a link, and the form that it has here:
//    ring              2(n-1)    2(n-1)/n S   one way round a ring, whatever the network is: ranks
//                                             talk to the next one alone
//    halvingDoubling   2 lg n    2(n-1)/n S   `recursive` behind a switch with a port of one link a
//                                             rank; n a power of two; no Ring, where partners are
//                                             apart
//    direct            2         2/n S        `direct` on a link for each pair: FullyConnected
//                                             alone, since messages of ASTRA-sim's Switch share a
//                                             port without being slower
// All-reduce: steps (h latency + delay) splits / active + bytes / bandwidth
//   + (n-1)/n S 3 / memory bandwidth. Gathers and reduce-scatters have half of steps and bytes.
#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "sim/config/diagnostics.h"
#include "sim/config/input_files.h"
#include "sim/config/load.h"
#include "validation/importers/importer.h"

namespace orrery {
namespace {

constexpr double kGibi = 1073741824.0;

std::string astra_text(const std::string& path) {
  config::FileText file = config::input_files().read(path);
  if (!file.fault.empty()) throw config::ConfigError(path + ": " + file.fault);
  return std::move(file.text);
}

double astra_number(const config::Node& node, const std::string& path, const char* key) {
  std::size_t used = 0;
  double number = -1;
  try {
    number = std::stod(node.text(), &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != node.text().size() || !(number > 0) || !std::isfinite(number))
    throw config::ConfigError(path + ": " + key + ": expected a number above 0, got '" +
                              node.text() + "'");
  return number;
}

/// The list of a key, an entry for each dimension.
const config::Node& dimension_list(const config::Node& file, const std::string& path,
                                   const char* key) {
  const config::Node* list = file.find(key);
  if (list == nullptr || !list->is_sequence() || list->items().empty())
    throw config::ConfigError(path + ": expected a list '" + key +
                              "'; this is no network of "
                              "ASTRA-sim's analytical back end");
  return *list;
}

enum class AstraShape { kRing, kFullyConnected, kSwitch };

struct AstraDimension {
  AstraShape shape = AstraShape::kRing;
  std::string name;  ///< name of the shape
  double ranks = 0;
  double bandwidth = 0;   ///< bytes/s of a link one way
  double latency_ns = 0;  ///< latency of a link

  /// Links from a rank to the one that it talks to.
  int hops() const { return shape == AstraShape::kSwitch ? 2 : 1; }
};

AstraShape shape_of(const std::string& name, const std::string& path) {
  if (name == "Ring") return AstraShape::kRing;
  if (name == "FullyConnected") return AstraShape::kFullyConnected;
  if (name == "Switch") return AstraShape::kSwitch;
  throw config::ConfigError(path +
                            ": topology: Ring, FullyConnected and Switch have counterparts " +
                            "here, '" + name + "' has none");
}

/// Dimensions of one rank are none. Of several, chunks are in one dimension after the other, and
/// those of different ones overlap: no price of ours does the same.
AstraDimension read_dimension(const std::string& path) {
  config::Diagnostics diagnostics;
  const config::Node file = config::parse_yaml(astra_text(path), path, diagnostics);
  diagnostics.throw_if_errors();
  const auto& shapes = dimension_list(file, path, "topology").items();
  const auto& counts = dimension_list(file, path, "npus_count").items();
  const auto& bandwidths = dimension_list(file, path, "bandwidth").items();
  const auto& latencies = dimension_list(file, path, "latency").items();
  if (counts.size() != shapes.size() || bandwidths.size() != shapes.size() ||
      latencies.size() != shapes.size())
    throw config::ConfigError(path +
                              ": topology, npus_count, bandwidth and latency have lists of "
                              "different lengths");
  std::vector<AstraDimension> dimensions;
  std::string product;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    AstraDimension dimension;
    dimension.name = shapes[i].text();
    dimension.shape = shape_of(dimension.name, path);
    dimension.ranks = astra_number(counts[i], path, "npus_count");
    if (dimension.ranks > 1e6 || dimension.ranks != std::floor(dimension.ranks))
      throw config::ConfigError(path + ": npus_count: expected 1 to 1,000,000 ranks");
    dimension.bandwidth = astra_number(bandwidths[i], path, "bandwidth") * kGibi;
    dimension.latency_ns = astra_number(latencies[i], path, "latency");
    if (dimension.ranks == 1) continue;
    product += (product.empty() ? "" : " x ") + dimension.name;
    dimensions.push_back(dimension);
  }
  if (dimensions.empty())
    throw config::ConfigError(path + ": npus_count: expected 2 ranks or more");
  if (dimensions.size() > 1)
    throw config::ConfigError(path + ": topology: the product " + product +
                              " has no counterpart: ASTRA-sim's chunks are in one dimension after "
                              "the other, those of different ones at once; networks of one "
                              "dimension have one (dimensions of one rank do not count)");
  return dimensions.front();
}

/// How ASTRA-sim carries out collectives in a dimension.
enum class AstraAlgorithm { kRing, kDirect, kHalvingDoubling };

/// What of the system file counts.
struct AstraSystem {
  AstraAlgorithm algorithm = AstraAlgorithm::kRing;
  double endpoint_delay_ns = 0;
  double splits = 1, active = 1;
  double memory = 0;       ///< bytes/s of the local memory; 0: sums are free
  double peak_tflops = 0;  ///< 0: not told
};

double entry(const nlohmann::json& file, const std::string& path, const char* key, double other) {
  const auto found = file.find(key);
  if (found == file.end()) return other;
  if (!found->is_number() || found->get<double>() < 0)
    throw config::ConfigError(path + ": " + key + ": expected a number, got " + found->dump());
  return found->get<double>();
}

/// The algorithm of a kind of collectives. In one dimension "oneRing" and the like, which go
/// through all ranks at once, are the same.
AstraAlgorithm algorithm_of(const nlohmann::json& named, const std::string& path,
                            const std::string& key) {
  const bool is_list = named.is_array() && named.size() == 1 && named[0].is_string();
  const std::string word = is_list ? named[0].get<std::string>() : named.dump();
  if (is_list && (word == "ring" || word == "oneRing")) return AstraAlgorithm::kRing;
  if (is_list && (word == "direct" || word == "oneDirect")) return AstraAlgorithm::kDirect;
  if (is_list && (word == "halvingDoubling" || word == "oneHalvingDoubling"))
    return AstraAlgorithm::kHalvingDoubling;
  throw config::ConfigError(path + ": " + key +
                            ": ring, direct and halvingDoubling have counterparts here, one for "
                            "the one dimension; " +
                            word + " has none");
}

[[noreturn]] void refuse_mixture(const std::string& path, const std::string& key,
                                 const std::string& value) {
  throw config::ConfigError(path + ": " + key + ": " + value +
                            " is another one than that of other collectives, and a system here has "
                            "one for all");
}

AstraSystem read_astra_system(const std::string& path, std::vector<std::string>& notes) {
  AstraSystem system;
  if (path.empty()) {
    notes.emplace_back(
        "without --system FILE.json: rings, no endpoint delay, one chunk, sums are free");
    return system;
  }
  nlohmann::json file;
  try {
    file = nlohmann::json::parse(astra_text(path));
  } catch (const nlohmann::json::parse_error& error) {
    throw config::ConfigError(path + ": at byte " + std::to_string(error.byte) +
                              ": this is no JSON");
  }
  if (!file.is_object()) throw config::ConfigError(path + ": expected a map");
  system.endpoint_delay_ns = entry(file, path, "endpoint-delay", 0);
  system.splits = std::max(1.0, entry(file, path, "preferred-dataset-splits", 1));
  system.active = std::max(1.0, entry(file, path, "active-chunks-per-dimension", 1));
  system.memory = entry(file, path, "local-mem-bw", 0) * 1e9;
  system.peak_tflops = entry(file, path, "peak-perf", 0);
  std::optional<AstraAlgorithm> common;
  for (const char* kind : {"all-reduce", "all-gather", "reduce-scatter"}) {
    const std::string key = std::string(kind) + "-implementation";
    const auto found = file.find(key);
    if (found == file.end()) continue;
    const AstraAlgorithm algorithm = algorithm_of(*found, path, key);
    if (common.value_or(algorithm) != algorithm) refuse_mixture(path, key, found->dump());
    common = algorithm;
  }
  system.algorithm = common.value_or(AstraAlgorithm::kRing);
  notes.push_back(path +
                  ": all-to-alls are messages to each other rank here, of which the links decide, "
                  "without ASTRA-sim's rounds");
  return system;
}

/// What stands for an algorithm on a network, or why nothing does.
void check_pair(const AstraDimension& dimension, const AstraSystem& system,
                const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    throw config::ConfigError(path + ": " + what);
  };
  if (system.algorithm == AstraAlgorithm::kDirect) {
    if (dimension.shape != AstraShape::kFullyConnected)
      refuse("direct on a " + dimension.name +
             " has no counterpart: messages of ASTRA-sim share its links without being slower, "
             "which those here do not");
    if (system.memory > 0)
      refuse(
          "direct with local-mem-bw has no counterpart: sums of bytes that come from all ranks "
          "at once");
  }
  if (system.algorithm == AstraAlgorithm::kHalvingDoubling) {
    if (dimension.shape == AstraShape::kRing)
      refuse("halvingDoubling on a Ring has no counterpart: partners are several links apart");
    const auto ranks = static_cast<std::uint64_t>(dimension.ranks);
    if ((ranks & (ranks - 1)) != 0)
      refuse("halvingDoubling among " + std::to_string(ranks) +
             " ranks: expected a power of two, as ASTRA-sim does");
  }
}

/// A number as YAML has it.
std::string digits(double value) {
  std::ostringstream number;
  number.precision(12);
  number << value;
  return number.str();
}

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
      return {"mesh", "\n  torus: []\n  cube: 0", (dimension.ranks - 1) * dimension.bandwidth,
              1,      dimension.ranks - 1,        "direct"};
    case AstraAlgorithm::kHalvingDoubling:
      return {"nvswitch",
              "\n  torus: []\n  cube: 0\n  links_per_switch: [1]",
              dimension.bandwidth,
              1,
              1,
              "recursive"};
    case AstraAlgorithm::kRing:
      break;
  }
  // Both ways round, of which a collective goes one.
  return {"torus",
          "\n  torus: [" + digits(dimension.ranks) + "]\n  cube: 1",
          2 * dimension.bandwidth,
          0.5,
          2,
          "torus"};
}

/// The accelerator, with its links, memory and peak.
void put_accelerator(std::ostream& out, const AstraForm& form, const AstraSystem& system,
                     const std::function<std::string(const std::string&, const char*)>& fact) {
  out << "accelerator:\n  extends: tpu_v4\n  accelerator: astra_npu\n  scale_up:\n    bandwidth: "
      << fact(digits(form.line / 1e9) + " GB/s", "all links of a rank")
      << "\n    links: " << fact(digits(form.links), "links of a rank") << "\n";
  if (system.memory > 0) {
    // One stack of 1,024 pins, for a bandwidth is that of all pins.
    out << "  memory:\n    bandwidth: "
        << fact(digits(system.memory / 1e9) + " GB/s", "local-mem-bw")
        << "\n    stacks: " << fact("1", "none are told") << "\n    data_rate: "
        << fact(digits(system.memory * 8 / 1024 / 1e9) + " Gb/s", "local-mem-bw over 1,024 pins")
        << "\n";
  }
  if (system.peak_tflops > 0)
    out << "  compute:\n    matrix:\n      bf16: "
        << fact(digits(system.peak_tflops) + " TFLOP/s", "peak-perf") << "\n";
}

std::string system_text(const AstraDimension& dimension, const AstraSystem& system,
                        const std::string& files) {
  const AstraForm form = form_of(dimension, system.algorithm);
  const double rounds = std::ceil(system.splits / system.active);
  const double rate = form.line * form.share;
  const double sum_rate = 1 / (1 / rate + (system.memory > 0 ? 3 / system.memory : 0));
  const auto fact = [&](const std::string& value, const char* why) {
    return "{value: " + value + ", source: \"" + files + ": " + why + "\"}";
  };
  const std::string ranks = digits(dimension.ranks);
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
  put_accelerator(out, form, system, fact);
  out << "accelerators: " << fact(ranks, "npus_count") << "\naccelerators_per_node: " << ranks
      << "\nscale_up:\n  kind: " << form.kind << form.wiring << "\n  latency: "
      << fact(digits((way + system.endpoint_delay_ns) * rounds) + " ns",
              "latency and endpoint-delay, once for each chunk that follows another")
      << "\n  hop_latency: " << fact(digits(hop) + " ns", "latency")
      << "\n  efficiency: " << fact("1", "no overhead")
      << "\n  bulk:\n    from: 1 B\n    start: " << fact("0 s", "none")
      << "\n    peer: " << fact("0 s", "none")
      << "\n    efficiency: " << fact(digits(form.share), "links that a collective takes")
      << "\n    sum_efficiency: "
      << fact(digits(sum_rate / form.line),
              "links that a collective takes, then two reads and a write of local memory")
      << "\n";
  return out.str();
}

ImportedTable read_astra_network(const std::string& path, const ImportOptions& options) {
  ImportedTable table;
  const AstraDimension dimension = read_dimension(path);
  const AstraSystem system = read_astra_system(options.system, table.notes);
  check_pair(dimension, system, options.system.empty() ? path : options.system);
  table.notes.push_back(std::string("replay with `algorithm: ") +
                        form_of(dimension, system.algorithm).algorithm +
                        "`: a system here does not name one");
  table.columns = {"ranks",  "link_bytes_per_s",  "latency_s", "endpoint_delay_s",
                   "splits", "memory_bytes_per_s"};
  table.rows.push_back({static_cast<std::int64_t>(dimension.ranks), dimension.bandwidth,
                        dimension.latency_ns * 1e-9, system.endpoint_delay_ns * 1e-9, system.splits,
                        system.memory});
  table.document = system_text(dimension, system,
                               path + (options.system.empty() ? "" : " and " + options.system));
  return table;
}

const ImporterRegistry::Register astra_network(
    "astra-network",
    "network of ASTRA-sim (YAML), with its system by --system FILE.json: -o writes a system",
    read_astra_network);

}  // namespace
}  // namespace orrery
