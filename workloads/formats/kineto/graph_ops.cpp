// SPDX-License-Identifier: Apache-2.0
// Kernels, copies and fills of a trace in its graph.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/config/diagnostics.h"
#include "workloads/formats/kineto/graph.h"

namespace orrery::kineto {
namespace {

/// A kernel does not begin earlier than what it waits for ends, but for how times are rounded.
constexpr std::int64_t kStreamSlack = 1000;  // ns
/// A gap that launches and streams explain is shorter; a stream that was waited for lets the next
/// one go on within the second time.
constexpr std::int64_t kUnexplained = 20'000, kCause = 10'000;  // ns
/// What is behind by so many ops nothing waits for any more.
constexpr std::size_t kKept = 16384;

std::string milliseconds(std::int64_t nanoseconds) {
  return fmt::format("{:.6g} ms", static_cast<double>(nanoseconds) * 1e-6);
}

std::string share(std::int64_t part, std::int64_t whole) {
  return fmt::format(
      "{:.1f} %", whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
}

}  // namespace

GraphMaker::GraphMaker(Trace& trace, std::string path, Communicators& communicators,
                       GraphBuilder& graph)
    : trace_(trace),
      path_(std::move(path)),
      communicators_(communicators),
      graph_(graph),
      streams_(trace.ops, trace.streams.size()),
      threads_(trace.threads.size()) {}

/// What a stream has been told to wait for before an op was launched.
void GraphMaker::stream_waits(const DeviceOp& op, std::vector<PlannedEnd>& ends) {
  std::deque<StreamWait>& waits = streams_[op.stream].waits;
  const std::int64_t latest = op.start + kStreamSlack;
  for (; !waits.empty() && waits.front().call < op.call; waits.pop_front()) {
    const StreamWait& wait = waits.front();
    if (wait.source != kNoStream) {
      if (const auto end = streams_.last(wait.source, wait.before, latest)) ends.push_back(*end);
    } else {
      ++counts_.guessed_waits;
      const auto all = streams_.last_of_all(wait.before, latest, op.stream);
      ends.insert(ends.end(), all.begin(), all.end());
    }
  }
}

/// A kernel that begins long after all that it is known to wait for, as another stream ends, waits
/// for that: profilers leave out calls, and what was launched before they began.
void GraphMaker::find_cause(const DeviceOp& op, std::vector<PlannedEnd>& ends) {
  if (op.start - std::max(latest(ends, origin_), op.launch) <= kUnexplained) return;
  const std::vector<PlannedEnd> others = streams_.last_of_all(latest_call_, op.start, op.stream);
  const auto last = std::max_element(others.begin(), others.end());
  if (last == others.end() || op.start - last->end > kCause) return;
  ends.push_back(*last);
  ++counts_.guessed_causes;
}

NodeWork GraphMaker::work_of(const DeviceOp& op, std::int64_t duration) {
  NodeWork work = recorded(duration);
  const NameFacts& facts = trace_.facts[op.name];
  work.kind = op.kind == OpKind::kKernel ? facts.kind : KernelClass::kCopy;
  work.classified = op.kind != OpKind::kKernel || facts.classified;
  if (op.kind == OpKind::kKernel) {
    counts_.kernel_time += op.duration;
    if (work.classified) counts_.classified += op.duration;
  }
  if (op.detail == kNone || op.collective) return work;
  Kernel kernel = trace_.shapes[op.detail];
  if (facts.tf32 && kernel.precision == Precision::kFp32) kernel.precision = Precision::kTf32;
  if (op.kind == OpKind::kKernel) counts_.shaped += op.duration;
  work.kind = kernel.kind;
  work.kernel = graph_.kernel(kernel);
  return work;
}

NodeId GraphMaker::add_op_node(const DeviceOp& op, std::int64_t duration) {
  const std::uint64_t id = graph_.size();
  const std::string_view name = trace_.names.at(op.name);
  const std::uint16_t stream = streams_[op.stream].graph_stream;
  if (!trace_.facts[op.name].collective) return add_kernel(id, name, stream, work_of(op, duration));
  if (op.detail != kNone && op.collective) {
    const auto node = message_of(trace_.collectives[op.detail], trace_.header, communicators_);
    if (node) {
      ImportedMessage message = node->message;
      message.recorded = picoseconds(duration);
      ++counts_.collectives;
      counts_.collective_time += op.duration;
      return graph_.add(id, name, node->kind, stream, message);
    }
  }
  ++counts_.unknown_collectives;
  counts_.unknown_collective_time += op.duration;
  NodeWork work = recorded(duration);
  work.communicates = true;
  return add_kernel(id, name, stream, work);
}

/// Times do not tell who reads what a kernel writes.
NodeId GraphMaker::add_kernel(std::uint64_t id, std::string_view name, std::uint16_t stream,
                              const NodeWork& work) {
  const NodeId node = graph_.add(id, name, NodeKind::kKernel, stream, work);
  graph_.keeps(node);
  return node;
}

void GraphMaker::take_op(std::uint32_t index) {
  DeviceOp& op = trace_.ops[index];
  Streams::State& stream = streams_[op.stream];
  if (!op.launched || op.node == kNone) {
    op.launched = false;
    op.call = latest_call_;
    op.launch = origin_;
    ++counts_.unlaunched;
  }
  std::vector<PlannedEnd> ends;  // on the device
  if (stream.last != kNone) ends.push_back(stream.end);
  if (!stream.waits.empty()) stream_waits(op, ends);
  find_cause(op, ends);
  const std::int64_t device = latest(ends, origin_);
  const std::int64_t ready = std::max(device, op.launch);
  const bool by_launch = op.launched && op.launch >= device;
  const std::int64_t start = std::max(ready, op.start);
  if (by_launch) ++counts_.paced;
  counts_.gap_time += start - ready;
  std::uint32_t gap = kNone;
  if (start > ready) {
    gap = graph_.add(graph_.size(), "gap", NodeKind::kHost, gaps_, recorded(start - ready));
    if (by_launch) graph_.follows(gap, op.node);
    if (!by_launch)
      for (const PlannedEnd& end : ends) graph_.follows(gap, end.node);
  }
  // A kernel that begins before the one in front of it ends (programmatic launch) is counted from
  // there on.
  const std::int64_t overlap = std::max<std::int64_t>(
      0,
      std::min(op.duration, stream.recorded_end == INT64_MIN ? 0 : stream.recorded_end - op.start));
  if (overlap > 0) ++counts_.overlaps;
  const std::int64_t recorded_end = op.start + op.duration;
  counts_.first_start = std::min(counts_.first_start, op.start);
  counts_.last_end = std::max(counts_.last_end, recorded_end);
  if (op.launched) ++begun_;
  const NodeId node = add_op_node(op, op.duration - overlap);
  if (gap != kNone) graph_.follows(node, gap);
  if (op.launched && (gap == kNone || !by_launch)) graph_.follows(node, op.node);
  if (gap == kNone || by_launch)
    for (const PlannedEnd& end : ends) graph_.follows(node, end.node);
  streams_.append(index, {node, start + op.duration - overlap}, recorded_end);
}

/// Where the graph begins: with the first event of a thread that calls, or on a device.
void GraphMaker::find_origin() {
  std::int64_t begin = INT64_MAX, end = INT64_MIN;
  for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
    begin = std::min(begin, trace_.ops[i].start);
    end = std::max(end, trace_.ops[i].start + trace_.ops[i].duration);
  }
  std::vector<bool> calls(trace_.threads.size());
  for (std::size_t i = 0; i < trace_.calls.size(); ++i) calls[trace_.calls[i].thread] = true;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i]) continue;
    begin = std::min(begin, trace_.threads[i].begin);
    end = std::max(end, trace_.threads[i].end);
  }
  constexpr auto kMostSpan = static_cast<std::int64_t>(kMaxTime / kPicosecondsOfNanosecond);
  if (end - begin > kMostSpan)
    throw config::ConfigError(
        fmt::format("{}: the events are {:.0f} days apart, more than the 106 that can be simulated",
                    path_, static_cast<double>(end - begin) / 86400e9));
  origin_ = begin;
  counts_.span = end - begin;
  const std::vector<ThreadSpan>& all = trace_.threads;
  const bool is_one_process = std::all_of(all.begin(), all.end(), [&](const ThreadSpan& thread) {
    return thread.process == all.front().process;
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    threads_[i].now = threads_[i].recorded = origin_;
    if (!calls[i]) continue;
    threads_[i].stream = graph_.stream(
        is_one_process ? fmt::format("thread {}", all[i].thread)
                       : fmt::format("process {} thread {}", all[i].process, all[i].thread));
  }
}

