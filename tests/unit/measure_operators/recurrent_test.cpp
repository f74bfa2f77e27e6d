// SPDX-License-Identifier: Apache-2.0
#include "device/recurrent.cuh"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "device/convolution.cuh"
#include "host/recurrent_shapes.h"
#include "host/reference.h"

// The kernels' own code, compiled for the host: emulated/device/lanes.cuh takes the place of the
// hardware.
namespace orrery::measure::recurrent_test {
namespace {

constexpr std::uint16_t kNan = 0xFFFF;

/// `count` numbers as the device would hold them.
std::vector<std::uint16_t> random_bf16(std::uint64_t seed, std::int64_t count) {
  std::vector<std::uint16_t> data;
  data.reserve(static_cast<std::size_t>(count));
  const RandomBuffer from{Format::kBf16, Data::kRandom, seed};
  for (std::int64_t i = 0; i < count; ++i)
    data.push_back(encode_bf16(static_cast<float>(from.at(i))));
  return data;
}
template <class State>
std::vector<State> random_states(std::uint64_t seed, std::int64_t count) {
  if constexpr (std::is_same_v<State, float>) {
    std::vector<float> data;
    data.reserve(static_cast<std::size_t>(count));
    const RandomBuffer from{Format::kF32, Data::kRandom, seed};
    for (std::int64_t i = 0; i < count; ++i) data.push_back(static_cast<float>(from.at(i)));
    return data;
  } else {
    return random_bf16(seed, count);
  }
}

double value_of(float value) { return value; }
double value_of(std::uint16_t code) { return decode_bf16(code); }

template <class T>
std::vector<double> values(const std::vector<T>& data, std::int64_t first, std::int64_t count) {
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = first; i < first + count; ++i)
    result.push_back(value_of(data.at(static_cast<std::size_t>(i))));
  return result;
}

template <class T>
void add_all(Comparison& comparison, const std::vector<T>& got, std::int64_t first,
             const std::vector<double>& expected) {
  const std::vector<double> part = values(got, first, static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) comparison.add(part[i], expected[i]);
}

template <class Kernel>
void launch(unsigned blocks, int threads, const Kernel& kernel) {
  EmulatedLanes lanes(threads);
  for (unsigned block = 0; block < blocks; ++block) lanes.run(block, kernel);
}

/// Rounding of states: 2^-9 in bf16; in fp32 what sums of 128 products and expf leave.
template <class State>
constexpr double kTolerance = std::is_same_v<State, float> ? 1e-5 : 4e-3;

template <class State>
void expect_delta(int batch, int heads, int key_heads, int value_dim) {
  const std::int64_t all = std::int64_t{batch} * heads, keys = std::int64_t{batch} * key_heads;
  const auto query = random_bf16(1, keys * kDeltaKeys), key = random_bf16(2, keys * kDeltaKeys),
             value = random_bf16(3, all * value_dim), decay = random_bf16(4, all),
             step = random_bf16(5, all);
  const auto before = random_states<State>(6, all * kDeltaKeys * value_dim);
  auto state = before;
  std::vector<std::uint16_t> out(static_cast<std::size_t>(all * value_dim), kNan);
  const DeltaOperands<State> operands{query.data(), key.data(),   value.data(), decay.data(),
                                      step.data(),  state.data(), out.data(),   heads,
                                      key_heads,    value_dim};
  launch(static_cast<unsigned>(all * value_dim / kDeltaColumns), kRecurrentThreads,
         [&] { delta_update_kernel(operands); });
  Comparison states, outputs;
  for (std::int64_t head = 0; head < all; ++head) {
    const std::int64_t shared = head / heads * key_heads + head % heads / (heads / key_heads);
    const std::int64_t elements = std::int64_t{kDeltaKeys} * value_dim;
    const DeltaToken token{values(before, head * elements, elements),
                           values(query, shared * kDeltaKeys, kDeltaKeys),
                           values(key, shared * kDeltaKeys, kDeltaKeys),
                           values(value, head * value_dim, value_dim),
                           values(decay, head, 1)[0],
                           values(step, head, 1)[0]};
    const Recurred expected = delta_update(token);
    add_all(states, state, head * elements, expected.state);
    add_all(outputs, out, head * value_dim, expected.out);
  }
  EXPECT_NO_THROW(states.require(kTolerance<State>, "states"));
  EXPECT_NO_THROW(outputs.require(4e-3, "outputs"));
}

TEST(DeltaUpdate, OfFloatStatesIsTheReferenceWhereHeadsShareKeys) {
  expect_delta<float>(2, 2, 1, 64);
}

TEST(DeltaUpdate, OfHalfStatesIsTheReference) { expect_delta<std::uint16_t>(1, 2, 2, 32); }

template <class State, int kParts>
void expect_mamba(int batch, int heads, int groups, int head_dim) {
  constexpr int kColumns = kMambaColumns * kParts;
  const std::int64_t all = std::int64_t{batch} * heads, shared = std::int64_t{batch} * groups;
  const auto x = random_bf16(1, all * head_dim), b = random_bf16(2, shared * kColumns),
             c = random_bf16(3, shared * kColumns), step = random_bf16(4, all);
  const auto before = random_states<State>(6, all * head_dim * kColumns);
  auto state = before;
  std::vector<std::uint16_t> out(static_cast<std::size_t>(all * head_dim), kNan);
  const MambaOperands<State> operands{x.data(),   b.data(), c.data(), step.data(), state.data(),
                                      out.data(), heads,    groups,   head_dim};
  launch(static_cast<unsigned>(all * head_dim / (kMambaRows * kRecurrentWarps)), kRecurrentThreads,
         [&] { mamba_update_kernel<State, kParts>(operands); });
  Comparison states, outputs;
  for (std::int64_t head = 0; head < all; ++head) {
    const std::int64_t group = head / heads * groups + head % heads / (heads / groups);
    const std::int64_t elements = std::int64_t{kColumns} * head_dim;
    const MambaToken token{values(before, head * elements, elements),
                           values(x, head * head_dim, head_dim),
                           values(b, group * kColumns, kColumns),
                           values(c, group * kColumns, kColumns), values(step, head, 1)[0]};
    const Recurred expected = mamba_update(token);
    add_all(states, state, head * elements, expected.state);
    add_all(outputs, out, head * head_dim, expected.out);
  }
  EXPECT_NO_THROW(states.require(kTolerance<State>, "states"));
  EXPECT_NO_THROW(outputs.require(4e-3, "outputs"));
}

TEST(MambaUpdate, OfFloatStatesIsTheReferenceWhereHeadsShareGroups) {
  expect_mamba<float, 1>(2, 2, 1, 64);
}

TEST(MambaUpdate, OfHalfStatesOf256ColumnsIsTheReference) {
  expect_mamba<std::uint16_t, 2>(1, 2, 2, 32);
}

TEST(CausalConvolution, OfSequencesSeesNoTokenBehindItsOwnNorOfAnotherSequence) {
  // 45 tokens are no multiple of a block's, 264 channels neither.
  constexpr int kBatch = 2, kTokens = 45, kChannels = 264;
  const std::int64_t count = std::int64_t{kBatch} * kTokens * kChannels;
  const auto in = random_bf16(1, count), weight = random_bf16(2, kChannels * kTaps);
  std::vector<std::uint16_t> out(static_cast<std::size_t>(count), kNan);
  launch(kBatch * 2 * 2, kRecurrentThreads, [&] {
    convolution_kernel(ConvolutionOperands{in.data(), weight.data(), out.data(), nullptr, kBatch,
                                           kTokens, kChannels});
  });
  Comparison comparison;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t channel = i % kChannels, token = i / kChannels % kTokens;
    std::vector<double> inputs(kTaps, 0.0);
    for (std::int64_t tap = 0; tap < kTaps; ++tap) {
      const std::int64_t back = kTaps - 1 - tap;
      if (token >= back)
        inputs[static_cast<std::size_t>(tap)] = values(in, i - back * kChannels, 1)[0];
    }
    add_all(comparison, out, i,
            {causal_convolution(inputs, values(weight, channel * kTaps, kTaps))});
  }
  EXPECT_NO_THROW(comparison.require(4e-3, "results"));
}

