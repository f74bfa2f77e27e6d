// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/graphs/graph_config.h"

#include <optional>
#include <utility>

#include "sim/config/schema.h"

namespace orrery {

const config::Schema<GraphConfig>& GraphConfig::schema() {
  using G = GraphConfig;
  static const auto schema =
      config::Schema<G>("graph", "operator graphs of a run, from another program")
          .required("path", &G::path,
                    "a file; a folder with one file for each rank; or a prefix, which stands for "
                    "PREFIX.<rank>.et and the like")
          .optional("groups", &G::groups, "JSON file of communicators: {\"name\": [ranks], ...}")
          .optional("repair", &G::repair,
                    "drops dependencies on nodes that are not there, and those that close cycles; "
                    "a collective of Chakra without comm_type takes that of its name")
          .optional("dimensions", &G::dimensions, "sizes of symbolic dimensions",
                    config::between(1, 1e12))
          .optional("host", &G::host,
                    "host operators: keep (they take the time that is recorded), drop (none)")
          .optional("precision", &G::precision,
                    "what floating-point numbers of a model run in; file: what it says (ONNX)")
          .optional("fuse", &G::fuse,
                    "whether a model's operators run in kernels with their neighbours (ONNX)")
          .optional(
              "fuse_kernels", &G::fuse_kernels,
              "whether kernels run with the ones behind them: attention, epilogues of products, "
              "elementwise kernels, where files say who reads what they write (Chakra; "
              "durations: model)");
  return schema;
}

GraphFiles GraphConfig::files() const {
  GraphFiles files{path, groups.path, repair, dimensions, std::nullopt, fuse, fuse_kernels};
  switch (precision) {
    case GraphPrecision::kFile:
      break;
    case GraphPrecision::kFp32:
      files.precision = Precision::kFp32;
      break;
    case GraphPrecision::kTf32:
      files.precision = Precision::kTf32;
      break;
    case GraphPrecision::kBf16:
      files.precision = Precision::kBf16;
      break;
    case GraphPrecision::kFp16:
      files.precision = Precision::kFp16;
      break;
    case GraphPrecision::kFp8:
      files.precision = Precision::kFp8;
      break;
  }
  return files;
}

}  // namespace orrery
