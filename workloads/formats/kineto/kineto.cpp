// SPDX-License-Identifier: Apache-2.0
// Traces of the PyTorch profiler (Kineto) in Chrome's JSON.
#include <charconv>
#include <string>
#include <utility>

#include "sim/config/byte_source.h"
#include "workloads/formats/communicators.h"
#include "workloads/formats/graph_format.h"
#include "workloads/formats/kineto/graph.h"

namespace orrery {
namespace {

class KinetoFormat final : public GraphFormat {
 public:
  bool recognises(std::string_view head, std::string_view /*path*/) const override {
    const std::size_t at = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (at == std::string_view::npos) return false;
    const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
    if (head[at] == '[') return has("\"ph\"");  // events without an object around them
    if (head[at] != '{') return false;
    // An execution trace of PyTorch has a schema as well, but nodes.
    if (has("\"traceEvents\"")) return true;
    return !has("\"nodes\"") &&
           (has("\"deviceProperties\"") || has("\"distributedInfo\"") || has("\"schemaVersion\""));
  }

  int rank(std::string_view head) const override {
    const std::size_t info = head.find("\"distributedInfo\"");
    if (info == std::string_view::npos) return -1;
    const std::string_view object = head.substr(info, head.find('}', info) - info);
    constexpr std::string_view kKey = "\"rank\"";
    const std::size_t key = object.find(kKey);
    if (key == std::string_view::npos) return -1;
    const std::size_t number = object.find_first_not_of(": \t\r\n", key + kKey.size());
    int rank = -1;
    if (number != std::string_view::npos)
      std::from_chars(object.data() + number, object.data() + object.size(), rank);
    return rank < kineto::kMostRanks ? rank : -1;
  }

  void read(ByteSource& source, const GraphReadOptions& /*options*/, Communicators& communicators,
            GraphBuilder& graph, std::vector<std::string>& notes) const override {
    kineto::Trace trace = kineto::read_trace(source, notes);
    if (trace.header.rank >= 0 && trace.header.rank < kineto::kMostRanks)
      graph.belongs_to(static_cast<int>(trace.header.rank));
    kineto::correlate(trace);
    kineto::GraphMaker(trace, source.path(), communicators, graph).make(notes);
  }
};

const GraphFormatRegistry::Register kineto_format(
    "kineto", "trace of the PyTorch profiler: kernels, launches, collectives of one rank",
    std::make_shared<KinetoFormat>());

}  // namespace
}  // namespace orrery
