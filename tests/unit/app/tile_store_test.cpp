// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/tile_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "sim/store/result_store.h"

namespace orrery::tile_store_test {
namespace {

const std::string kConfigs = ORRERY_SOURCE_DIR "/configs";

LoadedExperiment gemm(std::vector<std::string> overrides) {
  return load_experiment(ORRERY_SOURCE_DIR "/tests/golden/gemm_h200.yaml", overrides,
                         config::Library(kConfigs));
}

TEST(TileStore, ResultsAreTheSameWithAndWithoutIt) {
  const LoadedExperiment loaded = gemm({"fidelity=tile", "contention.memory=0.7"});
  const std::string alone = result_digest(simulate(loaded));
  TileStore first;
  EXPECT_EQ(result_digest(simulate(loaded, {"", &first})), alone);
  ASSERT_EQ(first.played().size(), 1U);  // a kernel is priced once, its clock and energy from that
  EXPECT_EQ(first.played()[0].kernel, "gemm");
  EXPECT_EQ(first.played()[0].memory, 0.7);
  TileStore second(first.played());
  EXPECT_EQ(result_digest(simulate(loaded, {"", &second})), alone);
  EXPECT_TRUE(second.played().empty());
}

TEST(TileStore, TellsContentionsAndShapesApart) {
  TileStore store;
  for (const char* change :
       {"operator.m=8192", "operator.m=4096", "contention.units=0.5", "contention.memory=0.5"})
    simulate(gemm({"fidelity=tile", change}), {"", &store});
  EXPECT_EQ(store.played().size(), 4U);
}

TEST(Fidelity, AnythingElseIsAnErrorThatNamesWhatThereIs) {
  try {
    gemm({"fidelity=tiles"});
    ADD_FAILURE() << "accepted";
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(
        error.what(),
        testing::AllOf(testing::HasSubstr("expected one of auto, closed, tile, got 'tiles'"),
                       testing::HasSubstr("did you mean 'tile'?")));
  }
}

TEST(Fidelity, TheResultSaysWhichTierItIsFrom) {
  const auto tier = [](const std::string& fidelity) {
    for (const Label& label : simulate(gemm({"fidelity=" + fidelity})).labels)
      if (label.name == "fidelity") return label.value;
    return std::string();
  };
  EXPECT_EQ(tier("tile"), "tile");
  EXPECT_EQ(tier("closed"), "closed");
  EXPECT_EQ(tier("auto"), "closed");  // a long product that is alone
}

TEST(Limits, NoKernelReachesMoreThanItsLimit) {
  for (const char* size : {"16", "512", "8192"}) {
    const LoadedExperiment loaded = gemm({std::string("operator.m=") + size});
    const RunRecord record = simulate(loaded);
    EXPECT_GT(record.find("share_of_limit")->value, 0) << size;
    EXPECT_LE(record.find("share_of_limit")->value, 1 + 1e-9) << size;
  }
}

}  // namespace
}  // namespace orrery::tile_store_test
