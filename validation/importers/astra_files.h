// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace orrery {

/// One dimension of more than one rank. Shapes and algorithms have the names of the fabric
/// `dimensions` here.
struct AstraDimension {
  std::string name;   ///< Ring, FullyConnected or Switch
  std::string shape;  ///< ring, mesh or switch
  std::string algorithm = "ring";
  double ranks = 0;
  double bandwidth = 0;    ///< bytes/s of a link one way
  double latency_ns = 0;   ///< latency of a link
  std::size_t number = 0;  ///< number in the files, from 0, those of one rank included

  /// Messages of one step cross the same link: those of direct that go through one port, those of
  /// partners that are several ranks of a ring apart.
  bool shares_links() const {
    if (ranks <= 2) return false;
    if (algorithm == "direct") return shape != "mesh";
    return algorithm == "halving_doubling" && shape == "ring";
  }
};

/// Network and system of an ASTRA-sim run.
struct AstraRun {
  std::vector<AstraDimension> dimensions;  ///< those of more than one rank, at least one
  std::string files;                       ///< names of both, for people
  std::vector<std::string> notes;          ///< what is not told, and what is another way here

  // What of the system file counts beside the algorithms.
  double endpoint_delay_ns = 0;
  double splits = 1, active = 1;
  double memory = 0;       ///< bytes/s of the local memory; 0: sums are free
  double peak_tflops = 0;  ///< 0: not told
  /// All-reduces scatter up the dimensions and gather down (localBWAware); else the whole buffer
  /// goes through one after the other (baseline).
  bool hierarchical = false;
};

/// @param network YAML of the analytical back end
/// @param system JSON; empty: rings, one chunk, no delay
/// @throws config::ConfigError with file:line:column for what is no such file and for what has no
///         counterpart here
AstraRun read_astra_run(const std::string& network, const std::string& system);

}  // namespace orrery
