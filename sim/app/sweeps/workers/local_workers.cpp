// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/workers/local_workers.h"

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
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "sim/app/sweeps/workers/isolate.h"
#include "sim/app/sweeps/workers/task_guards.h"
#include "sim/app/sweeps/workers/worker_stderr.h"

namespace orrery {
namespace {

/// A range is as long as keeps all workers busy to the end, and at most this.
constexpr std::size_t kMostPoints = 16;
/// Time and memory of workers are looked at so often.
constexpr std::chrono::milliseconds kLookEvery{20};
/// So many workers in a row may die before they begin a point, until that is nobody's accident.
constexpr std::size_t kMostEarlyDeaths = 100;

Failure failure_of(int status, WorkerEnd end) {
  if (end == WorkerEnd::kLate)
    return {ExitCode::kResource, "the simulation took longer than point_timeout"};
  if (end == WorkerEnd::kMemory)
    return {ExitCode::kResource, "the simulation took more memory than point_memory"};
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const ExitCode code = signal == SIGKILL ? ExitCode::kResource : ExitCode::kBug;
    return {code, std::string("the simulation was ended by ") + strsignal(signal)};
  }
  return {ExitCode::kBug,
          "the simulation ended its process with exit code " + std::to_string(WEXITSTATUS(status))};
}

}  // namespace

/// Memory that a worker shares with its parent.
struct LocalWorkers::Unmap {
  void operator()(WorkerPage* page) const { ::munmap(page, sizeof *page); }
};

LocalWorkers::SharedPage LocalWorkers::shared_page() {
  void* page = ::mmap(nullptr, sizeof(WorkerPage), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw_errno("cannot share memory with a worker");
  return SharedPage(new (page) WorkerPage);
}

struct LocalWorkers::Worker {
  pid_t process = 0;  ///< 0: none
  int file = -1;
  SharedPage page = shared_page();
  WorkerStderr said;
  std::vector<std::size_t> given;  ///< points without outcome yet, in order
  std::string received;            ///< the beginning of an outcome
  std::size_t points = 0;          ///< outcomes of this process
  bool alone = false;              ///< whether it is for one point
  std::int64_t taken = 0;          ///< bytes that it has grown by, at the last look

  bool is_busy() const { return !given.empty(); }
};

LocalWorkers::LocalWorkers(std::size_t jobs, PointWork work, Limits limits,
                           MemoryAdmission::Available available)
    : jobs_(std::max<std::size_t>(1, jobs)),
      work_(std::move(work)),
      limits_(std::move(limits)),
      admission_(std::move(available)) {}

LocalWorkers::~LocalWorkers() { cancel(); }

std::size_t LocalWorkers::waiting() const {
  std::size_t points = alone_.size();
  for (const PointRange& range : ranges_) points += range.last - range.first;
  return points;
}

void LocalWorkers::submit(PointRange range) {
  if (range.first < range.last) ranges_.push_back(range);
}

void LocalWorkers::start_workers() {
  while (workers_.size() < std::min(jobs_, waiting()))
    workers_.push_back(std::make_unique<Worker>());
  held_back_ = false;
  for (const auto& worker : workers_) {
    if (worker->is_busy()) continue;
    if (waiting() == 0) return;
    held_back_ = !admits();
    if (held_back_) return;
    if (worker->alone || !alone_.empty()) end(*worker);
    if (worker->process == 0) start(*worker);
    feed(*worker);
  }
}

/// Whether there is memory for another point.
bool LocalWorkers::admits() {
  look_after_workers();
  std::vector<std::int64_t> running;
  std::chrono::nanoseconds longest{0};
  for (const auto& worker : workers_) {
    if (!worker->is_busy()) continue;
    running.push_back(worker->taken);
    longest = std::max(longest, worker->page->since_begin());
  }
  const std::size_t next = alone_.empty() ? ranges_.front().first : alone_.front();
  return admission_.admits(running, limits_ ? limits_(next).memory : 0, longest);
}

void LocalWorkers::start(Worker& worker) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw_errno("cannot open a socket to a worker");
  std::fflush(nullptr);  // or the child prints what is still buffered a second time
  new (worker.page.get()) WorkerPage;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw_errno("cannot start a process");
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody is left to tell
    // Ctrl-C and a closed terminal reach all of a group; the parent says what becomes of them.
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGHUP, SIG_IGN);
    ::signal(SIGTERM, SIG_DFL);
    if (::getppid() != parent) ::_exit(0);
    ::close(ends[0]);
    for (const auto& other : workers_)
      if (other->file >= 0) ::close(other->file);
    worker.said.redirect();
    run_worker(ends[1], *worker.page, work_, limits_);
    std::fflush(nullptr);
    ::_exit(0);  // without the parent's exit handlers
  }
  ::close(ends[1]);
  worker.process = child;
  worker.file = ends[0];
  worker.received.clear();
  worker.points = 0;
}

/// Ends a worker that has nothing to do.
void LocalWorkers::end(Worker& worker) {
  if (worker.process == 0) return;
  ::kill(worker.process, SIGKILL);
  ::close(worker.file);
  while (::waitpid(worker.process, nullptr, 0) < 0 && errno == EINTR) {
  }
  worker.process = 0;
  worker.file = -1;
}

PointRange LocalWorkers::next_range() {
  if (!alone_.empty()) {
    const std::size_t point = alone_.front();
    alone_.pop_front();
    return {point, point + 1};
  }
  const std::size_t fair = waiting() / (2 * workers_.size());
  const std::size_t count = std::clamp<std::size_t>(fair, 1, kMostPoints);
  PointRange& next = ranges_.front();
  const PointRange part{next.first, std::min(next.last, next.first + count)};
  next.first = part.last;
  if (next.first == next.last) ranges_.pop_front();
  return part;
}

