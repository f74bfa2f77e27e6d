// SPDX-License-Identifier: Apache-2.0
// Every key of a replay moves some result.
#include "tests/properties/schema_facts.h"
#include "tests/unit/workloads/formats/onnx/writer.h"

namespace orrery::facts::replay_facts_test {
namespace {

std::string trace_of(const std::string& nodes) { return R"({"workload_graph": [)" + nodes + "]}"; }

TEST(Facts, OfReplaysMoveResults) {
  const TextFile trace("facts_trace.json", trace_of(R"(
      {"Id": 1, "Name": "launch", "NodeType": 4, "is_cpu_op": true, "runtime": 7},
      {"Id": 2, "Name": "gemm", "NodeType": 4, "runtime": 9, "num_ops": 1000000, "data_deps": [1]})"));
  const TextFile other("facts_other.json", trace_of(R"({"Id": 1, "NodeType": 4, "runtime": 1})"));
  const TextFile dangling("facts_dangling.json",
                          trace_of(R"({"Id": 1, "NodeType": 4, "runtime": 1, "data_deps": [5]})"));
  const std::string reduce = R"("Name": "ar", "NodeType": 7, "comm_type": 0, "comm_size": 1000000)";
  const TextFile grouped("facts_grouped.json",
                         trace_of(R"({"Id": 1, "pg_name": "g", )" + reduce + "}"));
  const TextFile pair("facts_pair.json", R"({"g": [0, 1]})");
  const TextFile eight("facts_eight.json", R"({"g": [0, 1, 2, 3, 4, 5, 6, 7]})");
  const TextFile along("facts_along.json",
                       trace_of(R"({"Id": 1, "involved_dim": [true, false], )" + reduce + "}"));
  const TextFile fusible("facts_fusible.json", trace_of(R"(
      {"Id": 1, "Name": "product", "NodeType": 4, "orrery.class": "gemm",
       "orrery.kernel": "matrix_flops=1e9 read=1e8 written=1e8"},
      {"Id": 2, "Name": "relu", "NodeType": 4, "data_deps": [1], "orrery.class": "elementwise",
       "orrery.kernel": "read=1e8 written=1e8"})"));
  const auto replay = [](const TextFile& file, const std::string& more = "") {
    return "{experiment: replay, system: dgx_h100, graph: {path: " + file.path() + more + "}}";
  };
  onnx::GraphWriter model;
  model.input("x", {1024, 1024});
  model.output(model.add("Relu", {model.add("MatMul", {"x", model.weight("w", {1024, 1024})})}));
  const TextFile onnx("facts_model.onnx", onnx::model(model));
  const std::vector<Change> changes = {
      {"graph.path", replay(trace), {"graph.path=" + other.path()}},
      {"graph.groups",
       replay(grouped, ", groups: " + pair.path()),
       {"graph.groups=" + eight.path()}},
      {"graph.repair", replay(dangling, ", repair: true"), {"graph.repair=false"}},
      {"graph.dimensions",
       replay(along, ", dimensions: {dim0: 2, dim1: 4}"),
       {"graph.dimensions.dim0=4"}},
      {"graph.precision", replay(onnx), {"graph.precision=bf16"}},
      {"graph.fuse", replay(onnx), {"graph.fuse=false"}},
      {"graph.fuse_kernels", replay(fusible), {"graph.fuse_kernels=true"}},
      {"graph.host", replay(trace), {"graph.host=drop"}},
      {"algorithm", replay(grouped, ", groups: " + eight.path()), {"algorithm=direct"}},
      {"durations", replay(trace), {"durations=model"}},
      {"scale", replay(trace), {"scale.gemm=0.5"}},
  };
  expect_that_all_move("graph.", {}, changes);
}

}  // namespace
}  // namespace orrery::facts::replay_facts_test
