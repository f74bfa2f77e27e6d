// SPDX-License-Identifier: Apache-2.0
// What is left of a store when its writer is killed, or its disk is full.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <random>
#include <stdexcept>

#include "sim/store/result_store.h"
#include "sim/store/store_file.h"
#include "tests/unit/results/example.h"

namespace orrery::store_damage_test {
namespace {

/// Runs the body in a child; the parent may kill it.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) {
    if (::pipe(pipe_) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ != 0) {
      ::close(pipe_[1]);
      return;
    }
    try {
      body(*this);
      ::_exit(0);
    } catch (const std::exception&) {
      ::_exit(1);
    }
  }
  ~Child() { ::close(pipe_[0]); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// From the child: one more thing is done.
  void report() const {
    if (::write(pipe_[1], "x", 1) != 1) ::_exit(1);
  }
  /// Kills it that long after so many reports; gives the number of reports it had made.
  int kill_after(int reports, useconds_t delay) {
    int made = 0;
    char byte = 0;
    while (made < reports && ::read(pipe_[0], &byte, 1) == 1) ++made;
    ::usleep(delay);
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    while (::read(pipe_[0], &byte, 1) == 1) ++made;
    return made;
  }

 private:
  pid_t pid_ = 0;
  int pipe_[2] = {};
};

std::string identity(int round, int i) { return std::to_string(round) + "." + std::to_string(i); }

// A hundred writers, each killed at a random moment, in creation as well as in saving: everything
// that was reported as saved is there, whole, and nothing needs repair by hand.
TEST(KilledWriter, LosesNothingThatWasSaved) {
  constexpr int kRounds = 100;
  constexpr int kRoundsPerStore = 20;  // a fresh file now and then, so that kills hit its creation
  const TemporaryFolder folder;
  std::mt19937 random(1);
  std::uniform_int_distribution<int> saves(0, 8);
  std::uniform_int_distribution<useconds_t> delay(0, 5'000);  // a few saves, or half a creation
  std::vector<std::string> expected;
  for (int round = 0; round < kRounds; ++round) {
    const auto path = folder / ("r" + std::to_string(round / kRoundsPerStore) + ".db");
    if (round % kRoundsPerStore == 0) expected.clear();
    Child child([&](const Child& self) {
      ResultStore store = ResultStore::open(path);
      for (int i = 0;; ++i) {
        store.save(example_record(identity(round, i), i), example_times());
        self.report();
      }
    });
    const int reports = child.kill_after(saves(random), delay(random));
    for (int i = 0; i < reports; ++i) expected.push_back(identity(round, i));

    const ResultStore store = ResultStore::open(path);
    store.verify();
    for (const std::string& id : expected) ASSERT_TRUE(store.contains(id)) << id;
    // At most one more: saved, and killed before the report.
    EXPECT_FALSE(store.contains(identity(round, reports + 1)));
  }
}

// Without WAL a killed writer leaves a journal that must be played back before anyone may read.
TEST(KilledWriter, LeavesAJournalThatTheNextReaderPlaysBack) {
  const TemporaryFolder folder;
  { ResultStore::open(folder / "r.db").save(example_record(), example_times()); }
  Child child([&](const Child& self) {
    Database database(folder / "r.db", Database::Mode::kWrite);
    // A cache of one page, so that changed pages reach the file before the commit.
    database.execute("PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN IMMEDIATE");
    for (int i = 0; i < 200; ++i) {
      database.execute(
          "UPDATE metrics_training SET step_time_s = 7, bound = bound || "
          "'xxxxxxxxxxxxxxxxxxxxxxxxx'");
    }
    self.report();
    ::pause();
  });
  ASSERT_EQ(child.kill_after(1, 0), 1);
  ASSERT_TRUE(std::filesystem::exists(folder / "r.db-journal"));
  const ResultStore store = ResultStore::open_read_only(folder / "r.db");
  EXPECT_EQ(store.find("id")->find("step_time_s")->value, 0.1);
  store.verify();
}

/// Saves until there is no room; gives the number of records saved.
int fill(ResultStore& store) {
  for (int i = 0;; ++i) {
    try {
      store.save(example_record(identity(0, i), i), example_times());
    } catch (const StoreError& error) {
      EXPECT_EQ(error.fault(), StoreFault::kFull) << error.what();
      return i;
    }
  }
}

TEST(FullStore, KeepsWhatWasSavedAndGoesOnWhenThereIsRoom) {
  const TemporaryFolder folder;
  int saved = 0;
  {
    ResultStore store = ResultStore::open(folder / "r.db", 200 * 1024);
    saved = fill(store);
    EXPECT_GT(saved, 10);
    store.verify();
    EXPECT_EQ(store.all().size(), static_cast<std::size_t>(saved));
  }
  EXPECT_LE(std::filesystem::file_size(folder / "r.db"), 200u * 1024);
  ResultStore store = ResultStore::open(folder / "r.db");
  EXPECT_EQ(store.save(example_record(identity(0, saved), saved), example_times()),
            SaveOutcome::kAdded);
}

/// A file system of 600 KB, where this process may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(std::string folder)
      : folder_(std::move(folder)),
        mounted_(::mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=600k") == 0) {}
  ~SmallDisk() {
    if (mounted_) ::umount(folder_.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  std::string folder_;
  bool mounted_;
};

TEST(FullStore, HoldsOnARealFullDisk) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder.path());
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a small file system";
  {
    ResultStore store = ResultStore::open(folder / "r.db");
    const int saved = fill(store);
    EXPECT_GT(saved, 10);
    EXPECT_EQ(store.all().size(), static_cast<std::size_t>(saved));
    store.verify();
  }
  ResultStore::open_read_only(folder / "r.db").verify();
}

/// A process that is there before its parent opens anything, and works when it is told to.
class Later {
 public:
  explicit Later(const std::function<int()>& work) {
    if (::pipe(pipe_) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ != 0) return;
    char byte = 0;
    ::_exit(::read(pipe_[0], &byte, 1) == 1 ? work() : 255);
  }
  ~Later() {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  Later(const Later&) = delete;
  Later& operator=(const Later&) = delete;

  /// Its exit code.
  int now() {
    EXPECT_EQ(::write(pipe_[1], "x", 1), 1);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
  int pipe_[2] = {};
};

TEST(StoreDamage, AProcessThatIsDoneLeavesOthersTheirLog) {
  // The one that is done settles the store unless others have it open. They have it open, also
  // after they have looked into its header.
  const TemporaryFolder folder;
  const auto path = folder / "r.db";
  Later other([&] {
    ResultStore::open(path).save(example_record("third"), example_times());
    return 0;
  });
  Later count([&] {
    const ResultStore seen = ResultStore::open_read_only(path);
    return static_cast<int>(seen.database()->integer("SELECT count(*) FROM points"));
  });
  ResultStore::open(path).save(example_record("first"), example_times());
  ResultStore store = ResultStore::open(path);
  EXPECT_TRUE(store.find("first").has_value());
  store.save(example_record("second"), example_times());
  EXPECT_TRUE(is_sqlite_file(path));
  EXPECT_TRUE(ResultStore::open_read_only(path).find("second").has_value());
  EXPECT_EQ(other.now(), 0);
  store.save(example_record("fourth"), example_times());
  EXPECT_EQ(count.now(), 4);
}

}  // namespace
}  // namespace orrery::store_damage_test
