// SPDX-License-Identifier: Apache-2.0
#include "host/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "host/recurrent_shapes.h"

namespace orrery::measure::recurrent_reference_test {
namespace {

constexpr double kNever = -100, kAlways = 100;  // gates whose sigmoid is 0 or 1

TEST(DeltaReference, AWholeStepWritesTheValueUnderItsKey) {
  // Whatever the state was: k S' = k S + k k (v - k S) = v, for a key of length 1.
  const DeltaToken token{{1, 2, 3, 4}, {3, 4}, {3, 4}, {5, 6}, kNever, kAlways};
  const Recurred result = delta_update(token);
  // The query is the key over sqrt(2).
  EXPECT_NEAR(result.out[0], 5 / std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(result.out[1], 6 / std::sqrt(2.0), 1e-6);
}

TEST(DeltaReference, WithoutAStepStatesOnlyDecay) {
  const Recurred result = delta_update({{1, 2, 3, 4}, {1, 0}, {0, 1}, {5, 6}, 0, kNever});
  // e^-softplus(0) = e^-ln 2.
  EXPECT_NEAR(result.state[2], 1.5, 1e-12);
  EXPECT_NEAR(result.out[0], 0.5 / std::sqrt(2.0), 1e-6);
}

TEST(DeltaReference, WhatAKeyDoesNotPointToStaysAsItIs) {
  const Recurred result = delta_update({{1, 2, 3, 4}, {1, 0}, {0, 7}, {5, 6}, kNever, 0});
  EXPECT_NEAR(result.state[0], 1, 1e-12);
  EXPECT_NEAR(result.state[2], 3 + 0.5 * (5 - 3), 1e-6);  // sigmoid(0) = 1/2 of the way
}

TEST(MambaReference, AgreesWithAStepByHand) {
  // softplus(ln(e - 1)) = 1: S' = S / e + x B, y = S' C + x.
  const double gate = std::log(std::exp(1.0) - 1);
  const Recurred result = mamba_update({{2, 4}, {3}, {5, 7}, {1, -1}, gate});
  EXPECT_NEAR(result.state[0], 2 / std::exp(1.0) + 15, 1e-12);
  EXPECT_NEAR(result.state[1], 4 / std::exp(1.0) + 21, 1e-12);
  EXPECT_NEAR(result.out[0], -2 / std::exp(1.0) - 6 + 3, 1e-12);
}

TEST(ConvolutionReference, IsTheSiluOfTheWeightedSum) {
  EXPECT_NEAR(causal_convolution({1, 2}, {3, -1}), 1 / (1 + std::exp(-1.0)), 1e-12);
}

TEST(LargestReference, IsInFallingOrder) {
  EXPECT_EQ(largest({3, 1, 4, 1, 5}, 3), (std::vector<float>{5, 4, 3}));
  EXPECT_EQ(largest({3, 1}, 2), (std::vector<float>{3, 1}));
}

TEST(RecurrentShapes, CountTheBytesOfAStateOnceEachWay) {
  RecurrentShape shape;
  shape.batch = 2;
  shape.heads = 4;
  shape.groups = 2;
  shape.key_dim = shape.value_dim = 128;
  // 8 states of 128 x 128 fp32, read and written; 2 keys and queries of 2 sequences, 8 values and
  // results, 2 gates a head.
  EXPECT_EQ(shape.bytes(), 2 * 8 * 128 * 128 * 4 + 2 * (2 * 4 * 128 + 2 * 8 * 128 + 2 * 8));
}

TEST(RecurrentShapes, AreWhatTheKernelsTake) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  for (const Depth depth : {Depth::kQuick, Depth::kFull}) {
    std::set<int> batches;
    for (const RecurrentShape& shape : recurrent_shapes(depth, kMost)) {
      batches.insert(shape.batch);
      EXPECT_LE(shape.bytes(), kMost);
      EXPECT_EQ(shape.channels % 8, 0);
      if (shape.channels > 0) continue;
      EXPECT_EQ(shape.heads % shape.groups, 0);
      EXPECT_EQ(shape.value_dim % 32, 0);
      EXPECT_EQ(shape.key_dim % 128, 0);
    }
    EXPECT_EQ(*batches.begin(), 1);
    EXPECT_EQ(*batches.rbegin(), 1024);
    for (const SelectionShape& shape : selection_shapes(depth, kMost)) {
      EXPECT_EQ(shape.scores % 4, 0);
      EXPECT_LE(shape.chosen, shape.scores);
    }
  }
}

}  // namespace
}  // namespace orrery::measure::recurrent_reference_test
