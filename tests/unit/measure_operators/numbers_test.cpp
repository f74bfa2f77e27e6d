// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "device/number_formats.h"
#include "device/random.h"

namespace orrery::measure::numbers_test {
namespace {

TEST(Bf16, RoundsToNearestEven) {
  // 7 stored mantissa bits: 1 + 2^-8 lies between 1 and 1 + 2^-7.
  EXPECT_EQ(decode_bf16(encode_bf16(1 + 0x1p-8f)), 1.0f);
  EXPECT_EQ(decode_bf16(encode_bf16(1 + 3 * 0x1p-8f)), 1 + 0x1p-6f);
  EXPECT_EQ(decode_bf16(encode_bf16(1 + 0x1p-8f + 0x1p-20f)), 1 + 0x1p-7f);
  EXPECT_EQ(encode_bf16(-2.0f), 0xC000);
}

TEST(Tf32, KeepsTenMantissaBits) {
  EXPECT_EQ(round_tf32(1 + 0x1p-11f), 1.0f);
  EXPECT_EQ(round_tf32(1 + 3 * 0x1p-11f), 1 + 0x1p-9f);
  EXPECT_EQ(round_tf32(-1 - 0x1p-10f), -1 - 0x1p-10f);
}

TEST(E4m3, KnownCodes) {
  EXPECT_EQ(encode_e4m3(1.0f), 0x38);     // exponent 7 = bias
  EXPECT_EQ(encode_e4m3(448.0f), 0x7E);   // the largest
  EXPECT_EQ(encode_e4m3(-1e6f), 0xFE);    // saturates
  EXPECT_EQ(encode_e4m3(0x1p-6f), 0x08);  // the least normal
  EXPECT_EQ(encode_e4m3(0x1p-9f), 0x01);  // the least of all
  EXPECT_EQ(encode_e4m3(std::numeric_limits<float>::quiet_NaN()) & 0x7F, 0x7F);
}

TEST(E4m3, RoundsToNearestEven) {
  EXPECT_EQ(encode_e4m3(0x1p-10f), 0x00);       // a tie of 0 and 2^-9
  EXPECT_EQ(encode_e4m3(3 * 0x1p-10f), 0x02);   // a tie of 1 and 2 times 2^-9
  EXPECT_EQ(encode_e4m3(15 * 0x1p-10f), 0x08);  // 7.5 times 2^-9 becomes normal
  EXPECT_EQ(encode_e4m3(1.0625f), 0x38);        // a tie of 1 and 1.125
  EXPECT_EQ(encode_e4m3(1.1875f), 0x3A);        // a tie of 1.125 and 1.25
  EXPECT_EQ(encode_e4m3(1.96875f), 0x40);       // carries into the exponent
}

TEST(E4m3, EveryNumberReadsBack) {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7F) == 0x7F) continue;
    const auto value = decode_e4m3(static_cast<std::uint8_t>(code));
    EXPECT_EQ(encode_e4m3(value), code) << value;
  }
  EXPECT_EQ(decode_e4m3(0x7E), 448.0f);
}

TEST(RandomBits, AreSplitMix64) {
  // The first two numbers of the published generator from seed 0.
  EXPECT_EQ(random_bits(0, 0), 0xE220A8397B1DCDAFull);
  EXPECT_EQ(random_bits(0, 1), 0x6E789E6AA1B965F4ull);
  EXPECT_NE(random_bits(1, 0), random_bits(2, 0));
}

TEST(RandomValue, HasMeanZeroAndVarianceOne) {
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double x = random_value(Data::kRandom, 42, static_cast<std::uint64_t>(i));
    EXPECT_LT(std::abs(x), 3.5);
    sum += x;
    squares += x * x;
  }
  // Standard errors: 1 / sqrt(1e5) = 0.003, and about 0.004 for the variance; five of each.
  EXPECT_NEAR(sum / kCount, 0, 0.016);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
}

TEST(RandomValue, SparseDataAreHalfZero) {
  int zeros = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) zeros += random_value(Data::kSparse, 7, i) == 0;
  EXPECT_NEAR(zeros, 5000, 250);  // five standard deviations of 50
  EXPECT_EQ(random_value(Data::kZeros, 7, 3), 0);
}

}  // namespace
}  // namespace orrery::measure::numbers_test
