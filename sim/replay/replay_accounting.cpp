// SPDX-License-Identifier: Apache-2.0
// Where the time of the replayed roles goes: breakdown, timeline, result.
#include <algorithm>
#include <utility>

#include "sim/replay/replayer.h"
#include "sim/results/timeline.h"

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

/// The compute stream waited for another stream, which has now completed `ended` and so released
/// it. The time during which that stream itself waited for other roles is a bubble; the rest counts
/// as what was waited for.
void Replayer::account_gap(const Cursor& awaited, const FrozenOperator& ended, Picoseconds now) {
  Account& account = accounts_[awaited.role];
  const Picoseconds bubble = peer_wait_until(awaited, now) - account.gap_peer_wait;
  const Category category =
      ended.kind == OperatorKind::kCompute ? ended.category : Category::kCommunication;
  account.breakdown.bubble += bubble;
  kernel_part(account.breakdown, category) += now - account.gap_begin - bubble;
  const Cursor& compute = sibling(awaited, 0);
  if (compute.position != kEnd) block_time(compute) += now - account.gap_begin - bubble;
}

/// How long, up to now, the posted transfers of a stream have waited for other roles.
Picoseconds Replayer::peer_wait_until(const Cursor& cursor, Picoseconds now) const {
  if (cursor.state != State::kPosted) {
    return cursor.peer_wait;
  }
  const Meeting& meeting = meetings_[cursor.head->work];
  return cursor.peer_wait + (meeting.in_flight ? meeting.started : now) - cursor.begun;
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
