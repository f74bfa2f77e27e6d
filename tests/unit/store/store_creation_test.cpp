// SPDX-License-Identifier: Apache-2.0
// Two processes open a store that neither of them has found: one creates it while the other looks.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <functional>
#include <string_view>

#include "sim/store/result_store.h"
#include "tests/unit/results/example.h"

namespace orrery::store_creation_test {
namespace {

/// Calls `before` once, before the first statement of any connection that begins with `text` runs.
class BeforeStatement {
 public:
  BeforeStatement(std::string_view text, std::function<void()> before) {
    text_ = text;
    before_ = std::move(before);
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(&watch));
  }
  ~BeforeStatement() {
    sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(&watch));
    before_ = nullptr;
  }
  BeforeStatement(const BeforeStatement&) = delete;
  BeforeStatement& operator=(const BeforeStatement&) = delete;

  static bool called() { return before_ == nullptr; }

 private:
  static int watch(sqlite3* database, char** /*error*/, const void* /*api*/) {
    return sqlite3_trace_v2(database, SQLITE_TRACE_STMT, &begins, nullptr);
  }
  static int begins(unsigned /*kind*/, void* /*context*/, void* /*statement*/, void* text) {
    if (!before_ || !std::string_view(static_cast<const char*>(text)).starts_with(text_)) return 0;
    const std::function<void()> before = std::move(before_);
    before_ = nullptr;
    before();
    return 0;
  }

  static inline std::string_view text_;
  static inline std::function<void()> before_;
};

TEST(StoreCreation, AStoreThatAnotherCreatesMeanwhileIsNoForeignFile) {
  const TemporaryFolder folder;
  const auto path = folder / "r.db";
  {  // with a log, so that the other one need not wait for this one
    Database empty(path, Database::Mode::kCreate);
    ASSERT_EQ(empty.text("PRAGMA journal_mode = WAL"), "wal");
  }
  const BeforeStatement other("PRAGMA user_version", [&] {
    ResultStore::open(path).save(example_record("theirs"), example_times());
  });
  ResultStore store = ResultStore::open(path);
  EXPECT_TRUE(BeforeStatement::called());
  store.save(example_record("ours"), example_times());
  EXPECT_TRUE(store.contains("theirs"));
  EXPECT_TRUE(store.contains("ours"));
}

}  // namespace
}  // namespace orrery::store_creation_test
