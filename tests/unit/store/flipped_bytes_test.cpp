// SPDX-License-Identifier: Apache-2.0
// One byte of a store is another one: that is found, or changes nothing that anybody reads.
// ORRERY_FLIPS=10000 tries as many; ORRERY_FLIP_SEED=7 tries others.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "sim/results/record_bytes.h"
#include "sim/store/merge.h"
#include "sim/store/result_store.h"
#include "tests/unit/results/example.h"

namespace orrery::flipped_bytes_test {
namespace {

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// All that a reader can see of a point.
std::string visible(const RunRecord& record) { return to_json(record).dump(); }

RunRecord point(int i) {
  RunRecord record = example_record();
  record.identity = "id" + std::to_string(100 + i);
  record.base = example_configuration(std::to_string(1 + i % 3));
  record.varied = {
      {{"bandwidth", std::to_string(1 + i) + " TB/s", (1 + i) * 1e12, "B/s", "sweep.yaml:7:3"},
       std::to_string(1 + i) + "000000000000.0"}};
  record.metrics.front().value = 1 + i;
  return record;
}

class FlippedBytes : public ::testing::Test {
 protected:
  void SetUp() override {
    ResultStore store = ResultStore::open(folder_ / "whole.db");
    for (int i = 0; i < 12; ++i) {
      const RunRecord record = point(i);
      store.save(record, example_times());
      truth_[record.identity] = visible(*store.find(record.identity));
    }
  }

  std::string bytes() const {
    std::ifstream file(folder_ / "whole.db", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// What is wrong with points that a reader took for good.
  std::string lies(const ResultStore& store) const {
    std::string found;
    store.for_each([&](const RunRecord& record) {
      const auto true_one = truth_.find(record.identity);
      if (true_one == truth_.end()) {
        found += "a point that never was: " + record.identity + "\n";
      } else if (visible(record) != true_one->second) {
        found += visible(record) + "\n instead of\n" + true_one->second + "\n";
      }
    });
    return found;
  }

  TemporaryFolder folder_;
  std::map<std::string, std::string> truth_;
};

TEST_F(FlippedBytes, AreFoundOrChangeNothingThatIsRead) {
  const std::string whole = bytes();
  std::mt19937_64 random(static_cast<std::uint64_t>(number_of("ORRERY_FLIP_SEED", 1)));
  std::uniform_int_distribution<std::size_t> place(0, whole.size() - 1);
  std::uniform_int_distribution<int> bit(0, 7);
  const int flips = number_of("ORRERY_FLIPS", 100);
  int found = 0;
  for (int i = 0; i < flips; ++i) {
    std::string damaged = whole;
    const std::size_t at = place(random);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit(random)));
    const auto path = folder_ / "damaged.db";
    std::ofstream(path, std::ios::binary) << damaged;
    try {
      const ResultStore store = ResultStore::open_read_only(path);
      EXPECT_EQ(lies(store), "") << "byte " << at;
    } catch (const StoreError&) {
      ++found;
    }
    ResultStore merged = ResultStore::open(folder_ / ("merged" + std::to_string(i) + ".db"));
    MergeReport report;
    merge(merged, path, report, [](const std::function<void()>& work) { work(); });
    EXPECT_EQ(lies(merged), "") << "merged, byte " << at;
    std::filesystem::remove(folder_ / ("merged" + std::to_string(i) + ".db"));
  }
  EXPECT_GT(found, 0) << "of " << flips;
}

}  // namespace
}  // namespace orrery::flipped_bytes_test
