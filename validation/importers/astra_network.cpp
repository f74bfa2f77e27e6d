// SPDX-License-Identifier: Apache-2.0
// The network and system of an ASTRA-sim run (https://astra-sim.github.io, inputs `--network` and
// `--system`) as a system of ours.
//
// What ASTRA-sim's analytical back end does with a ring, and what stands for it here:
//  - `bandwidth` is that of one link in GB/s, a GB of 2^30 bytes: bytes/ns = GB/s x 2^30 / 1e9;
//  - a collective runs one way round, so it gets half of what the two links of a rank carry;
//  - each step waits for the latency of the link and for `endpoint-delay`;
//  - the buffer is cut into `preferred-dataset-splits`, of which `active-chunks-per-dimension` are
//    under way at a time; the others begin behind them, so every step costs its latency that often;
//  - where bytes are summed, the rank reads both operands from its memory and writes the sum, at
//    `local-mem-bw` (GB of 1e9 bytes), and sends on after that: 3 / memory bandwidth a byte.
// Of an all-reduce of S bytes over n ranks: 2(n-1) (latency + delay) splits / active
//   + 2(n-1)/n S / bandwidth + (n-1)/n S 3 / memory bandwidth.
#include <algorithm>
#include <cmath>
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

/// The one entry of a list such as `bandwidth: [50.0]`.
const config::Node& only_entry(const config::Node& file, const std::string& path, const char* key) {
  const config::Node* list = file.find(key);
  if (list == nullptr || !list->is_sequence() || list->items().empty())
    throw config::ConfigError(path + ": expected a list '" + key +
                              "'; this is no network of "
                              "ASTRA-sim's analytical back end");
  if (list->items().size() > 1)
    throw config::ConfigError(path + ": " + key +
                              ": networks of one dimension have a counterpart here, this one has " +
                              std::to_string(list->items().size()));
  return list->items().front();
}

struct AstraRing {
  double ranks = 0;
  double bandwidth = 0;   ///< bytes/s of a link one way
  double latency_ns = 0;  ///< latency of a link
};

AstraRing read_ring(const std::string& path) {
  config::Diagnostics diagnostics;
  const config::Node file = config::parse_yaml(astra_text(path), path, diagnostics);
  diagnostics.throw_if_errors();
  const std::string kind = only_entry(file, path, "topology").text();
  if (kind != "Ring")
    throw config::ConfigError(path + ": topology: a Ring has a counterpart here, '" + kind +
                              "' has none");
  AstraRing ring;
  ring.ranks = astra_number(only_entry(file, path, "npus_count"), path, "npus_count");
  if (ring.ranks < 2 || ring.ranks > 1e6 || ring.ranks != std::floor(ring.ranks))
    throw config::ConfigError(path + ": npus_count: expected 2 to 1,000,000 ranks");
  ring.bandwidth = astra_number(only_entry(file, path, "bandwidth"), path, "bandwidth") * kGibi;
  ring.latency_ns = astra_number(only_entry(file, path, "latency"), path, "latency");
  return ring;
}

/// What of the system file counts.
struct AstraSystem {
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

AstraSystem read_astra_system(const std::string& path, std::vector<std::string>& notes) {
  AstraSystem system;
  if (path.empty()) {
    notes.emplace_back("without --system FILE.json: no endpoint delay, one chunk, sums are free");
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
  for (const char* kind : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"}) {
    const auto found = file.find(std::string(kind) + "-implementation");
    if (found != file.end() && *found != nlohmann::json::array({"ring"}))
      notes.push_back(path + ": " + kind + " by " + found->dump() + " is taken to be by a ring");
  }
  return system;
}

std::string system_text(const AstraRing& ring, const AstraSystem& system,
                        const std::string& files) {
  const double rounds = std::ceil(system.splits / system.active);
  const double line = 2 * ring.bandwidth;  // of a rank: both ways
  const double sum_rate = 1 / (1 / ring.bandwidth + (system.memory > 0 ? 3 / system.memory : 0));
  std::ostringstream out;
  out.precision(12);
  const auto fact = [&](const std::string& value, const char* why) {
    return "{value: " + value + ", source: \"" + files + ": " + why + "\"}";
  };
  const auto text = [](double value) {
    std::ostringstream number;
    number.precision(12);
    number << value;
    return number.str();
  };
  const std::string ranks = text(ring.ranks);
  out << "# A ring of ASTRA-sim, from " << files << ". Its GB of the network have 2^30 bytes.\n"
      << "# Every step of a collective costs the latency as often as chunks follow each other; "
         "single\n"
      << "# messages pay that too, which ASTRA-sim's do not.\n"
      << "system: astra_ring\nextends: tpu_v4_pod\nname: ASTRA-sim ring of " << ranks << "\n"
      << "accelerator:\n  extends: tpu_v4\n  accelerator: astra_npu\n  scale_up:\n    bandwidth: "
      << fact(text(line / 1e9) + " GB/s", "both ways of a link") << "\n";
  if (system.memory > 0) {
    // One stack of 1,024 pins, for a bandwidth is that of all pins.
    out << "  memory:\n    bandwidth: " << fact(text(system.memory / 1e9) + " GB/s", "local-mem-bw")
        << "\n    stacks: " << fact("1", "none are told") << "\n    data_rate: "
        << fact(text(system.memory * 8 / 1024 / 1e9) + " Gb/s", "local-mem-bw over 1,024 pins")
        << "\n";
  }
  if (system.peak_tflops > 0)
    out << "  compute:\n    matrix:\n      bf16: "
        << fact(text(system.peak_tflops) + " TFLOP/s", "peak-perf") << "\n";
  out << "accelerators: " << fact(ranks, "npus_count") << "\naccelerators_per_node: " << ranks
      << "\nscale_up:\n  kind: torus\n  torus: [" << ranks << "]\n  cube: 1\n  latency: "
      << fact(text((ring.latency_ns + system.endpoint_delay_ns) * rounds) + " ns",
              "latency and endpoint-delay, once for each chunk that follows another")
      << "\n  hop_latency: " << fact(text(ring.latency_ns) + " ns", "latency")
      << "\n  efficiency: " << fact("1", "no overhead")
      << "\n  bulk:\n    from: 1 B\n    start: " << fact("0 s", "none")
      << "\n    peer: " << fact("0 s", "none")
      << "\n    efficiency: " << fact("0.5", "one way round") << "\n    sum_efficiency: "
      << fact(text(sum_rate / line), "one way round, then two reads and a write of local memory")
      << "\n";
  return out.str();
}

ImportedTable read_astra_network(const std::string& path, const ImportOptions& options) {
  ImportedTable table;
  const AstraRing ring = read_ring(path);
  const AstraSystem system = read_astra_system(options.system, table.notes);
  table.columns = {"ranks",  "link_bytes_per_s",  "latency_s", "endpoint_delay_s",
                   "splits", "memory_bytes_per_s"};
  table.rows.push_back({static_cast<std::int64_t>(ring.ranks), ring.bandwidth,
                        ring.latency_ns * 1e-9, system.endpoint_delay_ns * 1e-9, system.splits,
                        system.memory});
  table.document =
      system_text(ring, system, path + (options.system.empty() ? "" : " and " + options.system));
  return table;
}

const ImporterRegistry::Register astra_network(
    "astra-network",
    "network of ASTRA-sim (YAML), with its system by --system FILE.json: -o writes a system",
    read_astra_network);

}  // namespace
}  // namespace orrery
