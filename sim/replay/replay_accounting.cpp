// SPDX-License-Identifier: Apache-2.0
// Where the time of the replayed roles goes: breakdown, timeline, result.
#include <algorithm>
#include <utility>

#include "sim/replay/replayer.h"
#include "sim/trace/timeline.h"

namespace orrery {
namespace {

/// The part of a breakdown that a kernel's time belongs to.
Picoseconds& kernel_part(TimeBreakdown& breakdown, Category category) {
  switch (category) {
    case Category::kCompute:
      return breakdown.compute;
    case Category::kOptimizer:
      return breakdown.optimizer;
    case Category::kCommunication:
      return breakdown.exposed_communication;
  }
  return breakdown.compute;
}

const char* to_string(Category category) {
  switch (category) {
    case Category::kCompute:
      return "compute";
    case Category::kOptimizer:
      return "optimizer";
    case Category::kCommunication:
      return "communication";
  }
  return "?";
}

}  // namespace

/// An operator of the compute stream has ended.
void Replayer::account_operator(const Cursor& cursor, Picoseconds now) {
  TimeBreakdown& breakdown = accounts_[cursor.role].breakdown;
  const FrozenOperator& op = *cursor.head;
  if (op.kind == OperatorKind::kCompute) {
    const KernelCost& cost = costs_.kernels[op.work];
    const Picoseconds launch = std::min(cost.launch, cost.duration);
    const Picoseconds longer = sharing_ ? sharing_->longer(index_of(cursor)) : 0;
    breakdown.contention += longer;
    // And waits for the host.
    breakdown.host += now - cursor.begun - longer - (cost.duration - launch);
    kernel_part(breakdown, op.category) += cost.duration - launch;
    block_time(cursor) += now - cursor.begun;
  } else {
    const Picoseconds started = meetings_[op.work].started;
    breakdown.bubble += started - cursor.begun;
    breakdown.exposed_communication += now - started;
    block_time(cursor) += now - started;
  }
}

/// Books the gap of the compute stream of a role, if it is in one, up to now. Called before the
/// state of any of its streams changes, so that each stretch of a gap counts as its own cause: a
/// peer that has not come (bubble), bytes in flight, or a kernel of another stream.
void Replayer::settle_gap(std::uint32_t role, Picoseconds now) {
  const Cursor& compute = cursors_[std::size_t{role} * streams_];
  if (compute.state != State::kBlocked) return;
  Account& account = accounts_[role];
  const Picoseconds waited = now - account.gap_settled;
  if (waited == 0) return;
  account.gap_settled = now;
  const Cursor& cause = cause_of(compute);
  if (cause.state == State::kPosted) {
    account.breakdown.bubble += waited;
    return;
  }
  const bool kernel = cause.state == State::kComputing;
  kernel_part(account.breakdown, kernel ? cause.head->category : Category::kCommunication) +=
      waited;
  if (compute.position != kEnd) block_time(compute) += waited;
}

/// Along streams that wait for each other, the one that waits for none.
const Replayer::Cursor& Replayer::cause_of(const Cursor& blocked) const {
  const Cursor* cause = &blocked;
  while (cause->state == State::kBlocked) cause = &sibling(*cause, cause->awaits);
  return *cause;
}

/// The time of the block that the compute stream of a role is in.
Picoseconds& Replayer::block_time(const Cursor& compute) {
  const BlockId block = program_.roles[compute.role].calls[compute.position >> 32];
  std::vector<Picoseconds>& times = accounts_[compute.role].block_time;
  if (times.empty()) times.resize(program_.blocks.size());
  return times[block];
}

void Replayer::record_span(const Cursor& cursor, Picoseconds now) const {
  const FrozenOperator& op = *cursor.head;
  const BlockId block = program_.roles[cursor.role].calls[cursor.position >> 32];
  const bool compute = op.kind == OperatorKind::kCompute;
  timeline_->span(cursor.role, cursor.stream, program_.blocks[block][op.id].name,
                  to_string(compute ? op.category : Category::kCommunication), cursor.begun, now);
}

void Replayer::record_load(std::uint32_t role, Picoseconds now) const {
  const DeviceLoad& load = sharing_->load_of(role);
  timeline_->counter(role, "SMs taken by transfers", now, static_cast<double>(load.units));
  timeline_->counter(role, "GB/s of memory taken by transfers", now,
                     static_cast<double>(load.memory) / 1e9);
}

/// A kernel begins when the host has enqueued it, not when its stream waits for that.
void Replayer::observe(const Cursor& cursor, Picoseconds now) const {
  const FrozenOperator& op = *cursor.head;
  if (op.kind == OperatorKind::kCompute) {
    const Picoseconds longer = sharing_ ? sharing_->longer(index_of(cursor)) : 0;
    observer_->kernel_ran(cursor.role, op.work, now - longer - costs_.kernels[op.work].duration,
                          now);
  } else {
    observer_->transfer_ran(cursor.role, op.work, meetings_[op.work].started, now);
  }
}

ReplayResult Replayer::result() const {
  ReplayResult result;
  result.events = events_;
  result.operators = operators_;
  for (std::size_t role = 0; role < accounts_.size(); ++role) {
    result.roles.push_back(
        {accounts_[role].end, accounts_[role].breakdown, accounts_[role].block_time});
    result.roles.back().block_time.resize(program_.blocks.size());
    if (accounts_[role].end > result.end) {
      result.end = accounts_[role].end;
      result.last_role = static_cast<int>(role);
    }
  }
  for (RoleResult& role : result.roles) {
    role.breakdown.idle = result.end - role.end;
  }
  LinkSchedule::Totals totals = link_schedule_.totals(
      [this](std::uint32_t t) { return static_cast<double>(meetings_[t].completed); });
  result.link_busy_s = link_schedule_.busy(totals, network_);
  result.link_bytes = std::move(totals.bytes);
  result.link_payload = std::move(totals.payload);
  return result;
}

}  // namespace orrery
