// SPDX-License-Identifier: Apache-2.0
#include "sim/events/structure.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace orrery {
namespace {

const std::vector<std::string> kMachine = {"system0/node0/accelerator0",
                                           "system0/node0/accelerator1",
                                           "system0/node1/accelerator0", "system0/switch0"};

// Elaborated before any test runs time: modules cannot be added later.
Structure& structure() { return Structure::elaborate(kMachine); }
[[maybe_unused]] const Structure& kElaborated = structure();

TEST(Structure, NamesBecomeNestedSystemCModules) {
  const Component& accelerator = structure().at("system0/node1/accelerator0");
  EXPECT_STREQ(accelerator.name(), "system0.node1.accelerator0");
  EXPECT_EQ(sc_core::sc_find_object("system0.node1.accelerator0"), &accelerator);
  EXPECT_EQ(accelerator.get_parent_object(), &structure().at("system0/node1"));
  EXPECT_EQ(structure().roots().size(), 1U);
  EXPECT_EQ(structure().at("system0").parts().size(), 3U);  // two nodes and a switch
}

TEST(Structure, TheSameMachineStandsAgain) {
  EXPECT_EQ(&Structure::elaborate(kMachine), &structure());
}

TEST(Structure, AnotherMachineInOneProcessIsAnError) {
  structure();
  EXPECT_THROW(Structure::elaborate({"system0/node0"}), std::logic_error);
}

}  // namespace
}  // namespace orrery
