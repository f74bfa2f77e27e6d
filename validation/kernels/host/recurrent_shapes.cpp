// SPDX-License-Identifier: Apache-2.0
#include "host/recurrent_shapes.h"

#include <numeric>

#include "host/sweeps.h"

namespace orrery::measure {
namespace {

constexpr int kKeyDim = 128, kHeadDim = 64, kTapsOfAll = 4;

struct Heads {
  int heads, groups, key_dim;
};
/// Qwen3.5-397B (64 heads of values, 16 of keys) and Qwen3-Next (32, 16) on 1 to 8 GPUs.
constexpr Heads kDeltaHeads[] = {{64, 16, kKeyDim}, {32, 16, kKeyDim}, {32, 8, kKeyDim},
                                 {16, 8, kKeyDim},  {16, 4, kKeyDim},  {8, 4, kKeyDim},
                                 {8, 2, kKeyDim},   {4, 2, kKeyDim}};
/// Nemotron 3 Nano (64 heads, 8 groups) and Granite 4.0 H (128 heads, 1 group) on 1 to 8 GPUs;
/// Nemotron-H 56B (256 heads, 8 groups, states of 256) on 8.
constexpr Heads kMambaHeads[] = {{64, 8, 128}, {32, 4, 128}, {16, 2, 128}, {8, 1, 128},
                                 {64, 1, 128}, {32, 1, 128}, {16, 1, 128}, {32, 1, 256}};
/// Their queries, keys and values, or x, B and C.
constexpr int kChannels[] = {1024, 2048, 4096, 6144, 8192, 8448, 10240, 12288};

std::vector<int> batches(Depth depth) {
  if (depth == Depth::kQuick) return {1, 16, 128, 1024};
  return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
}

void add(std::vector<RecurrentShape>& shapes, const RecurrentShape& shape,
         std::int64_t most_bytes) {
  if (shape.bytes() <= most_bytes) shapes.push_back(shape);
}

void add_updates(std::vector<RecurrentShape>& shapes, int batch, std::int64_t most_bytes) {
  RecurrentShape shape;
  shape.batch = batch;
  for (const Format format : {Format::kF32, Format::kBf16}) {
    shape.state = format;
    for (const Heads& heads : kDeltaHeads) {
      shape.kernel = RecurrentKernel::kDeltaUpdate;
      shape.heads = heads.heads;
      shape.groups = heads.groups;
      shape.key_dim = shape.value_dim = heads.key_dim;
      add(shapes, shape, most_bytes);
    }
    for (const Heads& heads : kMambaHeads) {
      shape.kernel = RecurrentKernel::kMambaUpdate;
      shape.heads = heads.heads;
      shape.groups = heads.groups;
      shape.key_dim = heads.key_dim;
      shape.value_dim = kHeadDim;
      add(shapes, shape, most_bytes);
    }
  }
}

void add_convolutions(std::vector<RecurrentShape>& shapes, int batch, std::int64_t most_bytes) {
  RecurrentShape shape;
  shape.state = Format::kBf16;
  shape.batch = batch;
  shape.taps = kTapsOfAll;
  for (const int channels : kChannels) {
    shape.channels = channels;
    shape.kernel = RecurrentKernel::kConvolutionUpdate;
    shape.tokens = 1;
    add(shapes, shape, most_bytes);
    shape.kernel = RecurrentKernel::kConvolution;
    for (const int tokens : {100, 512, 2048, 8192}) {
      shape.tokens = tokens;
      if (batch <= 16) add(shapes, shape, most_bytes);
    }
  }
}

}  // namespace

const char* name_of(RecurrentKernel kernel) {
  constexpr const char* kNames[] = {"delta_update", "mamba_update", "causal_convolution",
                                    "causal_convolution_update"};
  return kNames[static_cast<int>(kernel)];
}

std::int64_t RecurrentShape::states() const {
  if (kernel == RecurrentKernel::kConvolution) return 0;
  if (kernel == RecurrentKernel::kConvolutionUpdate)
    return std::int64_t{batch} * (taps - 1) * channels;
  return std::int64_t{batch} * heads * key_dim * value_dim;
}

std::vector<std::int64_t> RecurrentShape::inputs() const {
  const std::int64_t sequences = batch;
  if (channels > 0) return {sequences * tokens * channels};
  const std::int64_t keys = sequences * groups * key_dim, values = sequences * heads * value_dim,
                     gates = sequences * heads;
  if (kernel == RecurrentKernel::kMambaUpdate) return {values, keys, keys, gates};  // x, B, C, step
  return {keys, keys, values, gates, gates};  // query, key, value, decay, step
}

std::int64_t RecurrentShape::outputs() const {
  return channels > 0 ? std::int64_t{batch} * tokens * channels
                      : std::int64_t{batch} * heads * value_dim;
}

std::int64_t RecurrentShape::bytes() const {
  const std::vector<std::int64_t> in = inputs();
  return 2 * states() * static_cast<std::int64_t>(bytes_of(state)) +
         2 * (std::accumulate(in.begin(), in.end(), std::int64_t{0}) + outputs());
}

std::vector<RecurrentShape> recurrent_shapes(Depth depth, std::int64_t most_bytes) {
  std::vector<RecurrentShape> shapes;
  for (const int batch : batches(depth)) {
    add_updates(shapes, batch, most_bytes);
    add_convolutions(shapes, batch, most_bytes);
  }
  shuffle(shapes, 191);
  return shapes;
}

std::vector<SelectionShape> selection_shapes(Depth depth, std::int64_t most_bytes) {
  std::vector<SelectionShape> shapes;
  const std::vector<int> rows =
      depth == Depth::kQuick ? std::vector<int>{1, 16, 128, 2048}
                             : std::vector<int>{1, 4, 16, 64, 128, 132, 264, 512, 2048, 8192};
  for (const int count : rows) {
    for (int scores = 4096; scores <= 131072; scores *= 2) {
      for (const int size : {scores, scores + scores / 2}) {
        if (size <= 131072 && std::int64_t{4} * count * size <= most_bytes)
          shapes.push_back({count, size});
      }
    }
  }
  shuffle(shapes, 193);
  return shapes;
}

}  // namespace orrery::measure
