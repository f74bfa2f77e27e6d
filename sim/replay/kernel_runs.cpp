// SPDX-License-Identifier: Apache-2.0
// Kernels of a compute stream that follow one another have one event together: that of the last of
// them. They are gone through when it is due, or before something else happens to their actor.
#include <algorithm>
#include <bit>

#include "sim/replay/program_replayer.h"

namespace orrery {
namespace {

/// Kernels that follow at most: what has been looked at is lost where something else happens.
constexpr std::uint32_t kMostAhead = 16;

}  // namespace

/// When the host has handed over the kernel at the head of a stream, after those before it.
Picoseconds ProgramReplayer::issued(const Cursor& cursor, Picoseconds enqueued) const {
  const Picoseconds issue = costs_.kernels[cursor.head->work].issue;
  return checked_add(enqueued, std::max(costs_.enqueue, issue));
}

/// The kernel that has just begun on a compute stream, and those that follow it: when the last
/// ends, as long as nothing else happens to the actor.
Picoseconds ProgramReplayer::look_ahead(std::uint32_t index) {
  const Cursor& cursor = cursors_[index];
  Account& account = accounts_[cursor.actor];
  Picoseconds end = sharing_->end(index);
  Picoseconds enqueued = account.enqueued;
  Cursor ahead = cursor;
  for (account.ahead = 0; account.ahead < kMostAhead; ++account.ahead) {
    if (costs_.kernels[ahead.head->work].host_waits) enqueued = std::max(enqueued, end);
    step(ahead);
    if (!follows(ahead, cursor)) break;
    enqueued = issued(ahead, enqueued);
    end = sharing_->end_of(index, ahead.head->work, std::max(end, enqueued), duration_of(ahead));
  }
  return end;
}

/// Whether the operator at the head of `ahead` is a kernel that starts as soon as the one before it
/// has ended, and no stream waits for that end.
bool ProgramReplayer::follows(const Cursor& ahead, const Cursor& cursor) const {
  if (ahead.position == kEnd || ahead.head->kind != OperatorKind::kCompute) return false;
  for (std::uint32_t w = 0; w < ahead.head->waits; ++w) {
    const StreamWait& wait = ahead.waits[ahead.head->first_wait + w];
    if (sibling(cursor, wait.stream).position < position(ahead.position >> 32, wait.count))
      return false;
  }
  for (unsigned left = cursor.waiting; left != 0; left &= left - 1) {
    if (ahead.position >=
        sibling(cursor, static_cast<std::uint32_t>(std::countr_zero(left))).awaited)
      return false;
  }
  return true;
}

/// Ends the kernels of a compute stream that end before `now` and have one that follows.
void ProgramReplayer::run_through(std::uint32_t index, Picoseconds now) {
  if (!looks_ahead_) return;
  for (std::uint32_t& ahead = accounts_[cursors_[index].actor].ahead;
       ahead > 0 && sharing_->end(index) < now; --ahead) {
    follow(index);
  }
}

/// The kernel at the head of a compute stream has ended, and the next begins.
void ProgramReplayer::follow(std::uint32_t index) {
  Cursor& cursor = cursors_[index];
  Picoseconds& enqueued = accounts_[cursor.actor].enqueued;
  const Picoseconds end = sharing_->end(index);
  ++events_;
  ++operators_;
  account_operator(cursor, end);
  if (costs_.kernels[cursor.head->work].host_waits) enqueued = std::max(enqueued, end);
  advance(cursor);
  cursor.begun = end;
  enqueued = issued(cursor, enqueued);
  sharing_->follow(index, cursor.head->work, std::max(end, enqueued), duration_of(cursor));
}

/// Something else is about to happen to an actor: its compute stream comes to where it is by now,
/// and the kernel that it is in has an event of its own.
void ProgramReplayer::catch_up(std::uint32_t actor, Picoseconds now) {
  std::uint32_t& ahead = accounts_[actor].ahead;
  if (ahead == 0) return;
  const std::uint32_t index = actor * streams_;
  run_through(index, now);
  if (ahead == 0) return;
  ahead = 0;
  sharing_->replace_end(index);
}

}  // namespace orrery
