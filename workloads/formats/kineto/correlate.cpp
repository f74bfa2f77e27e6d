// SPDX-License-Identifier: Apache-2.0
// Which call launches what, and which operator a launch belongs to.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "workloads/formats/kineto/trace.h"

namespace orrery::kineto {
namespace {

/// A launch that takes longer has waited: it is a matter of 2 to 10 us.
constexpr std::int64_t kLongLaunch = 50'000;  // ns

/// Gives calls what they launch, and that when it is launched. The ops of one call stand behind
/// each other by `previous`, which their streams take over later.
void join(Trace& trace) {
  BlockList<DeviceOp>& ops = trace.ops;
  BlockList<HostCall>& calls = trace.calls;
  // Calls before the flows that stand in for them.
  const auto by_call = sorted_order(calls.size(), [&](std::uint32_t a, std::uint32_t b) {
    const HostCall &first = calls[a], &second = calls[b];
    return std::pair(first.correlation, first.from_flow) <
           std::pair(second.correlation, second.from_flow);
  });
  const auto by_op = sorted_order(
      ops.size(), [&](std::uint32_t a, std::uint32_t b) { return ops[a].launch < ops[b].launch; });
  // From the end, so that the first of several ops heads their list.
  std::size_t c = by_call.size();
  std::int64_t correlation = kUnknown;
  std::uint32_t launcher = kNone;  // the first of the calls with that correlation that launches
  // NOLINTNEXTLINE(modernize-loop-convert): from the end
  for (auto o = by_op.rbegin(); o != by_op.rend(); ++o) {
    DeviceOp& op = ops[*o];
    if (op.launch != correlation) {
      correlation = op.launch;
      launcher = kNone;
      for (; c > 0 && calls[by_call[c - 1]].correlation >= correlation; --c)
        if (calls[by_call[c - 1]].correlation == correlation &&
            calls[by_call[c - 1]].kind == CallKind::kLaunch)
          launcher = by_call[c - 1];
    }
    const bool found = correlation != kUnknown && launcher != kNone &&
                       calls[launcher].start <= op.start + op.duration;
    op.launched = found;
    op.launch = op.start;
    if (!found) continue;
    HostCall& call = calls[launcher];
    op.launch = call.start;
    op.previous = call.op;
    call.op = *o;
  }
}

/// Calls that launch nothing which the trace has do not matter; copies that return once they are
/// done are waits as well, launches that take long may be.
void settle_calls(Trace& trace) {
  BlockList<HostCall> kept;
  for (std::size_t c = 0; c < trace.calls.size(); ++c) {
    trace.calls.release_before(c);
    const HostCall& call = trace.calls[c];
    if (call.kind == CallKind::kLaunch && call.op == kNone) continue;
    kept.push_back(call);
    if (call.kind != CallKind::kLaunch) continue;
    if (call.from_flow) continue;
    const DeviceOp& op = trace.ops[call.op];
    HostCall wait = call;
    if (op.kind == OpKind::kCopy && call.end >= op.start + op.duration) {
      wait.kind = CallKind::kCopySync;
    } else if (call.end - call.start > kLongLaunch && op.start > call.end) {
      wait.kind = CallKind::kQueueSync;
    } else {
      continue;
    }
    kept.push_back(wait);
  }
  std::swap(trace.calls, kept);
  trace.calls.sort([](const HostCall& a, const HostCall& b) { return a.start < b.start; });
}

/// The innermost operator of a thread that a time is in; the operators are sorted by thread and
/// start.
OperatorRecord* operator_at(BlockList<OperatorRecord>& operators, std::uint16_t thread,
                            std::int64_t time) {
  const std::size_t begun = operators.count_first([&](const OperatorRecord& record) {
    return std::pair(record.thread, record.start) <= std::pair(thread, time);
  });
  constexpr std::size_t kMostSiblings = 16;  // that have ended within the one that has not
  for (std::size_t i = begun; i > 0 && begun - i < kMostSiblings; --i) {
    OperatorRecord& record = operators[i - 1];
    if (record.thread != thread) break;
    if (record.end >= time) return &record;
  }
  return nullptr;
}

void describe(Trace& trace, DeviceOp& op, OperatorRecord& record) {
  const NameFacts& facts = trace.facts[op.name];
  const bool is_attention =
      !record.collective && trace.shapes[record.detail].kind == KernelClass::kAttentionPrefill;
  const bool fits = record.collective ? facts.collective
                    : is_attention    ? facts.attention()
                                      : facts.product;
  if (!fits || op.detail != kNone || record.kernels == 0) return;
  if (!record.collective) --record.kernels;
  op.detail = record.detail;
  op.collective = record.collective;
}

void join_operators(Trace& trace) {
  trace.operators.sort([](const OperatorRecord& a, const OperatorRecord& b) {
    return std::pair(a.thread, a.start) < std::pair(b.thread, b.start);
  });
  for (std::size_t c = 0; c < trace.calls.size(); ++c) {
    const HostCall& call = trace.calls[c];
    if (call.kind != CallKind::kLaunch) continue;
    OperatorRecord* const record = operator_at(trace.operators, call.thread, call.start);
    if (record == nullptr) continue;
    for (std::uint32_t o = call.op; o != kNone; o = trace.ops[o].previous)
      describe(trace, trace.ops[o], *record);
  }
  trace.operators.clear();
}

}  // namespace

void correlate(Trace& trace) {
  trace.ops.sort([](const DeviceOp& a, const DeviceOp& b) {
    return std::pair(a.start, a.duration) < std::pair(b.start, b.duration);
  });
  join(trace);
  settle_calls(trace);
  join_operators(trace);
  trace.syncs.sort(
      [](const SyncRecord& a, const SyncRecord& b) { return a.correlation < b.correlation; });
}

}  // namespace orrery::kineto
