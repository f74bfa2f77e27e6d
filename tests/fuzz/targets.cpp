// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "models/collectives/plans/execution_plan.h"
#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "sim/config/load.h"
#include "tests/fuzz/target.h"
#include "validation/importers/importer.h"
#include "workloads/formats/communicators.h"
#include "workloads/formats/cycles.h"
#include "workloads/formats/graph_format.h"
#include "workloads/formats/graph_fusion.h"
#include "workloads/layers/closed_forms.h"
#include "workloads/models/huggingface/huggingface.h"
#include "workloads/requests/trace_format.h"

namespace orrery {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_graph(const ImportedGraph& graph) {
  require(shortest_cycle(graph).empty());
  for (NodeId node = 0; node < graph.size(); ++node) {
    const ImportedNode& n = graph.nodes[node];
    require(n.stream < graph.streams.size());
    require(n.first_next <= graph.nodes[node + 1].first_next);
  }
  for (const NodeId next : graph.next) require(next < graph.size());
}

/// Reads a graph by one format, whether it recognises it or not, and looks at what it made, and at
/// what fusion makes of that.
void read_graph(const char* format, std::string_view bytes) {
  std::vector<std::string> notes;
  try {
    ByteSource source("fuzzed", bytes);
    Communicators communicators;
    GraphBuilder builder;
    builder.collect_tensors();
    GraphReadOptions options;
    options.dimensions = {{"batch", 2}, {"dim0", 4}};
    const GraphFormat& reader = *GraphFormatRegistry::at("graph format", format, "");
    reader.recognises(bytes.substr(0, 65536), "fuzzed");
    reader.read(source, options, communicators, builder, notes);
    const bool repair = bytes.size() % 2 == 1;
    ImportedGraph graph = builder.finish("fuzzed", repair, notes);
    check_graph(graph);
    fuse_kernels(graph, builder.tensors());
    check_graph(graph);
  } catch (const config::ConfigError&) {
    return;
  }
}

void chakra(std::string_view bytes) { read_graph("chakra", bytes); }
void chakra_json(std::string_view bytes) { read_graph("chakra-json", bytes); }
void kineto(std::string_view bytes) { read_graph("kineto", bytes); }
void onnx(std::string_view bytes) { read_graph("onnx", bytes); }

void huggingface(std::string_view bytes) {
  try {
    const nlohmann::json configuration = nlohmann::json::parse(bytes, nullptr, false);
    if (configuration.is_discarded()) return;
    const LlmConfig model = from_huggingface(configuration, "fuzzed", "fuzzed.json");
    const ParameterCount count = count_parameters(model);
    require(count.total >= count.active && count.active > 0);
  } catch (const config::ConfigError&) {
    return;
  }
}

/// Requests by the forms of traces that recognise the bytes, and by one more, which their number
/// chooses.
void traces(std::string_view bytes) {
  const TraceText text{"fuzzed", std::string(bytes)};
  std::size_t left = bytes.size() % TraceFormats::items().size();
  for (const auto& [name, item] : TraceFormats::items()) {
    const bool recognised = item.entry.recognises(bytes);
    if (left-- != 0 && !recognised) continue;
    try {
      for (const TracedRequest& request : item.entry.read(text))
        require(request.request.prompt > 0 && request.request.output > 0);
    } catch (const config::ConfigError&) {
      continue;
    }
  }
}

/// Importers read files: one in memory.
std::string scratch_file(std::string_view bytes) {
  const bool has_memory = std::filesystem::exists("/dev/shm");
  static const std::string path =
      (has_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) +
      "/orrery_fuzz_" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

void import(const char* kind, std::string_view bytes, const ImportOptions& options) {
  try {
    std::ostringstream csv;
    write_csv(import_file(kind, scratch_file(bytes), options), csv);
  } catch (const config::ConfigError&) {
    return;
  }
}

void nccl_topology(std::string_view bytes) { import("nccl-topology", bytes, {}); }
void nccl_tests(std::string_view bytes) { import("nccl-tests", bytes, {"", "all_gather"}); }
void ncu(std::string_view bytes) { import("ncu", bytes, {}); }
void vllm(std::string_view bytes) { import("vllm", bytes, {}); }

void infragraph(std::string_view bytes) { import("infragraph", bytes, {"dgx_h100", ""}); }

void execution_plan(std::string_view bytes) {
  try {
    config::Diagnostics diagnostics;
    const config::Node node = config::parse_yaml(std::string(bytes), "fuzzed", diagnostics);
    diagnostics.throw_if_errors();
    if (!is_execution_plan(node)) return;
    const ExecutionPlan plan = read_execution_plan(node, diagnostics);
    const PlanSchedule made = schedule_of(plan, diagnostics);
    require(made.places.size() == made.schedule.messages.size());
  } catch (const config::ConfigError&) {
    return;
  }
}

constexpr std::array kTargets = {
    FuzzTarget{"chakra", chakra},
    FuzzTarget{"chakra_json", chakra_json},
    FuzzTarget{"kineto", kineto},
    FuzzTarget{"onnx", onnx},
    FuzzTarget{"huggingface", huggingface},
    FuzzTarget{"traces", traces},
    FuzzTarget{"nccl_topology", nccl_topology},
    FuzzTarget{"nccl_tests", nccl_tests},
    FuzzTarget{"ncu", ncu},
    FuzzTarget{"vllm", vllm},
    FuzzTarget{"infragraph", infragraph},
    FuzzTarget{"execution_plan", execution_plan},
};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() { return kTargets; }

}  // namespace orrery
