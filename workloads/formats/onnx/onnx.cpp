// SPDX-License-Identifier: Apache-2.0
// ONNX (https://github.com/onnx/onnx/blob/main/docs/IR.md): a model as operators between tensors.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "workloads/formats/graph_format.h"
#include "workloads/formats/onnx/kernels.h"
#include "workloads/formats/onnx/lowering.h"
#include "workloads/formats/onnx/model_reader.h"

namespace orrery {
namespace {

class OnnxFormat final : public GraphFormat {
 public:
  /// Files have no magic. A ModelProto begins with its first field, the version of the format (1 to
  /// 15 so far), and one of those that may follow: a producer, a domain, a text, the graph, opsets.
  bool recognises(std::string_view head, std::string_view path) const override {
    constexpr std::size_t kShortest = 4;
    constexpr char kVersion = 0x08, kMostVersion = 15;
    constexpr std::string_view kSuffix = ".onnx";
    const bool named =
        path.size() >= kSuffix.size() && path.substr(path.size() - kSuffix.size()) == kSuffix;
    if (head.size() < kShortest) return named && !head.empty();
    if (head[0] == kVersion && head[1] > 0 && head[1] <= kMostVersion) {
      constexpr std::string_view kNext("\x12\x1a\x22\x2a\x32\x3a\x42\x72");
      return kNext.find(head[2]) != std::string_view::npos || head[2] == '\x28';
    }
    return named;
  }

  void read(ByteSource& source, const GraphReadOptions& options, Communicators& /*communicators*/,
            GraphBuilder& graph, std::vector<std::string>& notes) const override {
    const onnx::Model model = onnx::read_model(source);
    if (model.graph.nodes.empty() && model.ir_version == 0)
      throw config::ConfigError(source.path() +
                                ": no ONNX model: it has neither a version nor operators");
    onnx::LoweredModel lowered =
        onnx::lower(model, {source.path(), options.dimensions, {options.precision}});
    for (const std::string& note : lowered.notes) notes.push_back(source.path() + ": " + note);
    onnx::write_kernels(std::move(lowered), options.fuse, graph);
  }
};

const GraphFormatRegistry::Register registered_onnx(
    "onnx", "ONNX models, opsets 7 to 23: operators as kernels, weights left aside",
    std::make_shared<OnnxFormat>());

}  // namespace
}  // namespace orrery
