// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "device/convolution.cuh"
#include "device/random.cuh"
#include "device/recurrent.cuh"
#include "host/measurement.h"
#include "host/recurrent_shapes.h"
#include "host/reference.h"

namespace orrery::measure::recurrent {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{2} << 30;   ///< bytes of one shape
constexpr std::int64_t kStateBytes = std::int64_t{2} << 30;  ///< states of all copies
constexpr std::int64_t kInputs = std::int64_t{1} << 29;      ///< elements of inputs, and of results
constexpr std::int64_t kAligned = 8;                         ///< elements of a 16-byte access

std::int64_t aligned(std::int64_t elements) {
  return (elements + kAligned - 1) / kAligned * kAligned;
}

unsigned blocks_of(std::int64_t work, std::int64_t of_a_block) {
  return static_cast<unsigned>((work + of_a_block - 1) / of_a_block);
}

bool convolves(const RecurrentShape& shape) { return shape.channels > 0; }

std::string label_of(const RecurrentShape& shape) {
  return std::string(name_of(shape.kernel)) + " of " + std::to_string(shape.batch) + " x " +
         std::to_string(shape.tokens) + " tokens, " + std::to_string(shape.heads) + " heads, " +
         std::to_string(shape.channels) + " channels, " + name_of(shape.state);
}

/// Where the inputs of a copy begin, in elements of the buffer of inputs.
std::vector<std::int64_t> places_of(const RecurrentShape& shape, int copy) {
  std::int64_t one = 0;
  for (const std::int64_t elements : shape.inputs()) one += aligned(elements);
  std::vector<std::int64_t> places;
  std::int64_t at = copy * one;
  for (const std::int64_t elements : shape.inputs()) {
    places.push_back(at);
    at += aligned(elements);
  }
  places.push_back(at);  // where the next copy begins
  return places;
}

/// Decoded elements of a device buffer.
std::vector<double> copied(Format format, const void* buffer, std::int64_t first,
                           std::int64_t count) {
  const auto size = static_cast<std::int64_t>(bytes_of(format));
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count * size));
  ORRERY_CUDA(cudaMemcpy(bytes.data(), static_cast<const std::uint8_t*>(buffer) + first * size,
                         bytes.size(), cudaMemcpyDeviceToHost));
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    if (format == Format::kBf16) {
      values.push_back(
          decode_bf16(static_cast<std::uint16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8)));
    } else {
      float value = 0;
      std::memcpy(&value, bytes.data() + 4 * i, sizeof(value));
      values.push_back(value);
    }
  }
  return values;
}

std::vector<double> expected_values(const RandomBuffer& from, std::int64_t first,
                                    std::int64_t count) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = first; i < first + count; ++i) values.push_back(from.at(i));
  return values;
}

void add_all(Comparison& comparison, const std::vector<double>& got,
             const std::vector<double>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) comparison.add(got[i], expected[i]);
}

class RecurrentBench {
 public:
  explicit RecurrentBench(const Context& context)
      : context_(context),
        state_(static_cast<std::size_t>(kStateBytes)),
        in_(static_cast<std::size_t>(kInputs) * 2),
        out_(static_cast<std::size_t>(kInputs) * 2),
        weight_(std::size_t{65536} * kTaps * 2) {
    fill(Format::kBf16, in_.as(), static_cast<std::size_t>(kInputs), context.seed);
    fill(Format::kBf16, weight_.as(), weight_.bytes() / 2, context.seed + 1);
  }

  bool fits(const RecurrentShape& shape) const {
    return state_bytes(shape) <= kStateBytes && places_of(shape, 0).back() <= kInputs &&
           shape.outputs() <= kInputs;
  }

  /// Fresh states, one launch, and heads (or results of a convolution) here and there.
  void check(const RecurrentShape& shape) const {
    fill(shape.state, state_.as(), static_cast<std::size_t>(shape.states() * copies(shape)),
         context_.seed + 2);
    ORRERY_CUDA(cudaMemset(out_.as(), 0xFF, static_cast<std::size_t>(shape.outputs()) * 2));
    launch(nullptr, shape, 0);
    ORRERY_CUDA(cudaDeviceSynchronize());
    Comparison states, outputs;
    if (convolves(shape)) {
      for (const Place& place : sample_places(std::int64_t{shape.batch} * shape.tokens,
                                              shape.channels, 48, context_.seed))
        compare_result(shape, place, states, outputs);
    } else {
      for (const Place& place : sample_places(shape.batch, shape.heads, 6, context_.seed))
        compare_head(shape, place.row * shape.heads + place.column, states, outputs);
    }
    // Results round to bf16 (2^-9); sums of 128 products in fp32 are far below that.
    outputs.require(0.01, label_of(shape) + ", results");
    if (shape.states() > 0)
      states.require(shape.state == Format::kF32 ? 1e-4 : 0.01, label_of(shape) + ", states");
  }

