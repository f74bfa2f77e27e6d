// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/measured_ratios.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace orrery::measured_ratios_test {
namespace {

MeasuredRatio product(std::int64_t m, std::int64_t n, std::int64_t k, double ratio) {
  MeasuredRatio point;
  point.shape.kind = KernelClass::kGemm;
  point.shape.precision = Precision::kFp8;
  point.shape.m = m;
  point.shape.n = n;
  point.shape.k = k;
  point.ratio = ratio;
  return point;
}

std::vector<MeasuredRatio> ratios() {
  std::vector<MeasuredRatio> all = {product(1, 256, 128, 1.0131), product(2, 256, 128, 0.99962),
                                    product(1, 512, 128, 1.25), product(64, 256, 4096, 0.8)};
  MeasuredRatio attention = product(1024, 1024, 128, 1.1);
  attention.shape.kind = KernelClass::kAttentionPrefill;
  attention.shape.batch = 64;
  attention.shape.attention = {2, 8, 128, true};
  all.push_back(attention);
  return all;
}

/// What the text of a calibration says that is wrong with it.
std::string fault(const std::string& text) {
  config::Diagnostics diagnostics;
  parse_ratios(text, {"device.yaml", 20, 7}, Precision::kBf16, diagnostics);
  return diagnostics.render();
}

TEST(MeasuredRatios, AreWrittenOnceForWhatPointsShare) {
  std::vector<MeasuredRatio> all = ratios();
  arrange(all);
  EXPECT_EQ(write_ratios(all),
            "gemm n k m\n"
            "256 128 1 1013, 2 1000, 4096 64 800, 512 128 1 1250\n"
            "attention_prefill batch m n k sequences kv_heads window wide_queries\n"
            "64 1024 1024 128 2 8 128 1 1100\n");
}

TEST(MeasuredRatios, ReadBackAsTheyWereWritten) {
  std::vector<MeasuredRatio> all = ratios();
  arrange(all);
  config::Diagnostics diagnostics;
  const auto read =
      parse_ratios(write_ratios(all), {"device.yaml", 1, 1}, Precision::kFp8, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << diagnostics.render();
  ASSERT_EQ(read.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    Kernel expected = all[i].shape;
    EXPECT_EQ(read[i].shape, expected);
    EXPECT_EQ(read[i].ratio, all[i].ratio);
  }
}

TEST(MeasuredRatios, OfManyKernelsAreTheSameTextInAnyOrder) {
  std::vector<MeasuredRatio> all;
  for (std::int64_t m = 1; m < 3000; m = m * 5 / 4 + 1)
    for (std::int64_t n = 64; n < 9000; n *= 2)
      all.push_back(product(m, n, 64 + n % 7 * 64, 0.9 + 1e-5 * static_cast<double>(m)));
  std::vector<MeasuredRatio> reversed(all.rbegin(), all.rend());
  arrange(all);
  arrange(reversed);
  const std::string text = write_ratios(all);
  EXPECT_EQ(text, write_ratios(reversed));
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 101U);
    begin = end + 1;
  }
}

TEST(MeasuredRatios, RefuseABrokenLineWhereItStands) {
  EXPECT_EQ(fault("gemm n k m\n256 128 1 1013, 2 1000\n"), "");
  EXPECT_THAT(fault("gemm n k m\n256 128 1 1013, 2 x\n"),
              testing::StartsWith("device.yaml:21:23: error: expected whole"));
  EXPECT_THAT(fault("gemm n k m\n256 128 1 1.013\n"),
              testing::StartsWith("device.yaml:21:7: error: expected whole"));
  EXPECT_THAT(fault("gemm n k m\n256 128 1 0\n"),
              testing::StartsWith("device.yaml:21:7: error: expected whole"));
  EXPECT_THAT(fault("gemm n k m\n256 128 -1 990\n"),
              testing::StartsWith("device.yaml:21:7: error: expected whole"));
  EXPECT_THAT(fault("gemm n k m\n1 1013\n"),
              testing::StartsWith("device.yaml:21:7: error: nothing to take"));
  EXPECT_THAT(fault("256 128 1 1013\n"),
              testing::StartsWith("device.yaml:20:7: error: more numbers than the 0"));
  EXPECT_THAT(fault("gemm n k m\n1 2 3 4 5\n"),
              testing::StartsWith("device.yaml:21:7: error: more numbers than the 3"));
  EXPECT_THAT(fault("gem n k m\n1 2 3 4\n"),
              testing::StartsWith("device.yaml:20:7: error: expected numbers or"));
  EXPECT_THAT(fault("gemm n q m\n1 2 4\n"),
              testing::StartsWith("device.yaml:20:14: error: no dimension"));
  EXPECT_THAT(fault("gemm n k m\n1 2 3 4,, 5 6\n"),
              testing::StartsWith("device.yaml:21:15: error: expected whole"));
}

}  // namespace
}  // namespace orrery::measured_ratios_test
