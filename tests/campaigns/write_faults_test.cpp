// SPDX-License-Identifier: Apache-2.0
// Every write that SQLite makes goes wrong once: the process ends before it or in the midst of it,
// the disk is full, the disk fails. ORRERY_EVERY_WRITE=1 tries every write, the short
// form some.
#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <vector>

#include "sim/app/sweeps/run/run_sweep.h"
#include "sim/store/merge.h"
#include "tests/campaigns/campaign.h"
#include "tests/campaigns/faulty_vfs.h"
#include "tests/unit/app/sweep_file.h"
#include "tests/unit/results/example.h"

namespace orrery::write_faults_test {
namespace {

constexpr std::array kFaults = {WriteFault::kDie, WriteFault::kTear, WriteFault::kFull,
                                WriteFault::kErrorOnce, WriteFault::kErrors};

bool dies(WriteFault fault) { return fault == WriteFault::kDie || fault == WriteFault::kTear; }

RunRecord point(int i) {
  RunRecord record = example_record("id" + std::to_string(100 + i), 1 + i);
  record.base = example_configuration(std::to_string(1 + i % 3));
  return record;
}

RunTimes times_of(int i) {
  RunTimes times = example_times();
  times.host = "node" + std::to_string(i);
  return times;
}

constexpr int kBatches = 4, kPerBatch = 5;

/// Saves points in some transactions. @param saved transactions that are through
void save_points(const std::filesystem::path& path, std::atomic<int>& saved) {
  ResultStore store = ResultStore::open(path);
  for (int batch = 0; batch < kBatches; ++batch) {
    auto open = store.begin();
    for (int i = batch * kPerBatch; i < (batch + 1) * kPerBatch; ++i)
      open.save(point(i), times_of(i));
    open.commit();
    saved = batch + 1;
  }
}

void merge_all(const std::filesystem::path& into,
               const std::vector<std::filesystem::path>& shards) {
  ResultStore store = ResultStore::open(into);
  MergeReport report;
  for (const auto& shard : shards)
    merge(store, shard, report, [](const std::function<void()>& work) { work(); });
  if (!report.damaged.empty()) throw std::logic_error(report.damaged.front());
}

/// Work on a store, and what has to hold whichever of its writes went wrong.
struct Campaign {
  std::filesystem::path store;
  std::function<void()> begin;               ///< lays out the files as they are before
  std::function<void()> work;                ///< runs in a child, with the fault
  std::function<void()> check;               ///< before anybody went on
  std::function<void()> resume;              ///< goes on, without faults
  std::map<std::string, std::string> whole;  ///< what an undisturbed run gives
};

void remove_store(const std::filesystem::path& path) {
  for (const char* ending : {"", "-wal", "-shm", "-journal"})
    std::filesystem::remove(path.string() + ending);
}

/// One write that goes wrong. @return false: there are fewer writes
bool try_one(const Campaign& campaign, WriteFault fault, long at) {
  Shared<std::atomic<long>> writes;
  campaign.begin();
  const int code = code_of_child([&] {
    break_write(fault, at, *writes);
    campaign.work();
  });
  const bool reached = *writes >= at;
  if (!reached) {
    EXPECT_EQ(code, 0);
  } else if (dies(fault)) {
    EXPECT_EQ(code, kDied);
  } else {
    // What fails when all is saved and the file is only tidied up costs nobody anything.
    EXPECT_THAT(code, testing::AnyOf(6, 0));
    if (code == 0) {
      EXPECT_EQ(contents_of(campaign.store), campaign.whole);
    }
  }
  campaign.check();
  EXPECT_EQ(code_of_child(campaign.resume), 0);
  EXPECT_EQ(contents_of(campaign.store), campaign.whole);
  return reached;
}

/// @param some every so many writes one is tried in the short form
void try_all(const Campaign& campaign, long some) {
  const long every = number_of("ORRERY_EVERY_WRITE", 0) != 0 ? 1 : some;
  for (const WriteFault fault : kFaults) {
    long at = 1 + static_cast<long>(fault) % every;
    while (try_one(campaign, fault, at)) {
      if (testing::Test::HasFailure()) {
        ADD_FAILURE() << "fault " << static_cast<int>(fault) << " at write " << at;
        return;
      }
      at += every;
    }
    EXPECT_GT(at, 10) << "nothing was tried";
    std::printf("fault %d: %ld writes, each %ld tried\n", static_cast<int>(fault), at - 1, every);
    std::fflush(stdout);  // or children print it again
  }
}

TEST(EveryWrite, OfSavingGoesWrongAndWhatWasSavedStays) {
  const TemporaryFolder folder;
  const auto whole = folder / "whole.db", path = folder / "r.db";
  Shared<std::atomic<int>> saved;
  save_points(whole, *saved);
  Campaign campaign;
  campaign.store = path;
  campaign.whole = contents_of(whole);
  ASSERT_EQ(campaign.whole.size(), std::size_t{kBatches * kPerBatch});
  campaign.begin = [&] {
    remove_store(path);
    *saved = 0;
  };
  campaign.work = [&] { save_points(path, *saved); };
  campaign.check = [&] {
    if (!std::filesystem::exists(path)) {
      EXPECT_EQ(*saved, 0);
      return;
    }
    const ResultStore store = ResultStore::open(path);
    store.verify();
    for (int i = 0; i < *saved * kPerBatch; ++i)
      EXPECT_TRUE(store.contains(point(i).identity)) << "lost: " << i;
    const std::size_t there = store.all().size();
    EXPECT_EQ(there % kPerBatch, 0U) << "half of a transaction";
    EXPECT_LE(there, static_cast<std::size_t>((*saved + 1) * kPerBatch));
  };
  campaign.resume = campaign.work;
  try_all(campaign, 11);
}

TEST(EveryWrite, OfAMergeGoesWrongAndTheNextOneCompletesIt) {
  const TemporaryFolder folder;
  const auto whole = folder / "whole.db", path = folder / "r.db";
  std::vector<std::filesystem::path> shards;
  for (int shard = 0; shard < 3; ++shard) {
    shards.push_back(folder / ("shard" + std::to_string(shard) + ".db"));
    ResultStore store = ResultStore::open(shards.back());
    for (int i = 0; i < 6; ++i)  // half of them are in the next shard too
      store.save(point(3 * shard + i), times_of(3 * shard + i));
  }
  merge_all(whole, shards);
  Campaign campaign;
  campaign.store = path;
  campaign.whole = contents_of(whole);
  ASSERT_EQ(campaign.whole.size(), 12U);
  campaign.begin = [&] { remove_store(path); };
  campaign.work = campaign.resume = [&] { merge_all(path, shards); };
  campaign.check = [&] {
    if (std::filesystem::exists(path)) ResultStore::open(path).verify();
  };
  try_all(campaign, 11);
}

constexpr const char* kSweep =
    "sweep: gemms\ncases:\n  - name: table\n    base: {experiment: operator, system: dgx_h100, "
    "operator: {kind: gemm, m: 64, n: 64, k: 64}}\n"
    "    axes: {grid: {operator.m: [64, 128, 256, 512], operator.n: [64, 128, 256, 512], "
    "operator.k: "
    "[64, 128, 256, 512]}}\n";

TEST(EveryWrite, OfASweepGoesWrongAndTheNextRunCompletesIt) {
  const TemporaryFolder folder;
  const auto whole = folder / "whole.db", path = folder / "r.db";
  const SweepFile file(kSweep, "faults.yaml");
  const Sweep sweep = load_sweep(file.path());
  const auto run = [&](const std::filesystem::path& into) {
    ResultStore store = ResultStore::open(into);
    SweepOptions options;
    options.jobs = 2;
    run_sweep(sweep, store, options);
  };
  run(whole);
  Campaign campaign;
  campaign.store = path;
  campaign.whole = contents_of(whole);
  ASSERT_EQ(campaign.whole.size(), 64U);
  campaign.begin = [&] { remove_store(path); };
  campaign.work = campaign.resume = [&] { run(path); };
  campaign.check = [&] {
    if (std::filesystem::exists(path)) ResultStore::open(path).verify();
  };
  try_all(campaign, 37);
}

}  // namespace
}  // namespace orrery::write_faults_test
