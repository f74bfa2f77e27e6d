// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/kineto/graph.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "sim/config/diagnostics.h"

namespace orrery::kineto {
namespace {

constexpr std::int64_t kMicrosecond = 1000;  // ns
/// A thread that has not called for so long while others have is taken to have waited for them: a
/// launch takes PyTorch 5 to 20 us on the host.
constexpr std::int64_t kIdle = 100 * kMicrosecond;
/// Launches that a device takes before the host has to wait: 1,024 of NVIDIA's, some of which are
/// not kernels.
constexpr std::uint64_t kQueue = 512;
/// Clocks of device and host differ by less.
constexpr std::int64_t kSlack = 5 * kMicrosecond;
/// A kernel whose stream is idle and that begins within so many latencies is launched late; one
/// that takes longer waits for something else.
constexpr std::int64_t kLateLaunch = 3;

/// Kernels that a stream may have before the one that is waited for: launch queues of devices are
/// shorter.
constexpr std::size_t kFarthest = 4096;

bool is_sync(CallKind kind) {
  return kind == CallKind::kDeviceSync || kind == CallKind::kStreamSync ||
         kind == CallKind::kEventSync || kind == CallKind::kCopySync ||
         kind == CallKind::kQueueSync;
}

}  // namespace

std::optional<PlannedEnd> Streams::last(std::uint16_t stream, std::uint32_t call,
                                        std::int64_t latest) const {
  const State& state = states_[stream];
  if (state.last == kNone) return std::nullopt;
  if (state.call <= call && state.end.end <= latest) return state.end;
  // What lies further back has ended long ago.
  std::size_t left = kFarthest;
  for (std::uint32_t i = state.last; i != kNone && ops_.holds(i) && left > 0;
       i = ops_[i].previous, --left)
    if (ops_[i].call <= call && ops_[i].start <= latest)
      return PlannedEnd{ops_[i].node, ops_[i].start};
  return std::nullopt;
}

std::vector<PlannedEnd> Streams::last_of_all(std::uint32_t call, std::int64_t latest,
                                             std::uint16_t without) const {
  std::vector<PlannedEnd> ends;
  for (std::size_t stream = 0; stream < states_.size(); ++stream) {
    if (stream == without) continue;
    if (const auto end = last(static_cast<std::uint16_t>(stream), call, latest))
      ends.push_back(*end);
  }
  return ends;
}

void Streams::add_wait(std::uint16_t stream, const StreamWait& wait) {
  std::deque<StreamWait>& waits = states_[stream].waits;
  auto at = waits.end();
  while (at != waits.begin() && std::prev(at)->call > wait.call) --at;
  waits.insert(at, wait);
}

void Streams::append(std::uint32_t index, PlannedEnd end, std::int64_t recorded_end) {
  DeviceOp& op = ops_[index];
  State& state = states_[op.stream];
  op.previous = state.last;
  op.node = end.node;
  op.start = end.end;
  state.last = index;
  state.end = end;
  state.call = op.call;
  state.recorded_end = std::max(state.recorded_end, recorded_end);
}

/// From a call to its kernel, where nothing holds that up: the lower quartile of those whose stream
/// is idle, since some of these wait for other streams.
void GraphMaker::measure_launches() {
  constexpr std::size_t kMostSamples = 1U << 20U;
  std::vector<std::int64_t> latencies;
  const auto each = [&](const auto& visit) {
    std::vector<std::int64_t> ends(trace_.streams.size(), INT64_MIN);
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      DeviceOp& op = trace_.ops[i];
      visit(op, ends[op.stream]);
      ends[op.stream] = std::max(ends[op.stream], op.start + op.duration);
    }
  };
  each([&](DeviceOp& op, std::int64_t stream_end) {
    if (op.launched && stream_end <= op.launch && latencies.size() < kMostSamples)
      latencies.push_back(std::max<std::int64_t>(0, op.start - op.launch));
  });
  if (latencies.empty()) return;
  const auto quartile = latencies.begin() + static_cast<std::ptrdiff_t>(latencies.size() / 4);
  std::nth_element(latencies.begin(), quartile, latencies.end());
  latency_ = *quartile;
  each([&](DeviceOp& op, std::int64_t stream_end) {
    op.idle = op.launched && stream_end <= op.launch + latency_;
  });
}

/// When a call lets its kernel, or its thread, go on. A launch includes the latency up to the
/// kernel, so that a kernel that waits for nothing else begins as its launch ends.
void GraphMaker::place_call(HostCall& call) const {
  if (call.kind != CallKind::kLaunch) {
    if (!is_sync(call.kind)) call.end = call.start;
    return;
  }
  call.end = call.start + latency_;
  for (std::uint32_t o = call.op; o != kNone; o = trace_.ops[o].previous) {
    const DeviceOp& op = trace_.ops[o];
    const bool is_late = op.idle && op.start <= call.start + kLateLaunch * latency_;
    if (is_late && o == call.op) call.end = op.start;
    call.end = std::min(call.end, op.start);
  }
}

/// Calls of a thread go on in their order.
void GraphMaker::place_calls() {
  std::vector<std::int64_t> next(trace_.threads.size(), INT64_MAX);
  for (std::size_t i = trace_.calls.size(); i > 0; --i) {
    HostCall& call = trace_.calls[i - 1];
    place_call(call);
    call.end = next[call.thread] = std::min(call.end, next[call.thread]);
  }
}

void GraphMaker::follow_other_thread(std::uint16_t number, std::int64_t until) {
  Thread& thread = threads_[number];
  if (until - thread.recorded <= kIdle) return;
  const std::uint16_t other = recent_[0] != number ? recent_[0] : recent_[1];
  if (other == kNoStream || threads_[other].recorded <= thread.recorded) return;
  thread.waits.push_back({threads_[other].last, threads_[other].now});
}