TEST(CausalConvolution, OfANewTokenReadsItsWindowAndMovesItOn) {
  constexpr int kBatch = 3, kChannels = 520,
                kKept = kTaps - 1;  // 195 vectors: the last block is cut
  const auto in = random_bf16(1, kBatch * kChannels), weight = random_bf16(2, kChannels * kTaps);
  const auto before = random_bf16(3, kBatch * kKept * kChannels);
  auto window = before;
  std::vector<std::uint16_t> out(in.size(), kNan);
  launch(2, kRecurrentThreads, [&] {
    convolution_update_kernel(ConvolutionOperands{in.data(), weight.data(), out.data(),
                                                  window.data(), kBatch, 1, kChannels});
  });
  Comparison comparison;
  for (std::int64_t i = 0; i < kBatch * kChannels; ++i) {
    const std::int64_t sequence = i / kChannels, channel = i % kChannels;
    std::vector<double> inputs;
    for (std::int64_t kept = 0; kept < kKept; ++kept)
      inputs.push_back(values(before, (sequence * kKept + kept) * kChannels + channel, 1)[0]);
    inputs.push_back(values(in, i, 1)[0]);
    add_all(comparison, out, i,
            {causal_convolution(inputs, values(weight, channel * kTaps, kTaps))});
    for (std::int64_t kept = 0; kept < kKept; ++kept)
      EXPECT_EQ(values(window, (sequence * kKept + kept) * kChannels + channel, 1)[0],
                inputs[static_cast<std::size_t>(kept + 1)]);
  }
  EXPECT_NO_THROW(comparison.require(4e-3, "results"));
}

}  // namespace
}  // namespace orrery::measure::recurrent_test
