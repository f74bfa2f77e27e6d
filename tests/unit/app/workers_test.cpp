// SPDX-License-Identifier: Apache-2.0
// Processes that run many points: what a point may take, and what its end costs others.
#include "sim/app/sweeps/workers/local_workers.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <set>
#include <variant>
#include <vector>

#include "sim/config/diagnostics.h"

namespace orrery::workers_test {
namespace {

std::map<std::size_t, std::variant<std::string, Failure>> outcomes_of(LocalWorkers& workers) {
  std::map<std::size_t, std::variant<std::string, Failure>> all;
  for (auto some = workers.poll(); !some.empty(); some = workers.poll()) {
    for (PointOutcome& outcome : some) {
      EXPECT_EQ(all.count(outcome.point), 0U) << "given twice: " << outcome.point;
      all.emplace(outcome.point, std::move(outcome.result));
    }
  }
  return all;
}

TEST(Workers, DoEveryPointOnceWhateverTheirNumber) {
  for (const std::size_t jobs : {1U, 2U, 7U}) {
    LocalWorkers workers(
        jobs, [](std::size_t i) { return std::string(i * 100, 'x') + std::to_string(i); });
    workers.submit({0, 300});
    workers.submit({300, 500});
    const auto all = outcomes_of(workers);
    ASSERT_EQ(all.size(), 500U);
    for (const auto& [i, result] : all)
      EXPECT_EQ(std::get<std::string>(result), std::string(i * 100, 'x') + std::to_string(i));
  }
}

TEST(Workers, ADeathCostsThePointItHappenedInAndNoOther) {
  for (const std::size_t jobs : {1U, 3U}) {
    LocalWorkers workers(jobs, [](std::size_t i) -> std::string {
      if (i == 7) ::kill(::getpid(), SIGKILL);
      if (i == 20) {
        ::signal(SIGABRT, SIG_DFL);
        ::raise(SIGABRT);
      }
      if (i == 33) ::_exit(9);
      if (i == 40) throw config::ConfigError("wrong");
      return "done";
    });
    workers.submit({0, 100});
    const auto all = outcomes_of(workers);
    ASSERT_EQ(all.size(), 100U);
    const std::map<std::size_t, ExitCode> failed = {{7, ExitCode::kResource},
                                                    {20, ExitCode::kBug},
                                                    {33, ExitCode::kBug},
                                                    {40, ExitCode::kUsage}};
    for (const auto& [i, result] : all) {
      const auto* failure = std::get_if<Failure>(&result);
      ASSERT_EQ(failure != nullptr, failed.count(i) > 0) << i;
      if (failure == nullptr) continue;
      EXPECT_EQ(failure->code, failed.at(i)) << failure->message;
    }
    EXPECT_THAT(std::get<Failure>(all.at(7)).message, testing::HasSubstr("Killed"));
  }
}

TEST(Workers, ADeathKeepsItsSignalWhatItTookAndItsLastWords) {
  LocalWorkers workers(1, [](std::size_t i) -> std::string {
    std::fprintf(stderr, "words of %zu\n", i);
    if (i != 2) return "done";
    const std::string many(10000, 'x');
    std::fputs(many.c_str(), stderr);
    std::vector<char> memory(64'000'000, 'm');
    volatile char last = 0;
    for (int round = 0; round < 5; ++round)
      for (const char c : memory) last = static_cast<char>(last + c);
    std::fputs("the last words \xc3\xa4\x1b\n", stderr);
    ::raise(SIGKILL);
    return "";
  });
  workers.submit({0, 4});
  std::vector<PointOutcome> all;
  for (auto some = workers.poll(); !some.empty(); some = workers.poll())
    for (PointOutcome& outcome : some) all.push_back(std::move(outcome));
  ASSERT_EQ(all.size(), 4U);
  for (const PointOutcome& outcome : all) {
    const bool died = outcome.point == 2;
    EXPECT_EQ(outcome.use.signal, died ? SIGKILL : 0);
    EXPECT_EQ(outcome.use.stderr_tail.empty(), !died);
    EXPECT_GT(outcome.use.peak_bytes, died ? 60'000'000 : 1'000'000);
    if (!died) continue;
    EXPECT_GT(outcome.use.user_s, 0.01);
    EXPECT_GE(outcome.use.wall_s, 0.01);
    EXPECT_EQ(outcome.use.stderr_tail.size(), 4096U + 3) << "a control character is four";
    EXPECT_TRUE(outcome.use.stderr_tail.ends_with("xthe last words ??\\x1b\n"));
    EXPECT_THAT(outcome.use.stderr_tail, testing::Not(testing::HasSubstr("words of 1")));
  }
}

TEST(Workers, APointThatTakesTooLongFailsAlone) {
  LocalWorkers workers(
      2,
      [](std::size_t i) -> std::string {
        if (i == 5) ::sleep(600);
        return "done";
      },
      [](std::size_t i) {  // points 5 and 6 apart, an hour: a busy machine may delay any of them
        return PointLimits{std::chrono::milliseconds(i == 5 ? 200 : i == 6 ? 0 : 3'600'000)};
      });
  workers.submit({0, 40});
  const auto all = outcomes_of(workers);
  ASSERT_EQ(all.size(), 40U);
  for (const auto& [i, result] : all)
    EXPECT_EQ(std::get_if<Failure>(&result) != nullptr, i == 5) << i;
  EXPECT_EQ(std::get<Failure>(all.at(5)).code, ExitCode::kResource);
  EXPECT_THAT(std::get<Failure>(all.at(5)).message, testing::HasSubstr("point_timeout"));
}

TEST(Workers, RunManyPointsInOneProcess) {
  LocalWorkers workers(2, [](std::size_t) { return std::to_string(::getpid()); });
  workers.submit({0, 200});
  std::set<std::string> processes;
  for (const auto& [i, result] : outcomes_of(workers))
    processes.insert(std::get<std::string>(result));
  EXPECT_LE(processes.size(), 2U);
}

constexpr std::int64_t kMega = 1'000'000;

/// Memory that all processes of a test see.
template <class T>
class Shared {
 public:
  Shared()
      : at_(new (::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                        0)) T()) {}
  ~Shared() { ::munmap(at_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator*() { return *at_; }
  T* operator->() { return at_; }

 private:
  T* at_;
};

/// Takes so much memory while something else happens, and gives it back at once: allocators of
/// sanitizers keep what was freed.
std::string taking(std::int64_t bytes, const std::function<void()>& meanwhile = nullptr) {
  const auto size = static_cast<std::size_t>(bytes);
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  std::memset(memory, 'm', size);
  if (meanwhile) meanwhile();
  std::string middle(1, static_cast<const char*>(memory)[size / 2]);
  ::munmap(memory, size);
  return middle;
}

TEST(Workers, TheMemoryOfAPointIsItsOwnWhateverRanBefore) {
  LocalWorkers workers(1, [](std::size_t i) { return taking(i == 0 ? 100 * kMega : kMega); });
  workers.submit({0, 2});
  std::map<std::size_t, std::int64_t> peaks;
  for (auto some = workers.poll(); !some.empty(); some = workers.poll())
    for (const PointOutcome& outcome : some) peaks[outcome.point] = outcome.use.peak_bytes;
  EXPECT_GT(peaks.at(0), 100 * kMega);
  EXPECT_LT(peaks.at(1), peaks.at(0) - 90 * kMega);
}

TEST(Workers, APointAboveItsMemoryFailsAlone) {
  for (const int milliseconds : {0, 200}) {  // found by the worker at its end, by the parent before
    LocalWorkers workers(
        2,
        [=](std::size_t i) {
          if (i != 5) return taking(kMega);
          return taking(400 * kMega,
                        [=] { ::usleep(static_cast<useconds_t>(milliseconds) * 1000); });
        },
        [](std::size_t) {
          PointLimits limits;
          limits.memory = 300 * kMega;
          return limits;
        });
    workers.submit({0, 40});
    const auto all = outcomes_of(workers);
    ASSERT_EQ(all.size(), 40U);
    for (const auto& [i, result] : all)
      EXPECT_EQ(std::get_if<Failure>(&result) != nullptr, i == 5) << i;
    EXPECT_EQ(std::get<Failure>(all.at(5)).code, ExitCode::kResource);
    EXPECT_THAT(std::get<Failure>(all.at(5)).message, testing::HasSubstr("point_memory"));
  }
}

TEST(Workers, APointThatDiesIsTriedAgainInAProcessOfItsOwn) {
  // Dies only where another point ran before it, as where that one left something broken.
  for (const bool always : {false, true}) {
    Shared<std::atomic<int>> tries;
    LocalWorkers workers(2, [&, ran = 0](std::size_t i) mutable {
      if (i == 21) {
        ++*tries;
        if (always || ran > 0) ::raise(SIGKILL);
      }
      ++ran;
      return std::to_string(::getpid());
    });
    workers.submit({0, 60});
    const auto all = outcomes_of(workers);
    ASSERT_EQ(all.size(), 60U);
    EXPECT_EQ(*tries, 2);
    for (const auto& [i, result] : all) {
      EXPECT_EQ(std::holds_alternative<Failure>(result), always && i == 21) << i;
      if (always || i == 21) continue;
      EXPECT_NE(std::get<std::string>(result), std::get<std::string>(all.at(21)));
    }
  }
}

TEST(Workers, AWorkerThatIsKilledWhileItWaitsCostsNothing) {
  Shared<std::atomic<pid_t>> process;
  LocalWorkers workers(1, [&](std::size_t) {
    *process = ::getpid();
    return std::string("done");
  });
  workers.submit({0, 1});
  EXPECT_EQ(outcomes_of(workers).size(), 1U);
  ::kill(*process, SIGKILL);
  workers.submit({1, 4});
  for (const auto& [i, result] : outcomes_of(workers))
    EXPECT_TRUE(std::holds_alternative<std::string>(result)) << i;
}

TEST(Workers, AreReplacedAfterSoManyPointsOrBytes) {
  const auto processes_of = [](PointLimits limits, std::int64_t kept_bytes) {
    std::vector<std::vector<char>> kept;
    LocalWorkers workers(
        1,
        [=](std::size_t) mutable {
          kept.emplace_back(static_cast<std::size_t>(kept_bytes), 'k');
          return std::to_string(::getpid());
        },
        [limits](std::size_t) { return limits; });
    workers.submit({0, 40});
    std::map<std::string, int> points;
    for (const auto& [i, result] : outcomes_of(workers)) ++points[std::get<std::string>(result)];
    return points;
  };
  PointLimits by_points, by_bytes;
  by_points.worker_points = 10;
  by_bytes.worker_memory = 19 * kMega;
  for (const auto& [process, count] : processes_of(by_points, 1)) EXPECT_EQ(count, 10);
  const auto points = processes_of(by_bytes, 2 * kMega);
  EXPECT_GT(points.size(), 2U) << "some 10 points each";
  for (const auto& [process, count] : points) EXPECT_LT(count, 15);
  EXPECT_EQ(processes_of({}, 2 * kMega).size(), 1U);
}

TEST(Workers, AsManyRunAsThereIsMemoryFor) {
  // Each point takes 20 MB of a machine that has 70 MB: three run at a time, of eight that might.
  for (const std::int64_t machine : {70 * kMega, 2000 * kMega}) {
    const int wanted = machine == 70 * kMega ? 3 : 8;
    Shared<std::atomic<int>> running, most, taken;
    const auto until_so_many_run = [&] {  // or for a minute; and some time for one too many
      ++*taken;
      for (int i = 0; i < 6000 && *most < wanted; ++i) ::usleep(10'000);
      ::usleep(60'000);
    };
    LocalWorkers workers(
        8,
        [&](std::size_t) {
          const int now = ++*running;
          for (int seen = *most; seen < now && !most->compare_exchange_weak(seen, now);) {
          }
          taking(20 * kMega, until_so_many_run);
          --*running;
          return std::string();
        },
        // The first point has its memory before others begin: workers are looked at before each
        // look at the machine, and the second look after `taken` sees it.
        nullptr,
        [&, looks = 0]() mutable {
          looks += *taken > 0 ? 1 : 0;
          return looks < 2 ? -kMega : machine - *running * 20 * kMega;
        });
    workers.submit({0, 16});
    EXPECT_EQ(outcomes_of(workers).size(), 16U);
    EXPECT_EQ(*most, wanted);
  }
}

TEST(WorkerPage, AWorkerHasGrownByNothingBeforeItStoresWhereItStarts) {
  WorkerPage page;
  EXPECT_EQ(page.grown_to(50'000'000), 0);
  page.base_bytes.store(40'000'000);
  EXPECT_EQ(page.grown_to(50'000'000), 10'000'000);
  EXPECT_EQ(page.grown_to(30'000'000), 0);
}

TEST(MemoryAdmission, ExpectsWhatTheLimitSaysUntilAPointIsDone) {
  using namespace std::chrono_literals;
  const std::int64_t giga = 1000 * kMega;
  MemoryAdmission admission([=] { return 32 * giga; });
  EXPECT_TRUE(admission.admits({}, 40 * giga, 0ns)) << "one runs always";
  EXPECT_TRUE(admission.admits({0, 0, 0}, 8 * giga, 0ns));
  EXPECT_FALSE(admission.admits({0, 0, 0, 0}, 8 * giga, 0ns)) << "four of 8 GB fill 32 GB";
  EXPECT_FALSE(admission.admits({0}, 0, 50ms)) << "nobody knows yet what the first one takes";
  EXPECT_TRUE(admission.admits({giga}, 0, 150ms));
  EXPECT_FALSE(admission.admits({33 * giga}, 0, 150ms));
  admission.add(giga);
  EXPECT_TRUE(admission.admits({0, 0, 0, 0}, 8 * giga, 0ns)) << "they take less than they may";
}

TEST(MemoryAdmission, WhatPointsHaveTakenIsNoLongerAvailable) {
  std::int64_t available = 30 * kMega;
  MemoryAdmission admission([&] { return available; });
  admission.add(20 * kMega);
  EXPECT_TRUE(admission.admits({20 * kMega}, 0, std::chrono::seconds(0)));
  available = 10 * kMega;  // the one that was admitted has its 20 MB
  admission.look_again();
  EXPECT_FALSE(admission.admits({20 * kMega, 20 * kMega}, 0, std::chrono::seconds(0)));
}

TEST(MemoryAdmission, APointThatHasJustEndedTookWhatItWasSeenToTake) {
  using namespace std::chrono_literals;
  MemoryAdmission admission([] { return 30 * kMega; });
  EXPECT_TRUE(admission.admits({20 * kMega}, 0, 1s));
  // Its memory is free and its outcome has not come; two others are still growing.
  EXPECT_FALSE(admission.admits({0, 7 * kMega, 7 * kMega}, 0, 1s));
  admission.add(20 * kMega);
  EXPECT_FALSE(admission.admits({7 * kMega, 7 * kMega}, 0, 1s));
  EXPECT_TRUE(admission.admits({15 * kMega, 15 * kMega}, 0, 1s));
}

TEST(ProcessMemory, SeesWhatThereIsAndWhatThisProcessHas) {
  EXPECT_GT(available_memory(), 10 * kMega);
  EXPECT_LT(available_memory(), std::int64_t{1} << 50);
  const std::int64_t before = resident_bytes(0);
  EXPECT_GT(before, kMega);
  const std::vector<char> memory(50 * kMega, 'm');
  EXPECT_GT(resident_bytes(::getpid()), before + 40 * kMega);
}

TEST(Workers, AFailureThatIsNoDeathKeepsItsLastWordsToo) {
  LocalWorkers workers(1, [](std::size_t i) -> std::string {
    std::fprintf(stderr, "words of %zu\n", i);
    if (i == 1) throw std::runtime_error("broken");
    return "done";
  });
  workers.submit({0, 3});
  for (auto some = workers.poll(); !some.empty(); some = workers.poll())
    for (const PointOutcome& outcome : some)
      EXPECT_EQ(outcome.use.stderr_tail, outcome.point == 1 ? "words of 1\n" : "");
}

}  // namespace
}  // namespace orrery::workers_test
