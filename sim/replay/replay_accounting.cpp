// SPDX-License-Identifier: Apache-2.0
// Where the time of the replayed roles goes: breakdown, timeline, result.
#include <algorithm>
#include <utility>

#include "sim/replay/program_replayer.h"
#include "sim/trace/timeline.h"

namespace orrery {
namespace {

/// The part of a breakdown that a kernel's time belongs to.
Picoseconds& kernel_part(TimeBreakdown& breakdown, Category category) {
  if (category == Category::kOptimizer) return breakdown.optimizer;
  return category == Category::kCommunication ? breakdown.exposed_communication : breakdown.compute;
}

const char* to_string(Category category) {
  if (category == Category::kOptimizer) return "optimizer";
  return category == Category::kCommunication ? "communication" : "compute";
}

}  // namespace

/// An operator of the compute stream has ended.
void ProgramReplayer::account_operator(const Cursor& cursor, Picoseconds now) {
  TimeBreakdown& breakdown = accounts_[cursor.actor].breakdown;
  const FrozenOperator& op = *cursor.head;
  if (op.kind == OperatorKind::kCompute) {
    const Picoseconds duration = duration_of(cursor);
    const Picoseconds launch = std::min(costs_.kernels[op.work].launch, duration);
    const Picoseconds longer = sharing_ ? sharing_->longer(index_of(cursor)) : 0;
    breakdown.contention += longer;
    // And waits for the host.
    breakdown.host += now - cursor.begun - longer - (duration - launch);
    kernel_part(breakdown, op.category) += duration - launch;
    accounts_[cursor.actor].in_call += now - cursor.begun;
  } else {
    const Picoseconds started = meetings_[meeting_of(cursor)].started;
    breakdown.bubble += started - cursor.begun;
    breakdown.exposed_communication += now - started;
    accounts_[cursor.actor].in_call += now - started;
  }
}

/// Books the gap of the compute stream of an actor, if it is in one, up to now. Called before the
/// state of any of its streams changes, so that each stretch of a gap counts as its own cause: a
/// peer that has not come (bubble), bytes in flight, or a kernel of another stream.
void ProgramReplayer::settle_gap(std::uint32_t actor, Picoseconds now) {
  const Cursor& compute = cursors_[std::size_t{actor} * streams_];
  if (compute.state != State::kBlocked) return;
  Account& account = accounts_[actor];
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
  if (compute.position != kEnd) account.in_call += waited;
}

/// Along streams that wait for each other, the one that waits for none.
const ProgramReplayer::Cursor& ProgramReplayer::cause_of(const Cursor& blocked) const {
  const Cursor* cause = &blocked;
  while (cause->state == State::kBlocked) cause = &sibling(*cause, cause->awaits);
  return *cause;
}

/// The compute stream of an actor leaves the call of a block.
void ProgramReplayer::end_call(const Cursor& compute) {
  Picoseconds& spent = accounts_[compute.actor].in_call;
  if (spent == 0) return;
  const BlockId block = block_of(compute);
  std::vector<Picoseconds>& times = block_times_[compute.actor];
  if (times.size() <= block) times.resize(block + std::size_t{1});
  times[block] += std::exchange(spent, 0);
}

void ProgramReplayer::record_span(const Cursor& cursor, Picoseconds now) {
  if (cursor.stream == 0) record_call(cursor, now);
  const FrozenOperator& op = *cursor.head;
  if (op.kind != OperatorKind::kCompute) return record_transfer(cursor, now);
  timeline_->span(cursor.actor, cursor.stream, program_.blocks[block_of(cursor)][op.id].name,
                  to_string(op.category), cursor.begun, now);
}

/// The call of a block around the operators of the compute stream, once the last of them has ended.
void ProgramReplayer::record_call(const Cursor& cursor, Picoseconds now) {
  if (static_cast<std::uint32_t>(cursor.position) == 0) call_begun_[cursor.actor] = cursor.begun;
  if (cursor.head + 1 != cursor.block_end) return;
  const BlockId block = block_of(cursor);
  if (block >= program_.block_names.size()) return;
  timeline_->span(cursor.actor, cursor.stream, program_.block_names[block], "block",
                  call_begun_[cursor.actor], now);
}

/// A transfer from when it was posted, and in it from when all had. An arrow leads from a send to
/// the bytes that its receive gets.
void ProgramReplayer::record_transfer(const Cursor& cursor, Picoseconds now) const {
  const FrozenOperator& op = *cursor.head;
  const std::string& name = program_.blocks[block_of(cursor)][op.id].name;
  const std::uint32_t meeting = meeting_of(cursor);
  const Meeting& met = meetings_[meeting];
  const std::uint64_t message = std::uint64_t{meeting + 1} << 32U | (met.completed & 0xFFFFFFFFU);
  const bool sends = op.kind == OperatorKind::kSend, receives = op.kind == OperatorKind::kReceive;
  timeline_->span(cursor.actor, cursor.stream, name, to_string(Category::kCommunication),
                  cursor.begun, now);
  if (sends) timeline_->flow(message);
  if (!receives && met.started == cursor.begun) return;
  timeline_->span(cursor.actor, cursor.stream, "in flight", to_string(Category::kCommunication),
                  met.started, now);
  if (receives) timeline_->flow(message);
}

/// A kernel begins when the host has enqueued it, not when its stream waits for that.
void ProgramReplayer::observe(const Cursor& cursor, Picoseconds now) const {
  const FrozenOperator& op = *cursor.head;
  if (op.kind == OperatorKind::kCompute) {
    const Picoseconds longer = sharing_ ? sharing_->longer(index_of(cursor)) : 0;
    observer_->kernel_ran(cursor.actor, op.work, now - longer - duration_of(cursor), now);
  } else {
    observer_->transfer_ran(cursor.actor, op.work, meetings_[meeting_of(cursor)].started, now);
  }
}

void ProgramReplayer::record_path(const Cursor& cursor, Picoseconds now) {
  PathStep step;
  step.kind = cursor.head->kind;
  step.work = cursor.head->work;
  step.role = actors_[cursor.actor].role;
  step.block = block_of(cursor);
  if (step.kind == OperatorKind::kCompute) {
    const Picoseconds duration = duration_of(cursor);
    step.running = duration - std::min(costs_.kernels[step.work].launch, duration);
    if (sharing_) step.longer = sharing_->longer(index_of(cursor));
  }
  path_->ends(index_of(cursor), step, now);
}

ReplayResult ProgramReplayer::result() const {
  ReplayResult result;
  result.events = events_;
  result.operators = operators_;
  result.roles.resize(program_.roles.size());
  if (images_ != nullptr) result.rank_busy.resize(static_cast<std::size_t>(program_.ranks));
  for (std::size_t actor = 0; actor < accounts_.size(); ++actor) {
    const Account& account = accounts_[actor];
    const auto [role, rank] = actors_[actor];
    RoleResult& of_role = result.roles[role];
    if (of_role.block_time.empty() || account.end > of_role.end)
      of_role = {account.end, account.breakdown, block_times_[actor]};
    of_role.block_time.resize(program_.blocks.size());
    if (images_ != nullptr)
      result.rank_busy[static_cast<std::size_t>(rank)] =
          RoleResult{account.end, account.breakdown, {}}.busy();
    if (account.end > result.end) {
      result.end = account.end;
      result.last_role = static_cast<int>(role);
      result.last_rank = rank;
    }
  }
  for (RoleResult& role : result.roles) role.breakdown.idle = result.end - role.end;
  add_links(result);
  return result;
}

}  // namespace orrery
