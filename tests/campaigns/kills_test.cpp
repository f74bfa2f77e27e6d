// SPDX-License-Identifier: Apache-2.0
// Who runs a sweep, works for it or merges stores is killed at random moments: nothing is lost,
// nothing doubled. ORRERY_KILLS=1000 kills each as often, ORRERY_KILL_SEED=7 at other moments.
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>

#include "sim/store/merge.h"
#include "tests/campaigns/campaign.h"
#include "tests/campaigns/program_run.h"
#include "tests/unit/app/sweep_file.h"
#include "tests/unit/results/example.h"

namespace orrery::kills_test {
namespace {

class Kills : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(run(folder_ / "whole.db").wait(), 0);
    span_ = std::chrono::steady_clock::now() - begin;
    whole_ = contents_of(folder_ / "whole.db");
    ASSERT_EQ(whole_.size(), 500U);
  }

  ProgramRun run(const std::filesystem::path& store) const {
    return ProgramRun({"sweep", "run", file_.path(), "--db", store, "--jobs", "2"}, "/dev/null");
  }
  /// Some moment of an undisturbed run, or of part of it.
  void wait_a_while(double part = 1) {
    std::uniform_real_distribution<double> share(0, part);
    ::usleep(static_cast<useconds_t>(share(random_) * span_.count() * 1e6));
  }
  std::int64_t points_in(const std::filesystem::path& store) const {
    if (!std::filesystem::exists(store)) return 0;
    const ResultStore opened = ResultStore::open(store);
    return opened.database() ? opened.database()->integer("SELECT count(*) FROM points") : 0;
  }

  const int kills_ = number_of("ORRERY_KILLS", 12);
  std::mt19937_64 random_{static_cast<std::uint64_t>(number_of("ORRERY_KILL_SEED", 1))};
  SweepFile file_{kManyGemms, "kills.yaml"};
  TemporaryFolder folder_;
  std::chrono::duration<double> span_{};
  std::map<std::string, std::string> whole_;
};

TEST_F(Kills, OfTheRunnerLoseNothingAndDoubleNothing) {
  int kills = 0, completed = 0;
  while (kills < kills_) {
    const auto store = folder_ / ("r" + std::to_string(completed) + ".db");
    for (std::int64_t before = 0;;) {
      ProgramRun running = run(store);
      wait_a_while();
      const int code = running.kill();
      kills += code == -1 ? 1 : 0;
      const std::int64_t now = points_in(store);
      ASSERT_GE(now, before) << "points were lost";
      before = now;
      if (code == 0 || kills >= kills_) break;
      ASSERT_EQ(code, -1) << "it ended by itself";
    }
    ASSERT_EQ(run(store).wait(), 0);
    ASSERT_EQ(contents_of(store), whole_) << "after " << kills << " kills";
    std::filesystem::remove(store);
    ++completed;
  }
  std::printf("%d kills of runners, %d stores completed\n", kills, completed);
}

/// A sanitised program looks for leaks with the help of a child, at its end, and waits for ever
/// where that is killed. While this lives programs that start have workers as children alone.
class NoLeakCheck {
 public:
  NoLeakCheck() {
    const char* before = std::getenv(kOptions);
    if (before != nullptr) before_ = before;
    ::setenv(kOptions, (before_ + ":detect_leaks=0").c_str(), 1);
  }
  ~NoLeakCheck() { ::setenv(kOptions, before_.c_str(), 1); }
  NoLeakCheck(const NoLeakCheck&) = delete;
  NoLeakCheck& operator=(const NoLeakCheck&) = delete;

 private:
  static constexpr const char* kOptions = "ASAN_OPTIONS";
  std::string before_;
};

TEST_F(Kills, OfWorkersCostPointsAtMostUntilTheNextRun) {
  const NoLeakCheck no_leak_check;
  int kills = 0, completed = 0, disturbed = 0;
  while (kills < kills_) {
    const auto store = folder_ / ("w" + std::to_string(completed) + ".db");
    ProgramRun running = run(store);
    while (running.is_running()) {
      wait_a_while(0.2);
      const std::vector<pid_t> workers = running.children();
      if (workers.empty() || !running.is_running()) continue;
      ::kill(workers[random_() % workers.size()], SIGKILL);
      ++kills;
    }
    const int code = running.wait();
    ASSERT_TRUE(code == 0 || code == 3) << code;
    disturbed += code == 3 ? 1 : 0;
    ASSERT_EQ(run(store).wait(), 0);
    ASSERT_EQ(contents_of(store, RunCount::kAnyNumber), whole_) << "after " << kills << " kills";
    std::filesystem::remove(store);
    ++completed;
  }
  std::printf("%d kills of workers in %d runs, of which %d left a point to the next run\n", kills,
              completed, disturbed);
}

TEST_F(Kills, OfTheMergerLoseNothingAndDoubleNothing) {
  const ResultStore all = ResultStore::open_read_only(folder_ / "whole.db");
  std::vector<std::string> words = {"sweep", "merge", ""};
  for (int i = 0; i < 4; ++i) words.push_back(folder_ / ("shard" + std::to_string(i) + ".db"));
  int n = 0;
  std::vector<ResultStore> shards;
  for (int i = 0; i < 4; ++i)
    shards.push_back(ResultStore::open(words[static_cast<std::size_t>(3 + i)]));
  for (int i = 0; i < 4; ++i) {
    auto batch = shards[static_cast<std::size_t>(i)].begin();
    n = 0;
    for (auto next = all.next_identity(""); next; next = all.next_identity(*next), ++n)
      if (n % 4 == i || n % 7 == i) batch.save(all.point(*next).value());  // some are in two
    batch.commit();
  }
  shards.clear();
  int kills = 0, completed = 0;
  while (kills < kills_) {
    words[2] = folder_ / ("m" + std::to_string(completed) + ".db");
    for (std::int64_t before = 0;;) {
      ProgramRun merging(words, "/dev/null");
      wait_a_while(0.3);
      const int code = merging.kill();
      kills += code == -1 ? 1 : 0;
      const std::int64_t now = points_in(words[2]);
      ASSERT_GE(now, before) << "points were lost";
      before = now;
      if (code == 0 || kills >= kills_) break;
      ASSERT_EQ(code, -1) << "it ended by itself";
    }
    ASSERT_EQ(ProgramRun(words, "/dev/null").wait(), 0);
    ASSERT_EQ(contents_of(words[2]), whole_) << "after " << kills << " kills";
    std::filesystem::remove(words[2]);
    ++completed;
  }
  std::printf("%d kills of mergers, %d stores completed\n", kills, completed);
}

}  // namespace
}  // namespace orrery::kills_test
