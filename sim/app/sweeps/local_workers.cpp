// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/local_workers.h"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "sim/app/sweeps/worker_stderr.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

/// A range is as long as keeps all workers busy to the end, and at most this.
constexpr std::size_t kMostPoints = 16;
/// What a worker has done it tells at least so often, points permitting.
constexpr std::chrono::milliseconds kTold{20};

/// In front of the text of an outcome.
struct FrameHead {
  std::uint64_t point = 0;
  std::uint64_t code = 0;  ///< exit code of a failure, whose message the text is; 0: none
  std::uint64_t size = 0;
  double wall_s = 0, user_s = 0, system_s = 0;
  std::int64_t peak_bytes = 0;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

PointUse use_of(const rusage& usage) {
  constexpr std::int64_t kUnit = 1024;  // of ru_maxrss (getrusage(2))
  return {0, seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_maxrss * kUnit};
}

PointUse own_use() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return use_of(usage);
}

[[noreturn]] void fail(const char* what) {
  throw ResourceError(std::string(what) + ": " + std::strerror(errno));
}

/// @return false: the other end is gone
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

/// The point that a worker is on, in memory that both processes have.
struct Current {
  std::atomic<std::uint64_t> point{0};
  std::atomic<std::int64_t> begin_ns{0};  ///< when it began, on the machine's steady clock

  void set(std::size_t to) {
    begin_ns.store(now_ns());
    point.store(to);
  }
};

/// What runs in a worker.
class WorkerLoop {
 public:
  WorkerLoop(int file, Current& current, const std::function<std::string(std::size_t)>& work)
      : file_(file), current_(current), work_(work) {}

  /// Until there is nothing more to do, or nobody who wants it done.
  void run() {
    PointRange range;
    while (receive_all(file_, &range, sizeof range)) {
      for (std::size_t point = range.first; point < range.last; ++point) {
        one(point);
        if (Clock::now() - told_ > kTold && !tell()) return;
      }
      if (!tell()) return;
    }
  }

 private:
  void one(std::size_t point) {
    WorkerStderr::begin_point();
    current_.set(point);
    const PointUse before = own_use();
    FrameHead head;
    head.point = point;
    std::string text;
    try {
      text = work_(point);
    } catch (...) {
      const Failure failure = classify(std::current_exception());
      head.code = static_cast<std::uint64_t>(failure.code);
      text = failure.message;
    }
    head.size = text.size();
    const PointUse after = own_use();
    head.wall_s = 1e-9 * static_cast<double>(now_ns() - current_.begin_ns.load());
    head.user_s = after.user_s - before.user_s;
    head.system_s = after.system_s - before.system_s;
    head.peak_bytes = after.peak_bytes;
    told_texts_.append(reinterpret_cast<const char*>(&head), sizeof head).append(text);
  }

  bool tell() {
    const bool sent = send_all(file_, told_texts_.data(), told_texts_.size());
    told_texts_.clear();
    told_ = Clock::now();
    return sent;
  }

  int file_;
  Current& current_;
  const std::function<std::string(std::size_t)>& work_;
  std::string told_texts_;  ///< outcomes that the parent does not know yet
  Clock::time_point told_ = Clock::now();
};

Failure failure_of(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const ExitCode code = signal == SIGKILL ? ExitCode::kResource : ExitCode::kBug;
    return {code, std::string("the simulation was ended by ") + strsignal(signal)};
  }
  return {ExitCode::kBug,
          "the simulation ended its process with exit code " + std::to_string(WEXITSTATUS(status))};
}

}  // namespace

/// The point that a worker is on, in memory that outlives it.
class LocalWorkers::CurrentPoint {
 public:
  CurrentPoint()
      : page_(::mmap(nullptr, sizeof(Current), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                     -1, 0)) {
    if (page_ == MAP_FAILED) fail("cannot share memory with a worker");
    new (page_) Current;
  }
  ~CurrentPoint() { ::munmap(page_, sizeof(Current)); }
  CurrentPoint(const CurrentPoint&) = delete;
  CurrentPoint& operator=(const CurrentPoint&) = delete;

  Current& place() { return *static_cast<Current*>(page_); }
  std::size_t get() { return static_cast<std::size_t>(place().point.load()); }
  double seconds_since_begin() {
    return 1e-9 * static_cast<double>(now_ns() - place().begin_ns.load());
  }

 private:
  void* page_;
};

struct LocalWorkers::Worker {
  pid_t process = 0;  ///< 0: none
  int file = -1;
  CurrentPoint current;
  WorkerStderr said;
  std::vector<std::size_t> given;  ///< points without outcome yet, in order
  std::string received;            ///< the beginning of an outcome
  bool late = false;               ///< ended because the point took longer than it may
};

LocalWorkers::LocalWorkers(std::size_t jobs, std::function<std::string(std::size_t)> work,
                           TimeLimit limit)
    : jobs_(std::max<std::size_t>(1, jobs)), work_(std::move(work)), limit_(std::move(limit)) {}

LocalWorkers::~LocalWorkers() { cancel(); }

std::size_t LocalWorkers::waiting() const {
  std::size_t points = 0;
  for (const PointRange& range : ranges_) points += range.last - range.first;
  return points;
}

void LocalWorkers::submit(PointRange range) {
  if (range.first < range.last) ranges_.push_back(range);
}