/// A thread works until a time, after all that it waits for.
void GraphMaker::host_node(std::uint16_t number, std::int64_t until) {
  follow_other_thread(number, until);
  Thread& thread = threads_[number];
  const std::int64_t start = latest(thread.waits, thread.now);
  const std::int64_t duration = std::max<std::int64_t>(0, until - start);
  const NodeId node =
      graph_.add(graph_.size(), "host", NodeKind::kHost, thread.stream, recorded(duration));
  if (thread.last != kNone) graph_.follows(node, thread.last);
  for (const PlannedEnd& wait : thread.waits) graph_.follows(node, wait.node);
  thread.waits.clear();
  thread.now = start + duration;
  thread.recorded = until;
  thread.last = node;
  if (recent_[0] != number) recent_[1] = std::exchange(recent_[0], number);
}

void GraphMaker::take_launch(std::uint32_t index, const HostCall& call) {
  host_node(call.thread, call.end);
  Thread& thread = threads_[call.thread];
  for (std::uint32_t o = call.op; o != kNone;) {
    DeviceOp& op = trace_.ops[o];
    o = std::exchange(op.previous, kNone);
    ++launched_;
    op.node = thread.last;
    op.launch = thread.now;
    op.call = index;
    if (thread.call != kNone) streams_.add_wait(op.stream, {thread.call, kNoStream, thread.call});
  }
  thread.call = kNone;
}

const SyncRecord* GraphMaker::sync_of(const HostCall& call) const {
  const std::size_t at = trace_.syncs.count_first(
      [&](const SyncRecord& sync) { return sync.correlation < call.correlation; });
  const bool found = call.correlation != kUnknown && at < trace_.syncs.size() &&
                     trace_.syncs[at].correlation == call.correlation;
  return found ? &trace_.syncs[at] : nullptr;
}

std::uint32_t GraphMaker::record_before(const SyncRecord& sync, std::uint32_t index) const {
  if (sync.waited_record == kUnknown) return index;
  const auto known = std::lower_bound(records_.begin(), records_.end(),
                                      std::pair(sync.waited_record, std::uint32_t{0}));
  return known != records_.end() && known->first == sync.waited_record ? known->second : index;
}

std::vector<PlannedEnd> GraphMaker::waited_for(std::uint32_t index, const HostCall& call) {
  const std::int64_t latest_end = call.end + kSlack;
  if (call.kind == CallKind::kCopySync) {
    if (!trace_.ops.holds(call.op) || trace_.ops[call.op].node == kNone) return {};
    return {{trace_.ops[call.op].node, trace_.ops[call.op].start}};
  }
  if (call.kind == CallKind::kDeviceSync) return streams_.last_of_all(index, latest_end);
  if (call.kind == CallKind::kQueueSync && launched_ - begun_ < kQueue) return {};
  const SyncRecord* const sync = call.kind == CallKind::kQueueSync ? nullptr : sync_of(call);
  if (sync != nullptr) {
    const std::uint16_t stream =
        call.kind == CallKind::kStreamSync ? sync->stream : sync->waited_stream;
    if (stream != kNoStream) {
      const auto end = streams_.last(stream, record_before(*sync, index), latest_end);
      return end ? std::vector<PlannedEnd>{*end} : std::vector<PlannedEnd>{};
    }
  }
  // Which stream is not recorded: what ended last while the host waited.
  const std::vector<PlannedEnd> ends = streams_.last_of_all(index, latest_end);
  const auto last = std::max_element(ends.begin(), ends.end());
  if (last == ends.end() || last->end < call.start) return {};
  ++(call.kind == CallKind::kQueueSync ? counts_.full_queues : counts_.guessed_syncs);
  return {*last};
}

void GraphMaker::take_sync(std::uint32_t index, const HostCall& call) {
  const std::vector<PlannedEnd> ends = waited_for(index, call);
  if (ends.empty()) return;
  Thread& thread = threads_[call.thread];
  if (call.start > latest(thread.waits, thread.now)) host_node(call.thread, call.start);
  thread.waits.insert(thread.waits.end(), ends.begin(), ends.end());
  thread.recorded = std::max(thread.recorded, call.end);
}

void GraphMaker::take_wait(std::uint32_t index, const HostCall& call) {
  const SyncRecord* const sync = sync_of(call);
  if (sync == nullptr) {
    // Profilers that record waits at all leave out those for streams on which nothing has run.
    if (trace_.syncs.empty()) threads_[call.thread].call = index;
    return;
  }
  if (sync->stream == kNoStream || sync->waited_stream == kNoStream) return;
  streams_.add_wait(sync->stream, {index, sync->waited_stream, record_before(*sync, index)});
}

void GraphMaker::take_call(std::uint32_t index) {
  const HostCall& call = trace_.calls[index];
  latest_call_ = std::max(latest_call_, index);
  if (call.kind == CallKind::kLaunch) return take_launch(index, call);
  if (call.kind == CallKind::kWait) return take_wait(index, call);
  if (call.kind != CallKind::kRecord) take_sync(index, call);
}

void GraphMaker::end_threads() {
  for (std::size_t number = 0; number < threads_.size(); ++number) {
    const Thread& thread = threads_[number];
    const std::int64_t end = trace_.threads[number].end;
    if (thread.last != kNone && end > latest(thread.waits, thread.now))
      host_node(static_cast<std::uint16_t>(number), end);
  }
}

}  // namespace orrery::kineto
