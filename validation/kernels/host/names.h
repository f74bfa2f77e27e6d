// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery::measure {

/// Name of a system in the CSV files, from the GPU's name as the driver tells it: "NVIDIA H200" is
/// "h200_sxm". A GPU without a customary name gets its own in lower case, with underscores.
std::string system_name(const std::string& gpu);

/// "128x256" for cublasLtMatmulTile_t 23: rows x columns of a block's tile, in cuBLAS's (column
/// major) terms; the number itself for one that cublasLt.h of CUDA 13.0 does not have.
std::string tile_name(int id);
/// "2x1x1" for cublasLtClusterShape_t 3; "auto" for 0; the number for an unknown one.
std::string cluster_name(int id);
/// "64x4" for cublasLtMatmulStages_t 16: K elements of a stage x stages ("auto": as many as fit).
std::string stages_name(int id);

}  // namespace orrery::measure