void LocalWorkers::feed(Worker& worker) {
  worker.alone = !alone_.empty();
  const PointRange part = next_range();
  for (std::size_t point = part.first; point < part.last; ++point) worker.given.push_back(point);
  worker.page->begin(WorkerPage::kNone);
  worker.taken = 0;
  send_all(worker.file, reinterpret_cast<const char*>(&part), sizeof part);  // else it is buried
}

std::vector<PointOutcome> LocalWorkers::poll() {
  std::vector<PointOutcome> outcomes;
  while (outcomes.empty() && !LeavesOnSignals::leaves()) {
    start_workers();
    if (limits_) look_after_workers();
    const bool any =
        std::ranges::any_of(workers_, [](const auto& worker) { return worker->is_busy(); });
    if (!any) return outcomes;
    wait_for_some(outcomes);
  }
  start_workers();  // they work while the outcomes are looked at
  return outcomes;
}

void LocalWorkers::wait_for_some(std::vector<PointOutcome>& outcomes) {
  std::vector<pollfd> files;
  std::vector<Worker*> of;
  for (const auto& worker : workers_) {
    if (!worker->is_busy()) continue;
    files.push_back({worker->file, POLLIN, 0});
    of.push_back(worker.get());
  }
  const bool looks = limits_ || held_back_;
  if (::poll(files.data(), files.size(), looks ? static_cast<int>(kLookEvery.count()) : -1) < 0) {
    if (errno == EINTR) return;
    throw_errno("cannot wait for workers");
  }
  for (std::size_t i = 0; i < files.size(); ++i)
    if (files[i].revents != 0) receive(*of[i], outcomes);
}

void LocalWorkers::receive(Worker& worker, std::vector<PointOutcome>& outcomes) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::recv(worker.file, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return bury(worker, outcomes);
  worker.received.append(buffer.data(), static_cast<std::size_t>(count));
  for (PointOutcome& outcome : take_outcomes(worker.received)) {
    worker.given.erase(worker.given.begin());
    ++worker.points;
    early_deaths_ = 0;
    admission_.add(worker.page->grown_to(outcome.use.peak_bytes));
    outcomes.push_back(std::move(outcome));
  }
  // It was ended, and just in time nevertheless.
  if (worker.page->end.load() != WorkerEnd::kByItself && !worker.is_busy()) bury(worker, outcomes);
}

/// Takes note of what workers have grown by, and ends those whose point takes more than it may.
void LocalWorkers::look_after_workers() {
  if (Clock::now() - looked_ < kLookEvery) return;
  looked_ = Clock::now();
  for (const auto& worker : workers_)
    if (worker->is_busy()) look_after(*worker);
  admission_.look_again();
}

void LocalWorkers::look_after(Worker& worker) {
  const std::int64_t bytes = resident_bytes(worker.process);
  worker.taken = worker.page->grown_to(bytes);
  const std::uint64_t point = worker.page->point.load();
  if (!limits_ || point == WorkerPage::kNone) return;
  const PointLimits limits = limits_(static_cast<std::size_t>(point));
  const bool late = limits.time.count() > 0 && worker.page->since_begin() > limits.time;
  const bool large = limits.memory > 0 && bytes > limits.memory;
  if ((!late && !large) || worker.page->end.load() != WorkerEnd::kByItself) return;
  worker.page->end.store(late ? WorkerEnd::kLate : WorkerEnd::kMemory);
  ::kill(worker.process, SIGKILL);
}

/// The point that a dead worker was on has failed, or is tried again alone; what it was given
/// besides is done by another.
void LocalWorkers::bury(Worker& worker, std::vector<PointOutcome>& outcomes) {
  int status = 0;
  rusage usage{};
  while (::wait4(worker.process, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  ::close(worker.file);
  PointUse use = use_of(usage);
  use.wall_s = 1e-9 * static_cast<double>(worker.page->since_begin().count());
  use.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  use.stderr_tail = worker.said.take();
  const std::uint64_t current = worker.page->point.load();
  const WorkerEnd end = worker.page->end.load();
  if (current == WorkerPage::kNone && ++early_deaths_ > kMostEarlyDeaths)
    throw ResourceError("workers die before they begin a point: " +
                        failure_of(status, end).message);
  const bool others = worker.points > 0 || (worker.is_busy() && worker.given.front() != current);
  for (const std::size_t point : worker.given) {
    if (point != current) {
      ranges_.push_front({point, point + 1});
    } else if (others && end != WorkerEnd::kLate) {
      alone_.push_back(point);
    } else {
      outcomes.push_back({point, failure_of(status, end), use, true});
    }
  }
  if (current != WorkerPage::kNone) admission_.add(worker.page->grown_to(use.peak_bytes));
  worker.given.clear();
  worker.process = 0;
  worker.file = -1;
}

void LocalWorkers::cancel() {
  for (const auto& worker : workers_) end(*worker);
  workers_.clear();
  ranges_.clear();
  alone_.clear();
}

std::size_t available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max<std::size_t>(1, static_cast<std::size_t>(CPU_COUNT(&set)));
}

std::variant<std::string, Failure> run_isolated(const std::function<std::string()>& work) {
  LocalWorkers workers(1, [&work](std::size_t) { return work(); });
  workers.submit({0, 1});
  return std::move(workers.poll().at(0).result);
}

}  // namespace orrery
