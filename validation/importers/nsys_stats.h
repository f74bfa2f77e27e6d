// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "validation/importers/importer.h"

namespace orrery {

/// Whether a text has a table of `nsys stats --format csv` with activities of GPUs.
bool is_nsys_stats(const std::string& text);

/// Reads the tables cuda_gpu_trace, cuda_gpu_kern_sum, cuda_gpu_kern_gb_sum and
/// cuda_gpu_mem_time_sum (Nsight Systems, "Report Scripts"), also by their names before 2022. Other
/// tables of the text are counted in a note.
/// @throws config::ConfigError for what is wrong, with its place
ImportedTable read_nsys_stats(const std::string& path, const std::string& text);

}  // namespace orrery