/// Streams that only events name are none of the graph's.
void GraphMaker::name_streams() {
  const std::vector<StreamKey>& all = trace_.streams;
  const bool is_one_device = std::all_of(all.begin(), all.end(), [&](const StreamKey& stream) {
    return stream.device == all.front().device;
  });
  std::vector<bool> used(all.size());
  for (std::size_t i = 0; i < trace_.ops.size(); ++i) used[trace_.ops[i].stream] = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!used[i]) continue;
    ++counts_.streams;
    streams_[static_cast<std::uint16_t>(i)].graph_stream = graph_.stream(
        is_one_device ? fmt::format("stream {}", all[i].stream)
                      : fmt::format("device {} stream {}", all[i].device, all[i].stream));
  }
  gaps_ = graph_.stream("gaps", false);
}

void GraphMaker::make(std::vector<std::string>& notes) {
  if (trace_.ops.empty())
    throw config::ConfigError(path_ + ": has no kernels, copies or fills of a device" +
                              (trace_.threads.empty() ? "" : ", only events of the host"));
  find_origin();
  measure_launches();
  place_calls();
  name_streams();
  const std::size_t calls = trace_.calls.size(), ops = trace_.ops.size();
  for (std::size_t i = 0; i < calls; ++i)
    if (trace_.calls[i].kind == CallKind::kRecord && trace_.calls[i].correlation != kUnknown)
      records_.emplace_back(trace_.calls[i].correlation, static_cast<std::uint32_t>(i));
  std::sort(records_.begin(), records_.end());
  const auto order = sorted_order(calls, [&](std::uint32_t a, std::uint32_t b) {
    return trace_.calls[a].end < trace_.calls[b].end;
  });
  constexpr std::size_t kNodes = 3, kDependencies = 5;  // of an op, mostly
  graph_.reserve(ops * kNodes, ops * kDependencies);
  std::vector<bool> taken(calls);
  std::size_t next = 0, first_left = 0;
  const auto take_next = [&] {
    take_call(order[next]);
    taken[order[next++]] = true;
    while (first_left < calls && taken[first_left]) ++first_left;
    trace_.calls.release_before(first_left);
  };
  for (std::size_t o = 0; o < ops; ++o) {
    const std::int64_t start = trace_.ops[o].start;
    while (next < calls && (trace_.calls[order[next]].end < start ||
                            (trace_.calls[order[next]].end == start &&
                             trace_.calls[order[next]].kind == CallKind::kLaunch)))
      take_next();
    take_op(static_cast<std::uint32_t>(o));
    if (o > kKept) trace_.ops.release_before(o - kKept);
  }
  while (next < calls) take_next();
  end_threads();
  write_notes(notes);
}

