// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/executors/given_tasks.h"

#include <algorithm>
#include <set>
#include <thread>

namespace orrery {
namespace {

/// A task that is through is left so long to the executor to notice.
constexpr std::chrono::seconds kLingers{10};

std::chrono::nanoseconds nanoseconds(Seconds time) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(time.base() * 1e9));
}

}  // namespace

void GivenTasks::adopt(const TaskFolder& folder, std::size_t number) {
  const GivenTask task = {&folder, number};
  if (!folder.is_merged(number)) {
    given_.push_back(task);
  } else if (is_ours(task)) {
    lingering_.push_back(task);
  }
}

std::size_t GivenTasks::running() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(given_, [](const auto& task) { return !task.sign.empty(); }));
}

std::uint64_t GivenTasks::undone() const {
  std::uint64_t undone = 0;
  for (const GivenTask& task : given_) {
    const std::uint64_t size = size_of(task.places());
    undone += size - std::min(size, task.folder->points_done(task.number));
  }
  return undone;
}

template <class IsOver>
std::vector<GivenTask> GivenTasks::take(const IsOver& is_over) {
  std::vector<GivenTask> over;
  std::erase_if(given_, [&](GivenTask& task) {
    if (!is_over(task)) return false;
    over.push_back(task);
    return true;
  });
  return over;
}

std::vector<GivenTask> GivenTasks::take_ended() {
  const auto now = TaskClock::now();
  return take([&](GivenTask& task) {
    const std::string sign = task.folder->sign_of_life(task.number);
    if (sign != task.sign) task.heard = now;
    task.sign = sign;
    if (!task.folder->ended(task.number)) return false;
    if (is_ours(task)) lingering_.push_back(task);
    return true;
  });
}

std::vector<GivenTask> GivenTasks::take_lost_now_and_then() {
  if (TaskClock::now() - asked_ < nanoseconds(execution_->ask_every)) return {};
  return take_lost();
}

std::vector<GivenTask> GivenTasks::take_lost() {
  const std::optional<TaskStates> states = executor_.ask(folders_in_use());
  asked_ = TaskClock::now();
  std::vector<GivenTask> lost =
      take([&](GivenTask& task) { return is_lost(task, states ? &*states : nullptr); });
  if (!states) return lost;
  std::erase_if(lingering_, [&](const GivenTask& task) {
    if (states->count(task.key()) == 0) return true;
    if (asked_ - task.heard > kLingers) executor_.end(*task.folder, task.number);
    return false;
  });
  return lost;
}

/// @param states null: the executor does not answer
bool GivenTasks::is_lost(GivenTask& task, const TaskStates* states) {
  const bool silent = asked_ - task.heard > nanoseconds(execution_->silent_after);
  if (!is_ours(task)) return silent;
  if (states == nullptr) return false;
  const auto state = states->find(task.key());
  if (state == states->end()) return true;
  if (state->second != task.state) task.heard = asked_;
  task.state = state->second;
  if (task.state == TaskState::kWaits || !silent || task.heard == asked_) return false;
  executor_.end(*task.folder, task.number);
  return true;
}

std::vector<const TaskFolder*> GivenTasks::folders_in_use() const {
  std::set<std::string> names;
  std::vector<const TaskFolder*> folders;
  for (const auto* tasks : {&given_, &lingering_})
    for (const GivenTask& task : *tasks)
      if (is_ours(task) && names.insert(task.folder->name()).second) folders.push_back(task.folder);
  return folders;
}

void GivenTasks::end_all() {
  take_lost();  // by what name the executor knows them
  for (const GivenTask& task : given_) executor_.end(*task.folder, task.number);
}

void GivenTasks::clear_out() {
  const auto until = TaskClock::now() + kLingers;
  for (take_lost(); !lingering_.empty() && TaskClock::now() < until; take_lost())
    std::this_thread::sleep_for(std::chrono::seconds(1));
  for (const GivenTask& task : lingering_) executor_.end(*task.folder, task.number);
}

}  // namespace orrery