void LocalWorkers::start_workers() {
  while (workers_.size() < std::min(jobs_, waiting()))
    workers_.push_back(std::make_unique<Worker>());
  for (const auto& worker : workers_) {
    if (worker->process == 0 && !ranges_.empty()) start(*worker);
    if (worker->process != 0 && worker->given.empty()) feed(*worker);
  }
}

void LocalWorkers::start(Worker& worker) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    fail("cannot open a socket to a worker");
  std::fflush(nullptr);  // or the child prints what is still buffered a second time
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    fail("cannot start a process");
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody is left to tell
    if (::getppid() != parent) ::_exit(0);
    ::close(ends[0]);
    for (const auto& other : workers_)
      if (other->file >= 0) ::close(other->file);
    worker.said.redirect();
    WorkerLoop(ends[1], worker.current.place(), work_).run();
    std::fflush(nullptr);
    ::_exit(0);  // without the parent's exit handlers
  }
  ::close(ends[1]);
  worker.process = child;
  worker.file = ends[0];
  worker.received.clear();
}

void LocalWorkers::feed(Worker& worker) {
  if (ranges_.empty()) return;
  const std::size_t fair = waiting() / (2 * workers_.size());
  const std::size_t count = std::clamp<std::size_t>(fair, 1, kMostPoints);
  PointRange& next = ranges_.front();
  const PointRange part{next.first, std::min(next.last, next.first + count)};
  next.first = part.last;
  if (next.first == next.last) ranges_.pop_front();
  for (std::size_t point = part.first; point < part.last; ++point) worker.given.push_back(point);
  worker.current.place().set(part.first);
  send_all(worker.file, reinterpret_cast<const char*>(&part), sizeof part);  // else it is buried
}

std::vector<PointOutcome> LocalWorkers::poll() {
  std::vector<PointOutcome> outcomes;
  while (outcomes.empty()) {
    start_workers();
    std::vector<pollfd> files;
    std::vector<Worker*> of;
    int wait_ms = -1;
    for (const auto& worker : workers_) {
      if (worker->given.empty()) continue;
      if (limit_) wait_ms = watch(*worker);
      files.push_back({worker->file, POLLIN, 0});
      of.push_back(worker.get());
    }
    if (files.empty()) return outcomes;
    if (::poll(files.data(), files.size(), wait_ms) < 0) {
      if (errno == EINTR) continue;
      fail("cannot wait for workers");
    }
    for (std::size_t i = 0; i < files.size(); ++i)
      if (files[i].revents != 0) receive(*of[i], outcomes);
  }
  start_workers();  // they work while the outcomes are looked at
  return outcomes;
}

void LocalWorkers::receive(Worker& worker, std::vector<PointOutcome>& outcomes) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::recv(worker.file, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return bury(worker, outcomes);
  worker.received.append(buffer.data(), static_cast<std::size_t>(count));
  std::string_view rest = worker.received;
  FrameHead head;
  while (rest.size() >= sizeof head) {
    std::memcpy(&head, rest.data(), sizeof head);
    if (rest.size() < sizeof head + head.size) break;
    std::string text(rest.substr(sizeof head, static_cast<std::size_t>(head.size)));
    rest.remove_prefix(sizeof head + static_cast<std::size_t>(head.size));
    worker.given.erase(worker.given.begin());
    const PointUse use{head.wall_s, head.user_s, head.system_s, head.peak_bytes};
    if (head.code == 0) {
      outcomes.push_back({static_cast<std::size_t>(head.point), std::move(text), use});
    } else {
      const Failure failure{static_cast<ExitCode>(head.code), std::move(text)};
      outcomes.push_back({static_cast<std::size_t>(head.point), failure, use});
    }
  }
  worker.received.erase(0, worker.received.size() - rest.size());
  if (worker.late && worker.given.empty()) bury(worker, outcomes);  // it was just in time
}

/// Ends a worker whose point takes longer than it may. @return ms until it is to be looked at again
int LocalWorkers::watch(Worker& worker) {
  constexpr int kLookAgain = 20;
  const double limit_s = 1e-9 * static_cast<double>(limit_(worker.current.get()).count());
  if (limit_s > 0 && !worker.late && worker.current.seconds_since_begin() > limit_s) {
    worker.late = true;
    ::kill(worker.process, SIGKILL);
  }
  return kLookAgain;
}

/// The point that a dead worker was on has failed; what it was given besides is done by another.
void LocalWorkers::bury(Worker& worker, std::vector<PointOutcome>& outcomes) {
  int status = 0;
  rusage usage{};
  while (::wait4(worker.process, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  ::close(worker.file);
  PointUse use = use_of(usage);
  use.wall_s = worker.current.seconds_since_begin();
  use.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  use.stderr_tail = worker.said.take();
  const std::size_t current = worker.current.get();
  for (const std::size_t point : worker.given) {
    if (point == current) {
      const Failure late{ExitCode::kResource, "the simulation took longer than point_timeout"};
      outcomes.push_back({point, worker.late ? late : failure_of(status), use, true});
    } else {
      ranges_.push_front({point, point + 1});
    }
  }
  worker.given.clear();
  worker.process = 0;
  worker.file = -1;
  worker.late = false;
}

void LocalWorkers::cancel() {
  for (const auto& worker : workers_) {
    if (worker->process == 0) continue;
    ::kill(worker->process, SIGKILL);
    ::close(worker->file);
    while (::waitpid(worker->process, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  workers_.clear();
  ranges_.clear();
}

std::size_t available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max<std::size_t>(1, static_cast<std::size_t>(CPU_COUNT(&set)));
}

}  // namespace orrery
