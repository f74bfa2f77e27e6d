// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/workers/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace orrery {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? number : kUnlimited;  // "max", or no such file
}

/// The value of a line "NAME: 123 kB" or "NAME 123".
std::int64_t line_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  std::int64_t number = 0;
  while (file >> word)
    if (word == name && file >> number) return number;
  return kUnlimited;
}

/// What a memory group leaves. Pages of files go when memory is wanted, so they count as free.
std::int64_t left_in(const std::string& folder, const char* limit, const char* used,
                     const char* files) {
  const std::int64_t most = number_in(folder + limit), now = number_in(folder + used);
  if (most == kUnlimited || now == kUnlimited) return kUnlimited;
  const std::int64_t cached = line_in(folder + "/memory.stat", files);
  return std::max<std::int64_t>(0, most - now + (cached == kUnlimited ? 0 : cached));
}

/// The least that the group of this process and those above it leave, in either version of them.
std::int64_t left_in_groups() {
  std::int64_t least = kUnlimited;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool second = line.starts_with("0::");
    if (!second && line.find(":memory:") == std::string::npos) continue;
    const std::string root = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string path = line.substr(line.rfind(':') + 1);;) {
      least = std::min(
          least, second ? left_in(root + path, "/memory.max", "/memory.current", "inactive_file")
                        : left_in(root + path, "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                  "total_inactive_file"));
      const std::size_t above = path.rfind('/');
      if (above == std::string::npos) break;
      path.resize(above);
    }
  }
  return least;
}

}  // namespace

std::int64_t available_memory() {
  constexpr std::int64_t kUnit = 1024;  // of meminfo
  const std::int64_t machine = line_in("/proc/meminfo", "MemAvailable:");
  return std::min(machine == kUnlimited ? kUnlimited : machine * kUnit, left_in_groups());
}

std::int64_t resident_bytes(pid_t process) {
  static const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const std::string name = process == 0 ? "self" : std::to_string(process);
  std::ifstream file("/proc/" + name + "/statm");
  std::int64_t all = 0, resident = 0;
  return file >> all >> resident ? resident * page : 0;
}

void begin_peak_memory() {
  // "5" resets the peak (proc(5)). One handle a process: a fork of it is another one.
  static pid_t owner = 0;
  static int file = -1;
  if (owner != ::getpid()) {
    if (file >= 0) ::close(file);
    file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    owner = ::getpid();
  }
  if (file >= 0) static_cast<void>(::pwrite(file, "5", 1, 0) == 1);
}

void go_first_without_memory() { std::ofstream("/proc/self/oom_score_adj") << "1000"; }

namespace {

/// Points whose memory is remembered: a large one long ago does not hold up small ones for ever.
constexpr std::size_t kRemembered = 256;
/// What is available changes no faster than points fill memory.
constexpr std::chrono::milliseconds kMemoryEvery{20};
/// So long the first point runs alone, until it has shown what it takes.
constexpr std::chrono::milliseconds kAlone{100};

}  // namespace

void MemoryAdmission::add(std::int64_t bytes) {
  taken_.push_back(std::max<std::int64_t>(0, bytes));
  if (taken_.size() > kRemembered) taken_.pop_front();
  seen_ = 0;
}

bool MemoryAdmission::admits(const std::vector<std::int64_t>& running, std::int64_t limit,
                             std::chrono::nanoseconds alone) {
  if (running.empty()) return true;  // or nothing would ever run
  if (taken_.empty() && limit == 0 && alone < kAlone) return false;
  std::int64_t expected = taken_.empty() ? limit : 0;
  for (const std::int64_t bytes : taken_) expected = std::max(expected, bytes);
  for (const std::int64_t bytes : running) seen_ = std::max(seen_, bytes);
  expected = std::max(expected, seen_);
  if (const auto now = Clock::now(); now - looked_ > kMemoryEvery) {
    left_ = available_();
    looked_ = now;
  }
  std::int64_t left = left_;
  for (const std::int64_t bytes : running) left -= expected - std::max<std::int64_t>(0, bytes);
  return left >= expected;
}

}  // namespace orrery
