// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "validation/importers/importer.h"

namespace orrery {

/// Whether a text has a table of Huawei's hccl_test, the sister of nccl-tests for Ascend.
bool is_hccl_test(const std::string& text);

/// Reads the tables of hccl_test in the columns of nccl-tests (Ascend documentation, "HCCL
/// performance test tool"):
///   mpirun -n 8 ./bin/all_reduce_test -p 8 -b 8K -e 64M -f 2 -d fp32 -o sum
///   data_size(Bytes):  | aveg_time(us):  | alg_bandwidth(GB/s):  | check_result:
///   8192               | 43.50           | 0.18832               | success
/// The type, the operation and the number of ranks stand in the command alone, where it is printed.
/// @throws config::ConfigError for what is wrong, with its place
ImportedTable read_hccl_test(const std::string& path, const std::string& text,
                             const ImportOptions& options);

}  // namespace orrery
