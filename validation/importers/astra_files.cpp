// SPDX-License-Identifier: Apache-2.0
// The files that ASTRA-sim reads: `--network-configuration` (YAML: lists with an entry for each
// dimension) and `--system-configuration` (JSON). Keys and defaults are those of its Sys.cc.
#include "validation/importers/astra_files.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/config/diagnostics.h"
#include "sim/config/input_files.h"
#include "sim/config/json_text.h"
#include "sim/config/load.h"
#include "validation/importers/log_text.h"

namespace orrery {
namespace {

constexpr double kGibi = 1073741824.0;

/// Names of ours by those of ASTRA-sim. "oneRing" and the like, which go through all ranks at once,
/// are the same in one dimension.
using Names = std::map<std::string, std::string>;
const Names kShapes = {{"Ring", "ring"}, {"FullyConnected", "mesh"}, {"Switch", "switch"}};
const Names kAlgorithms = {
    {"ring", "ring"},    {"direct", "direct"},    {"halvingDoubling", "halving_doubling"},
    {"oneRing", "ring"}, {"oneDirect", "direct"}, {"oneHalvingDoubling", "halving_doubling"}};

[[noreturn]] void refuse_at(const std::string& place, const std::string& what) {
  throw config::ConfigError(place + ": " + what);
}

std::string astra_text(const std::string& path) {
  config::FileText file = config::input_files().read(path);
  if (!file.fault.empty()) refuse_at(path, file.fault);
  return std::move(file.text);
}

double astra_number(const config::Node& node, const char* key) {
  std::size_t used = 0;
  double number = -1;
  try {
    number = std::stod(node.text(), &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != node.text().size() || !(number > 0) || !std::isfinite(number))
    refuse_at(node.where().text(),
              std::string(key) + ": expected a number above 0, got '" + node.text() + "'");
  return number;
}

/// The list of a key, an entry for each dimension.
const config::Node& dimension_list(const config::Node& file, const std::string& path,
                                   const char* key) {
  const config::Node* list = file.find(key);
  if (list == nullptr || !list->is_sequence() || list->items().empty())
    refuse_at(path, std::string("expected a list '") + key +
                        "'; this is no network of ASTRA-sim's analytical back end");
  return *list;
}

/// Dimensions of one rank are none.
std::vector<AstraDimension> read_dimensions(const std::string& path, std::size_t& in_file) {
  config::Diagnostics diagnostics;
  const config::Node file = config::parse_yaml(astra_text(path), path, diagnostics);
  diagnostics.throw_if_errors();
  const config::Node& topology = dimension_list(file, path, "topology");
  const auto& shapes = topology.items();
  const auto& counts = dimension_list(file, path, "npus_count").items();
  const auto& bandwidths = dimension_list(file, path, "bandwidth").items();
  const auto& latencies = dimension_list(file, path, "latency").items();
  in_file = shapes.size();
  if (counts.size() != in_file || bandwidths.size() != in_file || latencies.size() != in_file)
    refuse_at(topology.where().text(),
              "topology, npus_count, bandwidth and latency have lists of different lengths");
  std::vector<AstraDimension> dimensions;
  double ranks = 1;
  for (std::size_t i = 0; i < in_file; ++i) {
    AstraDimension dimension;
    dimension.number = i;
    dimension.name = shapes[i].text();
    const auto shape = kShapes.find(dimension.name);
    if (shape == kShapes.end())
      refuse_at(shapes[i].where().text(),
                "topology: Ring, FullyConnected and Switch have counterparts here, '" +
                    dimension.name + "' has none");
    dimension.shape = shape->second;
    dimension.ranks = astra_number(counts[i], "npus_count");
    ranks *= dimension.ranks;
    if (ranks > 1e6 || dimension.ranks != std::floor(dimension.ranks))
      refuse_at(counts[i].where().text(), "npus_count: expected 1 to 1,000,000 ranks in all");
    dimension.bandwidth = astra_number(bandwidths[i], "bandwidth") * kGibi;
    dimension.latency_ns = astra_number(latencies[i], "latency");
    if (dimension.ranks > 1) dimensions.push_back(dimension);
  }
  if (dimensions.empty())
    refuse_at(counts.front().where().text(), "npus_count: expected 2 ranks or more");
  return dimensions;
}

/// A system file and where its keys stand.
struct SystemFile {
  std::string path, text;
  nlohmann::json keys;

  /// "file:line:column" of a key.
  std::string place(const std::string& key) const {
    return place_behind(path, text.substr(0, text.find('"' + key + '"'))).text();
  }
  double number(const char* key, double other) const {
    const auto found = keys.find(key);
    if (found == keys.end()) return other;
    if (!found->is_number() || found->get<double>() < 0)
      refuse_at(place(key), std::string(key) + ": expected a number, got " + found->dump());
    return found->get<double>();
  }
  /// A key whose values are other ways of working; all but one have no counterpart.
  void expect(const char* key, const std::vector<nlohmann::json>& known) const {
    const auto found = keys.find(key);
    if (found == keys.end() || std::find(known.begin(), known.end(), *found) != known.end()) return;
    refuse_at(place(key), std::string(key) + ": " + found->dump() + " has no counterpart here");
  }
};

SystemFile open_system(const std::string& path) {
  SystemFile file{path, astra_text(path), {}};
  try {
    file.keys = config::parse_json(file.text);
  } catch (const config::JsonFault& fault) {
    refuse_at(path, "at byte " + std::to_string(fault.byte) + ": " + fault.what());
  }
  if (!file.keys.is_object()) refuse_at(path, "expected a map");
  return file;
}

/// The algorithms of a kind of collectives, by dimension of more than one rank.
std::vector<std::string> algorithms_of(const SystemFile& file, const std::string& key,
                                       const std::vector<AstraDimension>& dimensions,
                                       std::size_t in_file) {
  const nlohmann::json& named = file.keys.at(key);
  const bool alone = dimensions.size() == 1;
  const bool one_for_one = alone && named.is_array() && named.size() == 1;
  if (!named.is_array() || (named.size() != in_file && !one_for_one))
    refuse_at(file.place(key), key + ": expected a list of an algorithm for each of the " +
                                   std::to_string(in_file) + " dimensions, got " + named.dump());
  std::vector<std::string> algorithms;
  algorithms.reserve(dimensions.size());
  for (const AstraDimension& dimension : dimensions) {
    const nlohmann::json& word = named[one_for_one ? 0 : dimension.number];
    const std::string name = word.is_string() ? word.get<std::string>() : "";
    const auto algorithm = kAlgorithms.find(name);
    if (algorithm == kAlgorithms.end() || (!alone && name.starts_with("one")))
      refuse_at(file.place(key), key + ": ring, direct and halvingDoubling have counterparts here" +
                                     (alone ? "" : ", each in its dimension") + "; " + word.dump() +
                                     " has none");
    algorithms.push_back(algorithm->second);
  }
  return algorithms;
}

/// Sets the algorithms, and says where they are written; empty: nowhere.
std::string read_algorithms(const SystemFile& file, std::size_t in_file, AstraRun& run) {
  std::vector<std::string> common;
  std::string place;
  for (const char* kind : {"all-reduce", "all-gather", "reduce-scatter"}) {
    const std::string key = std::string(kind) + "-implementation";
    if (!file.keys.contains(key)) continue;
    const auto algorithms = algorithms_of(file, key, run.dimensions, in_file);
    if (!place.empty() && algorithms != common)
      refuse_at(file.place(key), key + ": " + file.keys.at(key).dump() +
                                     " is another one than that of other collectives, and a system "
                                     "here has one for all");
    if (place.empty()) place = file.place(key);
    common = algorithms;
  }
  for (std::size_t i = 0; i < common.size(); ++i) run.dimensions[i].algorithm = common[i];
  return place;
}

/// Says of which dimensions messages share links, which costs them time here.
void check_algorithms(const std::string& place, AstraRun& run) {
  for (const AstraDimension& dimension : run.dimensions) {
    const std::string at = place + ": dimension " + std::to_string(dimension.number);
    const auto ranks = static_cast<std::uint64_t>(dimension.ranks);
    if (dimension.algorithm == "halving_doubling" && (ranks & (ranks - 1)) != 0)
      refuse_at(at, "halvingDoubling among " + std::to_string(ranks) +
                        " ranks: expected a power of two, as ASTRA-sim does");
    if (dimension.shares_links())
      run.notes.push_back(at + ": messages of one step share links of this " + dimension.name +
                          " here, as in ASTRA-sim's congestion-aware network; its "
                          "congestion-unaware one gives each of them a whole link");
  }
}

void read_system(const std::string& path, std::size_t in_file, AstraRun& run) {
  const SystemFile file = open_system(path);
  constexpr double kDelay = 10;  // ns, of its Sys.cc
  run.endpoint_delay_ns = file.number("endpoint-delay", kDelay);
  run.splits = std::max(1.0, file.number("preferred-dataset-splits", 1));
  run.active = std::max(1.0, file.number("active-chunks-per-dimension", 1));
  run.memory = file.number("local-mem-bw", 0) * 1e9;
  run.peak_tflops = file.number("peak-perf", 0);
  const std::string place = read_algorithms(file, in_file, run);
  run.notes.push_back(path +
                      ": all-to-alls are messages to each other rank here, of which the links "
                      "decide, without ASTRA-sim's rounds");
  if (run.dimensions.size() > 1) {
    file.expect("collective-optimization", {"baseline", "localBWAware"});
    file.expect("intra-dimension-scheduling", {"FIFO"});
    file.expect("inter-dimension-scheduling", {"ascending", "baseline"});
    file.expect("model-shared-bus", {0, false});
    run.hierarchical = file.keys.value("collective-optimization", "baseline") == "localBWAware";
    if (run.active > 1)
      run.notes.push_back(file.place("active-chunks-per-dimension") +
                          ": chunks that are under way at once share the links here; ASTRA-sim's "
                          "have each all of them");
  }
  check_algorithms(place, run);
}

}  // namespace

AstraRun read_astra_run(const std::string& network, const std::string& system) {
  AstraRun run;
  std::size_t in_file = 0;
  run.dimensions = read_dimensions(network, in_file);
  run.files = network + (system.empty() ? "" : " and " + system);
  if (system.empty()) {
    run.notes.emplace_back(
        "without --system FILE.json: rings, no endpoint delay, one chunk, sums are free");
  } else {
    read_system(system, in_file, run);
  }
  return run;
}

}  // namespace orrery
