// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

#include "sim/app/sweeps/base/places.h"
#include "sim/app/sweeps/workers/local_workers.h"
#include "sim/app/sweeps/workers/process_memory.h"
#include "sim/app/sweeps/workers/worker_stderr.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

/// What a worker has done it tells at least so often, points permitting.
constexpr std::chrono::milliseconds kTold{20};

/// In front of the text of an outcome and what was said on standard error.
struct FrameHead {
  std::uint64_t point = 0;
  std::uint64_t code = 0;  ///< exit code of a failure, whose message the text is; 0: none
  std::uint64_t size = 0, said = 0;
  double wall_s = 0, user_s = 0, system_s = 0;
  std::int64_t peak_bytes = 0;
};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

PointUse own_use() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return use_of(usage);
}

bool receive_all(int file, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t count = ::recv(file, at, size, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

class WorkerLoop {
 public:
  WorkerLoop(int file, WorkerPage& page, const PointWork& work,
             const std::function<PointLimits(std::size_t)>& limits)
      : file_(file), page_(page), work_(work), limits_(limits) {}

  void run() {
    PointRange range;
    while (receive_all(file_, &range, sizeof range)) {
      for (std::size_t point = range.first; point < range.last; ++point) {
        const PointLimits limits = limits_ ? limits_(point) : PointLimits{};
        one(point, limits.memory);
        if (is_used_up(limits)) {
          tell();
          return;
        }
        if (Clock::now() - told_ > kTold && !tell()) return;
      }
      if (!tell()) return;
    }
  }

 private:
  void one(std::size_t point, std::int64_t most_memory) {
    WorkerStderr::begin_point();
    begin_peak_memory();
    page_.begin(point);
    const PointUse before = own_use();
    FrameHead head;
    head.point = point;
    std::string text, said;
    try {
      text = work_(point);
    } catch (...) {
      const Failure failure = classify(std::current_exception());
      head.code = static_cast<std::uint64_t>(failure.code);
      text = failure.message;
      said = WorkerStderr::said_of_point();
    }
    const PointUse after = own_use();
    peak_bytes_ = after.peak_bytes;
    if (most_memory > 0 && peak_bytes_ > most_memory) end_for_memory();
    head.size = text.size();
    head.said = said.size();
    head.wall_s = 1e-9 * static_cast<double>(page_.since_begin().count());
    head.user_s = after.user_s - before.user_s;
    head.system_s = after.system_s - before.system_s;
    head.peak_bytes = peak_bytes_;
    told_texts_.append(reinterpret_cast<const char*>(&head), sizeof head).append(text).append(said);
    ++points_;
  }

  /// As if the parent had seen the memory in time, which looks only now and then.
  void end_for_memory() {
    tell();
    page_.end.store(WorkerEnd::kMemory);
    ::raise(SIGKILL);
  }

  bool is_used_up(const PointLimits& limits) const {
    if (points_ >= limits.worker_points) return true;
    const std::int64_t most = page_.base_bytes.load() + limits.worker_memory;
    return peak_bytes_ > most && resident_bytes(0) > most;
  }

  bool tell() {
    const bool sent = send_all(file_, told_texts_.data(), told_texts_.size());
    told_texts_.clear();
    told_ = Clock::now();
    return sent;
  }

  int file_;
  WorkerPage& page_;
  const PointWork& work_;
  const std::function<PointLimits(std::size_t)>& limits_;
  std::string told_texts_;  ///< outcomes that the parent does not know yet
  Clock::time_point told_ = Clock::now();
  std::size_t points_ = 0;
  std::int64_t peak_bytes_ = 0;  ///< peak memory of the last point
};

}  // namespace

void WorkerPage::begin(std::size_t of_point) {
  begin_ns.store(now_ns());
  point.store(of_point);
}

std::chrono::nanoseconds WorkerPage::since_begin() const {
  return std::chrono::nanoseconds(now_ns() - begin_ns.load());
}

std::int64_t WorkerPage::grown_to(std::int64_t bytes) const {
  const std::int64_t base = base_bytes.load();
  return base == 0 ? 0 : std::max<std::int64_t>(0, bytes - base);
}

void run_worker(int file, WorkerPage& page, const PointWork& work,
                const std::function<PointLimits(std::size_t)>& limits) {
  go_first_without_memory();
  page.base_bytes.store(resident_bytes(0));
  WorkerLoop(file, page, work, limits).run();
}

std::vector<PointOutcome> take_outcomes(std::string& received) {
  std::vector<PointOutcome> outcomes;
  std::string_view rest = received;
  FrameHead head;
  while (rest.size() >= sizeof head) {
    std::memcpy(&head, rest.data(), sizeof head);
    const auto size = static_cast<std::size_t>(head.size),
               said = static_cast<std::size_t>(head.said);
    if (rest.size() < sizeof head + size + said) break;
    PointOutcome outcome;
    outcome.point = static_cast<std::size_t>(head.point);
    outcome.use = {head.wall_s, head.user_s, head.system_s, head.peak_bytes};
    std::string text(rest.substr(sizeof head, size));
    outcome.use.stderr_tail = rest.substr(sizeof head + size, said);
    if (head.code == 0) {
      outcome.result = std::move(text);
    } else {
      outcome.result = Failure{static_cast<ExitCode>(head.code), std::move(text)};
    }
    outcomes.push_back(std::move(outcome));
    rest.remove_prefix(sizeof head + size + said);
  }
  received.erase(0, received.size() - rest.size());
  return outcomes;
}

PointUse use_of(const rusage& usage) {
  constexpr std::int64_t kUnit = 1024;  // of ru_maxrss (getrusage(2))
  return {0, seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_maxrss * kUnit};
}

bool send_all(int file, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::send(file, data, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace orrery
