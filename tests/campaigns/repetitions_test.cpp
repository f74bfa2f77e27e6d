// SPDX-License-Identifier: Apache-2.0
// The same sweep again and again, by one worker and by many: the same bytes.
// ORRERY_REPETITIONS=1000 repeats it as often.
#include "tests/campaigns/campaign.h"
#include "tests/campaigns/program_run.h"
#include "tests/unit/app/sweep_file.h"
#include "tests/unit/results/example.h"

namespace orrery::repetitions_test {
namespace {

TEST(Repetitions, WithAnyNumberOfWorkersGiveTheSameBytes) {
  const TemporaryFolder folder;
  const SweepFile file(kManyGemms, "again.yaml");
  const auto store = folder / "r.db";
  std::string printed, exported;
  std::map<std::string, std::string> contents;
  const int repetitions = number_of("ORRERY_REPETITIONS", 5);
  for (int i = 0; i < repetitions; ++i) {
    const std::string jobs = std::to_string(1 << (i % 5));  // 1, 2, 4, 8, 16
    ASSERT_EQ(ProgramRun({"sweep", "run", file.path(), "--db", store, "--json", "--jobs", jobs},
                         folder / "out.txt")
                  .wait(),
              0);
    ASSERT_EQ(ProgramRun({"export", store, "--jsonl"}, folder / "export.txt").wait(), 0);
    if (i == 0) {
      printed = text_of(folder / "out.txt");
      exported = text_of(folder / "export.txt");
      contents = contents_of(store);
      ASSERT_EQ(contents.size(), 500U);
    }
    ASSERT_EQ(text_of(folder / "out.txt"), printed) << jobs << " workers";
    ASSERT_EQ(text_of(folder / "export.txt"), exported) << jobs << " workers";
    if (i < 5 || i % 50 == 0) {  // the same again, with seals and digests checked
      ASSERT_EQ(contents_of(store), contents) << jobs << " workers";
    }
    std::filesystem::remove(store);
  }
  std::printf("%d repetitions with 1, 2, 4, 8 and 16 workers\n", repetitions);
}

}  // namespace
}  // namespace orrery::repetitions_test