  void measure(Table& table, const RecurrentShape& shape) const {
    TimingOptions options;
    options.copies = copies(shape);
    const Timing timing = time_graph(
        context_, [&](cudaStream_t stream, int i) { launch(stream, shape, i % options.copies); },
        options);
    std::vector<Cell> cells = with_timing(
        {context_.system, std::string(name_of(shape.kernel)), std::string("bf16"),
         std::string(name_of(shape.state)), std::int64_t{shape.batch}, std::int64_t{shape.tokens},
         std::int64_t{shape.heads}, std::int64_t{shape.groups}, std::int64_t{shape.key_dim},
         std::int64_t{shape.value_dim}, std::int64_t{shape.channels}, std::int64_t{shape.taps}},
        timing);
    const std::vector<Cell> more = {std::string("orrery"),
                                    static_cast<double>(shape.bytes()) / (timing.us.median * 1e-6)};
    cells.insert(cells.end(), more.begin(), more.end());
    table.add_row(std::move(cells));
  }

 private:
  static std::int64_t state_bytes(const RecurrentShape& shape) {
    return shape.states() * static_cast<std::int64_t>(bytes_of(shape.state));
  }

  int copies(const RecurrentShape& shape) const {
    std::int64_t most = std::min(
        {kInputs / places_of(shape, 0).back(), kInputs / shape.outputs(), std::int64_t{4096}});
    if (shape.states() > 0) most = std::min(most, kStateBytes / state_bytes(shape));
    const int cold = rotation(context_.device, static_cast<std::size_t>(shape.bytes()));
    return std::clamp(cold, 1, static_cast<int>(most));
  }

  /// Copy 0 starts at the buffers' start, where the reference looks.
  void launch(cudaStream_t stream, const RecurrentShape& shape, int copy) const {
    if (convolves(shape)) {
      launch_convolution(stream, shape, copy);
    } else if (shape.state == Format::kF32) {
      launch_update<float>(stream, shape, copy);
    } else {
      launch_update<std::uint16_t>(stream, shape, copy);
    }
    ORRERY_CUDA(cudaGetLastError());
  }

  void launch_convolution(cudaStream_t stream, const RecurrentShape& shape, int copy) const {
    const ConvolutionOperands operands{in_.as<std::uint16_t>() + places_of(shape, copy)[0],
                                       weight_.as<std::uint16_t>(),
                                       out_.as<std::uint16_t>() + copy * shape.outputs(),
                                       state_.as<std::uint16_t>() + copy * shape.states(),
                                       shape.batch,
                                       shape.tokens,
                                       shape.channels};
    if (shape.kernel == RecurrentKernel::kConvolutionUpdate) {
      const std::int64_t vectors = std::int64_t{shape.batch} * shape.channels / kConvolutionVector;
      convolution_update_kernel<>
          <<<blocks_of(vectors, kRecurrentThreads), kRecurrentThreads, 0, stream>>>(operands);
      return;
    }
    const unsigned blocks = static_cast<unsigned>(shape.batch) *
                            blocks_of(shape.channels, kConvolutionChannels) *
                            blocks_of(shape.tokens, kConvolutionTokens);
    convolution_kernel<><<<blocks, kRecurrentThreads, 0, stream>>>(operands);
  }

  template <class State>
  void launch_update(cudaStream_t stream, const RecurrentShape& shape, int copy) const {
    const std::vector<std::int64_t> places = places_of(shape, copy);
    const auto in = [&](std::size_t i) { return in_.as<std::uint16_t>() + places[i]; };
    State* const state = state_.as<State>() + copy * shape.states();
    std::uint16_t* const out = out_.as<std::uint16_t>() + copy * shape.outputs();
    if (shape.kernel == RecurrentKernel::kDeltaUpdate) {
      const DeltaOperands<State> operands{in(0), in(1), in(2),       in(3),        in(4),
                                          state, out,   shape.heads, shape.groups, shape.value_dim};
      delta_update_kernel<State>
          <<<blocks_of(shape.outputs(), kDeltaColumns), kRecurrentThreads, 0, stream>>>(operands);
      return;
    }
    const MambaOperands<State> operands{in(0), in(1),       in(2),        in(3),          state,
                                        out,   shape.heads, shape.groups, shape.value_dim};
    const unsigned blocks = blocks_of(shape.outputs(), kMambaRows * kRecurrentWarps);
    if (shape.key_dim == kMambaColumns) {
      mamba_update_kernel<State, 1><<<blocks, kRecurrentThreads, 0, stream>>>(operands);
    } else {
      mamba_update_kernel<State, 2><<<blocks, kRecurrentThreads, 0, stream>>>(operands);
    }
  }

