// SPDX-License-Identifier: Apache-2.0
#include "sim/units/time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace orrery::time_test {
namespace {

using namespace literals;

TEST(Picoseconds, RoundToTheNearest) {
  EXPECT_EQ(to_picoseconds(1_ns), 1000u);
  EXPECT_EQ(to_picoseconds(Seconds(1.4e-12)), 1u);
  EXPECT_EQ(to_picoseconds(Seconds(1.6e-12)), 2u);
  EXPECT_EQ(to_picoseconds(Seconds(0)), 0u);
}

TEST(Picoseconds, AfterABoundAreNeverBeforeIt) {
  EXPECT_EQ(picoseconds_after(Seconds(1.4e-12)), 2u);
  EXPECT_EQ(picoseconds_after(Seconds(1.6e-12)), 2u);
  EXPECT_EQ(picoseconds_after(Seconds(3e-12)), 3u);
  EXPECT_EQ(picoseconds_after(Seconds(0)), 0u);
}

TEST(Picoseconds, RefuseWhatIsNoSimulatedTime) {
  EXPECT_THROW(to_picoseconds(Seconds(-1e-9)), std::domain_error);
  EXPECT_THROW(to_picoseconds(Seconds(std::nan(""))), std::domain_error);
  EXPECT_THROW(to_picoseconds(Seconds(std::numeric_limits<double>::infinity())),
               std::overflow_error);
  // 2^63 ps = 9.22e6 s.
  EXPECT_NO_THROW(to_picoseconds(Seconds(9.2e6)));
  EXPECT_THROW(to_picoseconds(Seconds(9.3e6)), std::overflow_error);
}

TEST(Picoseconds, SumsAreChecked) {
  EXPECT_EQ(checked_add(kMaxTime - 1, 1), kMaxTime);
  EXPECT_THROW(checked_add(kMaxTime, 1), std::overflow_error);
  EXPECT_THROW(checked_add(1, std::numeric_limits<Picoseconds>::max()), std::overflow_error);
}

TEST(Quantities, ProductsAndQuotientsChangeTheDimension) {
  static_assert(std::is_same_v<decltype(1_GB / 1_GBps), Seconds>);
  static_assert(std::is_same_v<decltype(1_GB / 2_GB), double>);
  static_assert(std::is_same_v<decltype(1_W * 1_s), Joules>);
  EXPECT_EQ(3_GB / 1.5_GBps, 2_s);
  EXPECT_EQ(3_GB / 2_GB, 1.5);
  EXPECT_EQ(700_W * 2_s, 1400_J);
  EXPECT_EQ(1.0 / 2_s, Hertz(0.5));
}

TEST(Quantities, CompareAndAddWithinOneDimension) {
  EXPECT_LT(1_GB, 1_GiB);
  EXPECT_EQ(1_ms + 1_us, 1001_us);
  EXPECT_EQ(-(1_s) + 2_s, 1_s);
}

}  // namespace
}  // namespace orrery::time_test
