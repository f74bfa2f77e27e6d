// SPDX-License-Identifier: Apache-2.0
#include "sim/config/one_only.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/load.h"
#include "sim/machine/system_config.h"

namespace orrery::one_only_test {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& yaml) {
  config::Diagnostics diagnostics;
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  const config::Node node = config::resolve_extends(
      config::parse_yaml(yaml, "box.yaml", diagnostics), "systems", diagnostics, library);
  config::complete(node, SystemConfig::schema().record(), diagnostics, library);
  return diagnostics.render();
}

TEST(OneOnly, UnequalCardsOfASystemAreRefusedWithTheReasonAndThePlace) {
  const std::string said = error_of("extends: rtx_3090_4\naccelerator: [rtx_3090, rtx_3080]\n");
  EXPECT_THAT(said, HasSubstr("box.yaml:2:14"));
  EXPECT_THAT(said, HasSubstr("expected one value of 'accelerator', got a list"));
  EXPECT_THAT(said, HasSubstr("ranks wait for the slowest of them"));
  EXPECT_THAT(said, HasSubstr("serving.fleet"));
}

TEST(OneOnly, CountsByKindAreRefusedWithTheReason) {
  EXPECT_THAT(error_of("extends: rtx_3090_4\naccelerators: [2, 2]\n"),
              HasSubstr("expected one value of 'accelerators', got a list"));
}

TEST(OneOnly, KeysThatWereNotDeclaredHaveNoReason) {
  EXPECT_EQ(Registry<config::OneOnly>::find("wires"), nullptr);
  EXPECT_EQ(error_of("extends: rtx_3090_4\n"), "");
}

}  // namespace
}  // namespace orrery::one_only_test