  RandomBuffer inputs() const { return {Format::kBf16, Data::kRandom, context_.seed}; }
  RandomBuffer states(const RecurrentShape& shape) const {
    return {shape.state, Data::kRandom, context_.seed + 2};
  }

  Recurred expected_head(const RecurrentShape& shape, std::int64_t head) const {
    const std::vector<std::int64_t> places = places_of(shape, 0);
    const std::int64_t shared =
        head / shape.heads * shape.groups + head % shape.heads / (shape.heads / shape.groups);
    const std::int64_t elements = std::int64_t{shape.key_dim} * shape.value_dim;
    const auto of_shared = [&](std::size_t i) {
      return expected_values(inputs(), places[i] + shared * shape.key_dim, shape.key_dim);
    };
    const auto of_head = [&](std::size_t i, int count) {
      return expected_values(inputs(), places[i] + head * count, count);
    };
    std::vector<double> state = expected_values(states(shape), head * elements, elements);
    if (shape.kernel == RecurrentKernel::kDeltaUpdate)
      return delta_update({std::move(state), of_shared(0), of_shared(1),
                           of_head(2, shape.value_dim), of_head(3, 1)[0], of_head(4, 1)[0]});
    return mamba_update({std::move(state), of_head(0, shape.value_dim), of_shared(1), of_shared(2),
                         of_head(3, 1)[0]});
  }

  void compare_head(const RecurrentShape& shape, std::int64_t head, Comparison& states,
                    Comparison& outputs) const {
    const Recurred expected = expected_head(shape, head);
    const std::int64_t elements = std::int64_t{shape.key_dim} * shape.value_dim;
    add_all(states, copied(shape.state, state_.as(), head * elements, elements), expected.state);
    add_all(outputs, copied(Format::kBf16, out_.as(), head * shape.value_dim, shape.value_dim),
            expected.out);
  }

  /// @param place row: sequence and token; column: channel
  void compare_result(const RecurrentShape& shape, const Place& place, Comparison& states_of,
                      Comparison& outputs) const {
    const std::int64_t sequence = place.row / shape.tokens, token = place.row % shape.tokens;
    const std::int64_t at = place.row * shape.channels + place.column;
    const bool update = shape.kernel == RecurrentKernel::kConvolutionUpdate;
    const auto window_at = [&](std::int64_t kept) {
      return (sequence * (kTaps - 1) + kept) * shape.channels + place.column;
    };
    std::vector<double> seen(kTaps, 0.0);
    for (int tap = 0; tap < kTaps; ++tap) {
      const int back = kTaps - 1 - tap;
      if (token >= back)
        seen[static_cast<std::size_t>(tap)] = inputs().at(at - back * shape.channels);
      if (update && back > 0)
        seen[static_cast<std::size_t>(tap)] = states(shape).at(window_at(tap));
    }
    const RandomBuffer weight{Format::kBf16, Data::kRandom, context_.seed + 1};
    const std::vector<double> weights = expected_values(weight, place.column * kTaps, kTaps);
    outputs.add(copied(Format::kBf16, out_.as(), at, 1)[0], causal_convolution(seen, weights));
    for (int kept = 0; update && kept < kTaps - 1; ++kept)
      states_of.add(copied(Format::kBf16, state_.as(), window_at(kept), 1)[0],
                    seen[static_cast<std::size_t>(kept + 1)]);
  }

  const Context& context_;
  DeviceBuffer state_, in_, out_, weight_;
};

void run(const Context& context, Table& table) {
  const RecurrentBench bench(context);
  Failures failures;
  for (const RecurrentShape& shape : recurrent_shapes(context.depth, kMostBytes)) {
    if (context.out_of_time()) break;
    if (!bench.fits(shape)) continue;
    try {
      bench.check(shape);
      bench.measure(table, shape);
    } catch (const WrongResult& error) {
      failures.add(error);
    }
  }
  failures.raise();
}

std::vector<std::string> columns() {
  std::vector<std::string> result =
      with_timing_columns({"system", "kernel", "precision", "state_precision", "batch", "tokens",
                           "heads", "groups", "key_dim", "value_dim", "channels", "taps"});
  for (const char* column : {"implementation", "bytes_per_s"}) result.emplace_back(column);
  return result;
}

const Registration registration({
    .number = 19,
    .name = "recurrent_kernels",
    .what = "state updates of gated delta networks and Mamba-2, causal convolutions: what streams "
            "states and windows (kernels of our own)",
    .quick_s = 5,
    .full_s = 16,
    .columns = columns(),
    .run = run,
});

}  // namespace
}  // namespace orrery::measure::recurrent
