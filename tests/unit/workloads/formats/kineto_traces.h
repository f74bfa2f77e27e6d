// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/byte_source.h"
#include "workloads/formats/communicators.h"
#include "workloads/formats/graph_format.h"

namespace orrery {

/// A trace as it was read, and when its nodes start and end, each as soon as it can.
struct ReadTrace {
  ImportedGraph graph;
  Communicators communicators;
  std::vector<std::string> notes;
  int rank = -1;
  std::vector<double> start, end;  ///< us, by node
  double span = 0;                 ///< end of the last node, us

  /// Nodes with a name, in the order of the graph.
  std::vector<NodeId> named(const std::string& name) const {
    std::vector<NodeId> nodes;
    for (NodeId node = 0; node < graph.size(); ++node)
      if (graph.name(node) == name) nodes.push_back(node);
    return nodes;
  }
  bool notes_contain(const std::string& text) const {
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find(text) != std::string::npos;
    });
  }
  bool waits_for(NodeId later, NodeId earlier) const {
    const auto from = graph.next.begin() + graph.nodes[earlier].first_next;
    const auto to = graph.next.begin() + graph.nodes[earlier + 1].first_next;
    return std::find(from, to, later) != to;
  }
  /// The same with other times of kernels: by name, over those recorded.
  void replay(const std::map<std::string, double>& scale = {});
};

inline void ReadTrace::replay(const std::map<std::string, double>& scale) {
  constexpr double kPicosecond = 1e-6;  // in us
  start.assign(graph.size(), 0);
  end.assign(graph.size(), 0);
  std::vector<std::uint32_t> waits;
  std::vector<NodeId> ready;
  for (NodeId node = 0; node < graph.size(); ++node) {
    waits.push_back(graph.nodes[node].waits);
    if (waits.back() == 0) ready.push_back(node);
  }
  span = 0;
  std::size_t ended = 0;
  while (!ready.empty()) {
    const NodeId node = ready.back();
    ready.pop_back();
    ++ended;
    const ImportedNode& of = graph.nodes[node];
    const bool sends = of.kind >= NodeKind::kCollective;
    const Picoseconds recorded =
        sends ? graph.messages[of.work].recorded : graph.works[of.work].recorded;
    const auto factor = scale.find(std::string(graph.name(node)));
    end[node] = start[node] + static_cast<double>(recorded) * kPicosecond *
                                  (factor == scale.end() ? 1 : factor->second);
    span = std::max(span, end[node]);
    for (std::uint32_t e = of.first_next; e < graph.nodes[node + 1].first_next; ++e) {
      const NodeId next = graph.next[e];
      start[next] = std::max(start[next], end[node]);
      if (--waits[next] == 0) ready.push_back(next);
    }
  }
  if (ended != graph.size()) span = -1;
}

inline ReadTrace read_trace(ByteSource& source) {
  ReadTrace trace;
  GraphBuilder builder;
  const auto& format = GraphFormatRegistry::items().at("kineto").entry;
  format->read(source, {}, trace.communicators, builder, trace.notes);
  trace.rank = builder.rank();
  trace.graph = builder.finish(source.path(), false, trace.notes);
  trace.replay();
  return trace;
}

inline ReadTrace read_trace_text(const std::string& text) {
  ByteSource source("trace.json", text);
  return read_trace(source);
}

/// Events as Kineto writes them, times in us.
class TraceText {
 public:
  /// A call on the host, and what it launches: a kernel on a stream.
  TraceText& kernel(const std::string& name, double call, double start, double duration,
                    int stream = 7, const std::string& arguments = {}, int thread = 1) {
    launch("cudaLaunchKernel", call, thread);
    return op("kernel", name, start, duration, stream, arguments);
  }
  TraceText& copy(const std::string& call_name, double call, double call_duration, double start,
                  double duration, int stream = 7) {
    launch(call_name, call, 1, call_duration);
    return op("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", start, duration, stream,
              R"(, "bytes": 4096)");
  }
  /// A call without a kernel.
  TraceText& call(const std::string& name, double start, double duration, int thread = 1) {
    return launch(name, start, thread, duration);
  }
  TraceText& sync(const std::string& kind, int stream, const std::string& more = {}) {
    return event(R"({"ph": "X", "cat": "cuda_sync", "name": ")" + kind +
                 R"(", "pid": 0, "tid": 7, "ts": 1, "dur": 1, "args": {"stream": )" +
                 std::to_string(stream) + R"(, "correlation": )" + std::to_string(correlation_) +
                 more + R"(, "device": 0}})");
  }
  TraceText& cpu(const std::string& name, double start, double duration,
                 const std::string& arguments, int thread = 1) {
    return event(R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 9, "tid": )" +
                 std::to_string(thread) + R"(, "ts": )" + number(start) + R"(, "dur": )" +
                 number(duration) + R"(, "args": {)" + arguments + "}}");
  }
  TraceText& op(const std::string& category, const std::string& name, double start, double duration,
                int stream, const std::string& arguments = {}) {
    return event(R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
                 R"(", "pid": 0, "tid": )" + std::to_string(stream) + R"(, "ts": )" +
                 number(start) + R"(, "dur": )" + number(duration) +
                 R"(, "args": {"device": 0, "stream": )" + std::to_string(stream) +
                 R"(, "correlation": )" + std::to_string(correlation_) + arguments + "}}");
  }
  TraceText& event(const std::string& text) {
    events_.push_back(text);
    return *this;
  }
  int correlation() const { return correlation_; }
  std::vector<std::string>& events() { return events_; }

  std::string array() const {
    std::string text = "[";
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (i > 0) text += ",\n";
      text += events_[i];
    }
    return text + "]";
  }
  std::string text(const std::string& before = R"("schemaVersion": 1, )") const {
    return "{" + before + "\"traceEvents\": " + array() + "}";
  }

 private:
  static std::string number(double us) {
    std::string text = std::to_string(us);  // six digits behind the point
    return text;
  }
  TraceText& launch(const std::string& name, double start, int thread, double duration = 4) {
    ++correlation_;
    return event(R"({"ph": "X", "cat": "cuda_runtime", "name": ")" + name +
                 R"(", "pid": 9, "tid": )" + std::to_string(thread) + R"(, "ts": )" +
                 number(start) + R"(, "dur": )" + number(duration) +
                 R"(, "args": {"correlation": )" + std::to_string(correlation_) + "}}");
  }

  std::vector<std::string> events_;
  int correlation_ = 100;
};

}  // namespace orrery
