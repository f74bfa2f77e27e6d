// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "sim/config/declared.h"
#include "sim/config/file_path.h"
#include "workloads/formats/graph_files.h"

namespace orrery {

/// Whether host operators of a graph take their time, or none.
enum class HostWork : std::uint8_t { kKeep, kDrop };

/// What floating-point numbers of a model are run in.
enum class GraphPrecision : std::uint8_t { kFile, kFp32, kTf32, kBf16, kFp16, kFp8 };

/// The operator graphs of a run as a user names them.
struct GraphConfig {
  std::string path;  ///< a file, a folder, or a prefix: see GraphFiles
  FilePath groups;   ///< JSON file of communicators
  bool repair = false;
  std::map<std::string, std::int64_t> dimensions;  ///< sizes of symbolic dimensions
  HostWork host = HostWork::kKeep;
  GraphPrecision precision = GraphPrecision::kFile;
  bool fuse = true;
  bool fuse_kernels = false;
  static const config::Schema<GraphConfig>& schema();

  GraphFiles files() const;
};

}  // namespace orrery

namespace orrery::config {

template <>
struct EnumNames<HostWork> {
  static constexpr std::pair<HostWork, const char*> values[] = {{HostWork::kKeep, "keep"},
                                                                {HostWork::kDrop, "drop"}};
};

template <>
struct EnumNames<GraphPrecision> {
  static constexpr std::pair<GraphPrecision, const char*> values[] = {
      {GraphPrecision::kFile, "file"}, {GraphPrecision::kFp32, "fp32"},
      {GraphPrecision::kTf32, "tf32"}, {GraphPrecision::kBf16, "bf16"},
      {GraphPrecision::kFp16, "fp16"}, {GraphPrecision::kFp8, "fp8"}};
};

}  // namespace orrery::config
