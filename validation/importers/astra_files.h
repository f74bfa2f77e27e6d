// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace orrery {

enum class AstraShape { kRing, kFullyConnected, kSwitch };
/// How ASTRA-sim carries out collectives in a dimension.
enum class AstraAlgorithm { kRing, kDirect, kHalvingDoubling };

/// One dimension of more than one rank.
struct AstraDimension {
  AstraShape shape = AstraShape::kRing;
  std::string name;  ///< name of the shape
  double ranks = 0;
  double bandwidth = 0;   ///< bytes/s of a link one way
  double latency_ns = 0;  ///< latency of a link
  AstraAlgorithm algorithm = AstraAlgorithm::kRing;
  std::size_t number = 0;  ///< number in the files, from 0, those of one rank included

  /// Links from a rank to the one that it talks to.
  int hops() const { return shape == AstraShape::kSwitch ? 2 : 1; }
  /// Messages of one step cross the same link: those of direct that go through one port, those of
  /// partners that are several ranks of a ring apart.
  bool shares_links() const {
    if (ranks <= 2) return false;
    if (algorithm == AstraAlgorithm::kDirect) return shape != AstraShape::kFullyConnected;
    return algorithm == AstraAlgorithm::kHalvingDoubling && shape == AstraShape::kRing;
  }
};

/// What of the system file counts beside the algorithms.
struct AstraSystem {
  double endpoint_delay_ns = 0;
  double splits = 1, active = 1;
  double memory = 0;       ///< bytes/s of the local memory; 0: sums are free
  double peak_tflops = 0;  ///< 0: not told
  /// All-reduces scatter up the dimensions and gather down (localBWAware); else the whole buffer
  /// goes through one after the other (baseline).
  bool hierarchical = false;
};

/// Network and system of an ASTRA-sim run.
struct AstraRun {
  std::vector<AstraDimension> dimensions;  ///< those of more than one rank, at least one
  AstraSystem system;
  std::string files;               ///< names of both, for people
  std::string algorithm_place;     ///< where the algorithms are written
  std::vector<std::string> notes;  ///< what is not told, and what is another way here
};

/// @param network YAML of the analytical back end
/// @param system JSON; empty: rings, one chunk, no delay
/// @throws config::ConfigError with file:line:column for what is no such file and for what has no
///         counterpart here
AstraRun read_astra_run(const std::string& network, const std::string& system);

/// A number as YAML has it.
std::string astra_digits(double value);

/// Links of a package: bytes/s of all, one way each, and how many.
struct AstraPorts {
  double line = 0, links = 1;
};
/// Writes the accelerator, with its links, memory and peak.
/// @param fact a number with the place that it comes from
void put_astra_accelerator(std::ostream& out, const AstraPorts& ports, const AstraSystem& system,
                           const std::function<std::string(const std::string&, const char*)>& fact);

/// Says of which dimensions messages share links, which costs them time here.
/// @throws config::ConfigError for halving and doubling among ranks that are no power of two
void check_astra_algorithms(const AstraRun& run, std::vector<std::string>& notes);

/// The system of a network of dimensions, as YAML.
std::string astra_dimensions_text(const AstraRun& run);

}  // namespace orrery
