// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/sweeps/base/places.h"

namespace orrery {

/// The files beside a shard, by which its task says how it is.
namespace beside_shard {
std::filesystem::path alive(const std::filesystem::path& shard);  ///< renewed while it works
std::filesystem::path ended(const std::filesystem::path& shard);  ///< written when it is through
}  // namespace beside_shard

/// What a task says that is through: places whose points cannot be, which no store has.
/// @throws std::system_error
void write_ended(const std::filesystem::path& shard, const Places& cannot_be);

/// Tasks that were given to an executor together, in a folder of their own below that of the store:
///   tasks       places of each task, a line each
///   N.db        the shard of task N, a store
///   N.alive     points that it has done, renewed while it works
///   N.ended     written when it is through: places whose points cannot be
///   N.log       what it said
///   N.merged    its shard was brought into the store, and is not read again
class TaskFolder {
 public:
  /// A new one, complete on disk before anybody may know of it.
  /// @param executor name that its folder begins with
  /// @throws std::filesystem::filesystem_error, std::system_error
  static TaskFolder make(const std::filesystem::path& below, const std::string& executor,
                         std::vector<Places> tasks);
  /// Those that are there, in the order of their names; what cannot be read is left out.
  static std::vector<TaskFolder> all(const std::filesystem::path& below);

  /// "slurm-1a2b3c4d": known to nobody else, so that it tells these tasks in any list.
  std::string name() const { return path_.filename().string(); }
  std::string executor() const;
  const std::filesystem::path& path() const { return path_; }
  const std::vector<Places>& tasks() const { return tasks_; }

  std::filesystem::path shard(std::size_t task) const { return file(task, "db"); }
  std::filesystem::path log(std::size_t task) const { return file(task, "log"); }
  /// What a task says of itself; changes while it works. Empty: it has not begun.
  std::string sign_of_life(std::size_t task) const;
  /// Points that it says it has done.
  std::uint64_t points_done(std::size_t task) const;
  /// Places that cannot be, of a task that is through. None: it is not.
  std::optional<Places> ended(std::size_t task) const;
  bool is_merged(std::size_t task) const;
  void set_merged(std::size_t task) const;
  /// The last lines of the log of a task.
  std::string last_words(std::size_t task) const;

 private:
  TaskFolder(std::filesystem::path path, std::vector<Places> tasks)
      : path_(std::move(path)), tasks_(std::move(tasks)) {}
  std::filesystem::path file(std::size_t task, const char* ending) const;

  std::filesystem::path path_;
  std::vector<Places> tasks_;
};

}  // namespace orrery
