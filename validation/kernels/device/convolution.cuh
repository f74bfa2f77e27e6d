// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/recurrent.cuh"

/// Causal convolutions of four taps with SiLU, channel by channel, as they stand in front of
/// recurrences; all in bf16, 8 channels (16 bytes) a thread and access.
namespace orrery::measure {

constexpr int kTaps = 4;
constexpr int kConvolutionRun = 8;  ///< tokens of a thread
constexpr int kConvolutionVector = 8;
constexpr int kConvolutionChannels = 32 * kConvolutionVector;          ///< channels of a block
constexpr int kConvolutionTokens = kRecurrentWarps * kConvolutionRun;  ///< tokens of a block

/// in and out [batch, tokens, channels]; weight [channels, 4], the last tap is the token itself;
/// window [batch, 3, channels], the oldest first. Channels are a multiple of 8.
struct ConvolutionOperands {
  const std::uint16_t *in = nullptr, *weight = nullptr;
  std::uint16_t *out = nullptr, *window = nullptr;
  int batch = 0, tokens = 0, channels = 0;
};

/// The taps of 8 channels.
struct TapWeights {
  float of[kTaps][kConvolutionVector];

  __device__ void load(const std::uint16_t* weight) {
#pragma unroll
    for (int j = 0; j < kTaps; ++j) {  // words of two channels at a time
      const Words4 words = load_words4(weight + j * kConvolutionVector);
#pragma unroll
      for (int i = 0; i < kConvolutionVector; ++i) {
        const std::uint32_t word = words.w[i / 2];
        of[i % kTaps][2 * j + i / kTaps] = i % 2 == 0 ? low_bf16(word) : high_bf16(word);
      }
    }
  }

  /// The result at the last of four inputs.
  __device__ Words4 result(const Words4& oldest, const Words4& second, const Words4& third,
                           const Words4& now) const {
    Words4 out{};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float low = of[0][2 * i] * low_bf16(oldest.w[i]) +
                        of[1][2 * i] * low_bf16(second.w[i]) + of[2][2 * i] * low_bf16(third.w[i]) +
                        of[3][2 * i] * low_bf16(now.w[i]);
      const float high =
          of[0][2 * i + 1] * high_bf16(oldest.w[i]) + of[1][2 * i + 1] * high_bf16(second.w[i]) +
          of[2][2 * i + 1] * high_bf16(third.w[i]) + of[3][2 * i + 1] * high_bf16(now.w[i]);
      out.w[i] = bf16_pair(silu(low), silu(high));
    }
    return out;
  }
};

/// Whole sequences. A thread loads its run of tokens and the three before it, then computes.
template <int kUnused = 0>
__global__ void __launch_bounds__(kRecurrentThreads)
    convolution_kernel(const ConvolutionOperands o) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const auto across =
      static_cast<unsigned>((o.channels + kConvolutionChannels - 1) / kConvolutionChannels);
  const auto along =
      static_cast<unsigned>((o.tokens + kConvolutionTokens - 1) / kConvolutionTokens);
  const int channel =
      static_cast<int>(blockIdx.x % across) * kConvolutionChannels + kConvolutionVector * lane;
  const int token =
      static_cast<int>(blockIdx.x / across % along) * kConvolutionTokens + kConvolutionRun * warp;
  const std::int64_t sequence = blockIdx.x / across / along;
  if (channel >= o.channels || token >= o.tokens) return;
  const std::int64_t start = sequence * o.tokens * o.channels + channel;
  Words4 in[kConvolutionRun + kTaps - 1];
#pragma unroll
  for (int i = 0; i < kConvolutionRun + kTaps - 1; ++i) {
    const int from = token - (kTaps - 1) + i;
    in[i] = Words4{};
    if (from >= 0 && from < o.tokens)
      in[i] = load_words4(o.in + start + std::int64_t{from} * o.channels);
  }
  TapWeights weights;
  weights.load(o.weight + std::int64_t{channel} * kTaps);
#pragma unroll
  for (int i = 0; i < kConvolutionRun; ++i) {
    if (token + i < o.tokens)
      store_words4(o.out + start + std::int64_t{token + i} * o.channels,
                   weights.result(in[i], in[i + 1], in[i + 2], in[i + 3]));
  }
}

/// One new token of each sequence: its window is read, moved on by one and written.
template <int kUnused = 0>
__global__ void __launch_bounds__(kRecurrentThreads)
    convolution_update_kernel(const ConvolutionOperands o) {
  const int vectors = o.channels / kConvolutionVector;
  const std::int64_t index = std::int64_t{blockIdx.x} * kRecurrentThreads + threadIdx.x;
  const std::int64_t sequence = index / vectors;
  if (sequence >= o.batch) return;
  const int channel = static_cast<int>(index % vectors) * kConvolutionVector;
  std::uint16_t* const window = o.window + sequence * (kTaps - 1) * o.channels + channel;
  const std::int64_t at = sequence * o.channels + channel;
  const Words4 oldest = load_words4(window), second = load_words4(window + o.channels),
               third = load_words4(window + 2 * std::int64_t{o.channels}),
               now = load_words4(o.in + at);
  TapWeights weights;
  weights.load(o.weight + std::int64_t{channel} * kTaps);
  store_words4(o.out + at, weights.result(oldest, second, third, now));
  store_words4(window, second);
  store_words4(window + o.channels, third);
  store_words4(window + 2 * std::int64_t{o.channels}, now);
}

}  // namespace orrery::measure
