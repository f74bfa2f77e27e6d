// SPDX-License-Identifier: Apache-2.0
// Why a replay stopped before its end: what each stream waits for, and the cycle if there is one.
#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "sim/replay/program_replayer.h"

namespace orrery {

/// Cursors that cannot go on, and the cursors each of them waits for.
class DeadlockReport {
 public:
  explicit DeadlockReport(const ProgramReplayer& replayer)
      : replayer_(replayer), users_(replayer.meetings_.size()) {
    find_users();
  }

  std::string text() const {
    std::ostringstream out;
    out << "deadlock: " << replayer_.left_ << " streams cannot go on";
    for (CursorIndex c = 0; c < replayer_.cursors_.size(); ++c)
      if (replayer_.cursors_[c].position != ProgramReplayer::kEnd)
        out << "\n  " << where(c) << " " << reason(c);
    const std::vector<CursorIndex> around = cycle();
    for (std::size_t i = 0; i < around.size(); ++i)
      out << (i == 0 ? "\n  cycle: " : "\n    waits for ") << where(around[i]);
    if (!around.empty()) out << "\n    waits for the first";
    return out.str();
  }

 private:
  using CursorIndex = std::uint32_t;

  void find_users() {
    const Program& program = replayer_.program_;
    for (std::uint32_t actor = 0; actor < replayer_.actors_.size(); ++actor) {
      const auto [role, rank] = replayer_.actors_[actor];
      std::vector<BlockId> blocks = program.roles[role].calls;
      std::sort(blocks.begin(), blocks.end());
      blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
      for (const BlockId block : blocks) {
        for (const FrozenOperator& op : replayer_.blocks_[block].operators) {
          if (op.kind == OperatorKind::kCompute) continue;
          const StreamId stream = program.blocks[block][op.id].stream;
          const std::uint32_t meeting =
              replayer_.images_ == nullptr ? op.work : replayer_.images_->of(op.work, rank);
          users_[meeting].push_back(actor * replayer_.streams_ + stream);
        }
      }
    }
    for (std::vector<CursorIndex>& users : users_) {
      std::sort(users.begin(), users.end());
      users.erase(std::unique(users.begin(), users.end()), users.end());
    }
  }

  std::string name_of(std::uint32_t actor) const {
    const auto [role, rank] = replayer_.actors_[actor];
    return fmt::format("role '{}'{}", replayer_.program_.roles[role].name,
                       rank < 0 ? "" : fmt::format(" rank {}", rank));
  }

  /// "role 'pp 0', stream 'compute', call 2 (block 'forward'): operator 'send'"
  std::string where(CursorIndex index) const {
    const Program& program = replayer_.program_;
    const ProgramReplayer::Cursor& cursor = replayer_.cursors_[index];
    std::string text = name_of(cursor.actor) + ", stream '" + program.streams[cursor.stream] + "'";
    if (cursor.position == ProgramReplayer::kEnd) return text + ": at its end";
    const BlockId block = replayer_.block_of(cursor);
    if (block < program.block_names.size())
      text +=
          fmt::format(", call {} (block '{}')", cursor.position >> 32, program.block_names[block]);
    return text + ": operator '" + program.blocks[block][cursor.head->id].name + "'";
  }

  std::string reason(CursorIndex index) const {
    const ProgramReplayer::Cursor& cursor = replayer_.cursors_[index];
    const Program& program = replayer_.program_;
    if (cursor.state == ProgramReplayer::State::kBlocked)
      return fmt::format("waits for stream '{}' of its role", program.streams[cursor.awaits]);
    const std::uint32_t meeting = replayer_.meeting_of(cursor);
    return fmt::format("waits in transfer '{}' ({} participants), posted by {}, not by {}",
                       program.transfers[cursor.head->work].name,
                       replayer_.meetings_[meeting].participants, names_of_roles(posted(meeting)),
                       names_of_roles(missing(meeting)));
  }

  std::string names_of_roles(const std::vector<CursorIndex>& cursors) const {
    std::string text;
    for (const CursorIndex c : cursors) {
      text += (text.empty() ? "" : " and ") + name_of(replayer_.cursors_[c].actor);
    }
    return text.empty() ? "any other role of the program" : text;
  }

  std::vector<CursorIndex> posted(std::uint32_t id) const {
    const ProgramReplayer::Meeting& meeting = replayer_.meetings_[id];
    const auto begin = replayer_.posts_.begin() + meeting.first_post;
    return {begin, begin + meeting.posted};
  }

  /// The streams that use the transfer and have not posted it.
  std::vector<CursorIndex> missing(std::uint32_t meeting) const {
    const std::vector<CursorIndex> here = posted(meeting);
    std::vector<CursorIndex> others = users_[meeting];
    std::erase_if(others, [&](CursorIndex user) {
      return std::find(here.begin(), here.end(), user) != here.end();
    });
    return others;
  }

  std::vector<CursorIndex> waits_for(CursorIndex index) const {
    const ProgramReplayer::Cursor& cursor = replayer_.cursors_[index];
    if (cursor.position == ProgramReplayer::kEnd) {
      return {};
    }
    if (cursor.state != ProgramReplayer::State::kBlocked) {
      return missing(replayer_.meeting_of(cursor));
    }
    return {cursor.actor * replayer_.streams_ + cursor.awaits};
  }

  /// A cycle of waits, found by depth-first search from the lowest cursor; empty if there is none.
  std::vector<CursorIndex> cycle() const {
    enum class Mark : std::uint8_t { kNew, kOnPath, kDone };
    std::vector<Mark> marks(replayer_.cursors_.size(), Mark::kNew);
    for (CursorIndex first = 0; first < marks.size(); ++first) {
      std::vector<CursorIndex> path;
      std::vector<std::vector<CursorIndex>> branches;
      const auto enter = [&](CursorIndex c) {
        marks[c] = Mark::kOnPath;
        path.push_back(c);
        branches.push_back(waits_for(c));
      };
      if (marks[first] == Mark::kNew) {
        enter(first);
      }
      while (!path.empty()) {
        if (branches.back().empty()) {
          marks[path.back()] = Mark::kDone;
          path.pop_back();
          branches.pop_back();
          continue;
        }
        const CursorIndex next = branches.back().back();
        branches.back().pop_back();
        if (marks[next] == Mark::kOnPath) {
          return {std::find(path.begin(), path.end(), next), path.end()};
        }
        if (marks[next] == Mark::kNew) {
          enter(next);
        }
      }
    }
    return {};
  }

  const ProgramReplayer& replayer_;
  std::vector<std::vector<CursorIndex>> users_;  ///< streams that come to a meeting, by it
};

std::string ProgramReplayer::deadlock_report() const { return DeadlockReport(*this).text(); }

}  // namespace orrery
