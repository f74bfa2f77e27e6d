// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/executors/task_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>

#include "sim/trace/atomic_file.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTasks = "tasks";

fs::path with_ending(fs::path shard, const char* ending) { return shard.replace_extension(ending); }

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A name that no other folder has, on whichever machine: 64 random bits.
std::string new_name(const std::string& executor) {
  std::random_device random;
  char digits[17] = {};
  std::snprintf(digits, sizeof digits, "%08x%08x", random(), random());
  return executor + "-" + digits;
}

}  // namespace

fs::path beside_shard::alive(const fs::path& shard) { return with_ending(shard, "alive"); }
fs::path beside_shard::ended(const fs::path& shard) { return with_ending(shard, "ended"); }

void write_ended(const fs::path& shard, const Places& cannot_be) {
  AtomicFile file(beside_shard::ended(shard));
  file.stream() << to_text(cannot_be) << "\n";
  file.commit();
}

TaskFolder TaskFolder::make(const fs::path& below, const std::string& executor,
                            std::vector<Places> tasks) {
  const fs::path path = fs::absolute(below) / new_name(executor);
  fs::create_directories(path);
  AtomicFile file(path / kTasks);
  for (const Places& places : tasks) file.stream() << to_text(places) << "\n";
  file.commit();
  return {path, std::move(tasks)};
}

std::vector<TaskFolder> TaskFolder::all(const fs::path& below) {
  std::vector<TaskFolder> folders;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(below, none)) {
    std::ifstream lines(entry.path() / kTasks);
    std::vector<Places> tasks;
    for (std::string line; std::getline(lines, line);)
      if (std::optional<Places> places = parse_places(line)) tasks.push_back(std::move(*places));
    if (!tasks.empty()) folders.push_back({fs::absolute(entry.path()), std::move(tasks)});
  }
  std::ranges::sort(folders, {}, &TaskFolder::path_);
  return folders;
}

std::string TaskFolder::executor() const {
  const std::string all = name();
  return all.substr(0, all.rfind('-'));
}

fs::path TaskFolder::file(std::size_t task, const char* ending) const {
  return path_ / (std::to_string(task) + "." + ending);
}

std::string TaskFolder::sign_of_life(std::size_t task) const {
  struct stat found {};
  const fs::path path = beside_shard::alive(shard(task));
  if (::stat(path.c_str(), &found) != 0) return {};
  return std::to_string(found.st_mtim.tv_sec) + "." + std::to_string(found.st_mtim.tv_nsec);
}

std::uint64_t TaskFolder::points_done(std::size_t task) const {
  std::uint64_t points = 0;
  std::ifstream(beside_shard::alive(shard(task))) >> points;
  return points;
}

std::optional<Places> TaskFolder::ended(std::size_t task) const {
  const fs::path path = beside_shard::ended(shard(task));
  if (!fs::exists(path)) return std::nullopt;
  std::string line = text_of(path);
  line.erase(std::ranges::find(line, '\n'), line.end());
  return parse_places(line).value_or(Places{});
}

bool TaskFolder::is_merged(std::size_t task) const { return fs::exists(file(task, "merged")); }
void TaskFolder::set_merged(std::size_t task) const { std::ofstream(file(task, "merged")); }

std::string TaskFolder::last_words(std::size_t task) const {
  constexpr std::size_t kMost = 400;  // bytes
  std::string text = text_of(log(task));
  while (text.ends_with('\n')) text.pop_back();
  return text.size() > kMost ? "..." + text.substr(text.size() - kMost) : text;
}

}  // namespace orrery