void GraphMaker::write_notes(std::vector<std::string>& notes) {
  const auto note = [&](const std::string& text) { notes.push_back(path_ + ": " + text); };
  const auto counted = [&](std::uint64_t count, const char* text) {
    if (count > 0) note(fmt::format("{}{}", count, text));
  };
  note(fmt::format(
      "{} kernels, copies and fills on {} streams, recorded over {}, the devices' part {}",
      trace_.ops.size(), counts_.streams, milliseconds(counts_.span),
      milliseconds(counts_.last_end - counts_.first_start)));
  note(fmt::format("class known for {} of the kernels' time, sizes for {}",
                   share(counts_.classified, counts_.kernel_time),
                   share(counts_.shaped, counts_.kernel_time)));
  if (counts_.collectives > 0)
    note(fmt::format("{} collectives ({}); recorded times have waits for others in them",
                     counts_.collectives, milliseconds(counts_.collective_time)));
  if (counts_.unknown_collectives > 0)
    note(
        fmt::format("{} kernels of NCCL ({}) whose collective, bytes or group the trace has not "
                    "recorded: kept as kernels of the recorded duration, waits for others included",
                    counts_.unknown_collectives, milliseconds(counts_.unknown_collective_time)));
  note(fmt::format(
      "{} of these begin as the host launches them, which faster kernels do not change "
      "unless the host waits for them; {} of gaps that nothing explains stay as they "
      "are",
      share(static_cast<std::int64_t>(counts_.paced), static_cast<std::int64_t>(trace_.ops.size())),
      milliseconds(counts_.gap_time)));
  counted(trace_.wrong_times, " events with times that are none, left out");
  counted(trace_.wrong_bytes, " bytes of names that are no UTF-8, taken as question marks");
  counted(counts_.unlaunched,
          " kernels whose launch the trace does not have: they follow their streams");
  counted(counts_.overlaps,
          " kernels that begin before the one in front of them ends, counted from there on");
  counted(counts_.guessed_waits,
          " waits of streams whose event the trace has not recorded: for all that other streams "
          "had been given");
  counted(counts_.guessed_causes,
          " kernels that begin late, as another stream ends: taken to have waited for it");
  counted(counts_.full_queues, " launches that waited until the device had taken earlier ones");
  counted(counts_.guessed_syncs,
          " waits of the host whose stream the trace has not recorded: for what ended last");
}

}  // namespace orrery::kineto
