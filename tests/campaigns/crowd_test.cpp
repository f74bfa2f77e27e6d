// SPDX-License-Identifier: Apache-2.0
// Many write one store and read it at a time, and nobody is told that it is locked.
// ORRERY_CROWD_S=600 takes ten minutes.
#include <chrono>
#include <vector>

#include "sim/app/questions/points/stored_points.h"
#include "sim/app/sweeps/run/run_sweep.h"
#include "tests/campaigns/campaign.h"
#include "tests/campaigns/program_run.h"
#include "tests/unit/app/sweep_file.h"
#include "tests/unit/results/example.h"

namespace orrery::crowd_test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kWriters = 32, kReaders = 5;

struct Seen {
  std::atomic<long> saved{0}, read{0};
  std::atomic<long> told{0};  ///< somebody was told that the store is locked
  std::atomic<long> slowest_ms{0};
};

void write_until(Clock::time_point end, const std::filesystem::path& path, int writer, Seen& seen) {
  const auto patiently = [&](const std::function<void()>& work) {
    const auto begin = Clock::now();
    wait_for_store(work, [&](const std::string&) { ++seen.told; });
    const long ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
    for (long known = seen.slowest_ms;
         known < ms && !seen.slowest_ms.compare_exchange_weak(known, ms);) {
    }
  };
  std::optional<ResultStore> store;
  patiently([&] { store.emplace(ResultStore::open(path)); });
  int round = 0;
  do {  // at least one round: on a busy machine the time may be over before a writer starts
    patiently([&] {
      ResultStore::Batch batch = store->begin();
      for (int i = 0; i < 8; ++i) {
        const std::string identity =
            std::to_string(writer) + "." + std::to_string(round) + "." + std::to_string(i);
        batch.save(example_record(identity, 1 + i), example_times());
      }
      batch.commit();
    });
    seen.saved += 8;
    ++round;
  } while (Clock::now() < end);
}

void read_until(Clock::time_point end, const std::filesystem::path& path, Seen& seen) {
  do {
    const ResultStore store = ResultStore::open_read_only(path);
    const PointTable table(*store.database());
    const auto times = table.column("step_time_s");
    if (table.size() > 0 && !times) throw std::logic_error("points without their metric");
    const auto some = store.next_identity(std::to_string(seen.read % 32));
    if (some && !store.find(*some)) throw std::logic_error("a point is gone");
    ++seen.read;
    ::usleep(20'000);
  } while (Clock::now() < end);
}

TEST(Crowd, OfWritersAndReadersNeverSeesALockedStore) {
  const TemporaryFolder folder;
  const auto path = folder / "r.db";
  ResultStore::open(path).save(example_record("first"), example_times());
  Shared<Seen> seen;
  const auto end = Clock::now() + std::chrono::seconds(number_of("ORRERY_CROWD_S", 3));
  std::vector<pid_t> crowd;
  for (int i = 0; i < kWriters + kReaders; ++i) {
    crowd.push_back(::fork());
    if (crowd.back() != 0) continue;
    try {
      if (i < kWriters) write_until(end, path, i, *seen);
      if (i >= kWriters) read_until(end, path, *seen);
      ::_exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", i < kWriters ? "writer" : "reader", error.what());
      ::_exit(1);
    }
  }
  for (const pid_t one : crowd) {
    int status = 0;
    ::waitpid(one, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ((*seen).told, 0) << "were told that the store is locked";
  const ResultStore store = ResultStore::open(path);
  EXPECT_EQ(store.database()->integer("SELECT count(*) FROM points"), 1 + (*seen).saved);
  EXPECT_EQ(store.database()->text("PRAGMA integrity_check"), "ok");
  EXPECT_GT((*seen).read, 0);
  std::printf("%ld points saved, %ld reads, slowest transaction %ld ms\n", (*seen).saved.load(),
              (*seen).read.load(), (*seen).slowest_ms.load());
}

TEST(Crowd, OfTwoRunsOnOneStoreGivesTheStoreOfOne) {
  const TemporaryFolder folder;
  const SweepFile file(kManyGemms, "two.yaml");
  const auto words = [&](const std::string& store) {
    return std::vector<std::string>{"sweep",  "run", file.path(),  "--db", store,
                                    "--jobs", "2",   "--progress", "none"};
  };
  ASSERT_EQ(ProgramRun(words(folder / "whole.db"), "/dev/null").wait(), 0);
  for (int round = 0; round < number_of("ORRERY_TWO_RUNS", 2); ++round) {
    const auto store = folder / ("two" + std::to_string(round) + ".db");
    ProgramRun one(words(store), "/dev/null", folder / "one.txt");
    ProgramRun two(words(store), "/dev/null", folder / "two.txt");
    EXPECT_EQ(one.wait(), 0) << text_of(folder / "one.txt");
    EXPECT_EQ(two.wait(), 0) << text_of(folder / "two.txt");
    EXPECT_EQ(text_of(folder / "one.txt") + text_of(folder / "two.txt"), "");
    EXPECT_EQ(contents_of(store, RunCount::kAnyNumber), contents_of(folder / "whole.db"));
  }
}

}  // namespace
}  // namespace orrery::crowd_test
