// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/system_config.h"

namespace orrery {

/// Optical circuit switches that join the cubes of a torus and close its axes: one for each axis
/// and each place on a face, to which every cube has a port on both faces (Jouppi et al., "TPU v4",
/// ISCA 2023, section 2: 48 for cubes of 4 x 4 x 4).
struct TorusOptics {
  int cubes = 0;
  int switches = 0;
  int ports = 0;  ///< ports in use, of each switch
  int links_per_cube = 0;
};

/// All 0 for other topologies, without cubes, or if an axis is not a multiple of the cube.
TorusOptics torus_optics(const ScaleUpConfig& config);

}  // namespace orrery
