// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "validation/importers/importer.h"

namespace orrery {

/// Reads the SQLite file of rocprofv3 (rocpd_kernel_dispatch and rocpd_memory_copy, once for each
/// process, with its identity in the names of the tables), or of rocm-profile-data (rocpd_op).
/// @throws config::ConfigError when it is neither
ImportedTable read_rocpd(const std::string& path);

}  // namespace orrery
