// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "device/random.cuh"
#include "device/row_kernels.cuh"
#include "host/measurement.h"
#include "host/reference.h"
#include "host/sampling.h"

namespace orrery::measure::row_kernels {
namespace {

constexpr int kMostRows = 65536;
constexpr std::int64_t kMostElements = std::int64_t{1} << 28;
constexpr std::size_t kBytes = std::size_t{2} << 30;
constexpr double kRotaryBase = 10000;

struct RowShape {
  int rows, cols;
  std::int64_t elements() const { return std::int64_t{rows} * cols; }
};

/// What the reference of one row knows: the row's inputs and the weights.
struct RowInputs {
  std::int64_t row;
  std::vector<double> in, weight;
};

struct RowKernel {
  const char* name;
  int in_for_out;  ///< input elements of an output element
  int out_bytes;   ///< of an output element
  int column_step;
  int side_bytes_of_row;  ///< read beside the row itself
  bool scales;            ///< writes one for every 128 columns
  double tolerance;
  void (*launch)(const RowOperands& operands, cudaStream_t stream);
  std::vector<double> (*expected)(const RowInputs& inputs);
};

unsigned blocks_for(std::int64_t vectors) {
  return static_cast<unsigned>((vectors + kRowThreads - 1) / kRowThreads);
}

/// Launches the instance that holds a row in the fewest registers.
template <class Kernel1, class Kernel2, class Kernel4, class Kernel8>
void launch_row(Kernel1 one, Kernel2 two, Kernel4 four, Kernel8 eight, const RowOperands& operands,
                cudaStream_t stream) {
  const int vectors = (operands.cols + kRowThreads * kVector - 1) / (kRowThreads * kVector);
  const auto blocks = static_cast<unsigned>(operands.rows);
  if (vectors == 1) {
    one<<<blocks, kRowThreads, 0, stream>>>(operands);
  } else if (vectors == 2) {
    two<<<blocks, kRowThreads, 0, stream>>>(operands);
  } else if (vectors <= 4) {
    four<<<blocks, kRowThreads, 0, stream>>>(operands);
  } else {
    eight<<<blocks, kRowThreads, 0, stream>>>(operands);
  }
}

void launch_softmax(const RowOperands& operands, cudaStream_t stream) {
  launch_row(softmax_kernel<1>, softmax_kernel<2>, softmax_kernel<4>, softmax_kernel<8>, operands,
             stream);
}
void launch_rms_norm(const RowOperands& operands, cudaStream_t stream) {
  launch_row(rms_norm_kernel<1>, rms_norm_kernel<2>, rms_norm_kernel<4>, rms_norm_kernel<8>,
             operands, stream);
}
/// A thread for every vector of `elements` elements.
template <class Kernel>
void launch_flat(Kernel kernel, std::int64_t elements, const RowOperands& operands,
                 cudaStream_t stream) {
  kernel<<<blocks_for(elements / kVector), kRowThreads, 0, stream>>>(operands);
}
void launch_swiglu(const RowOperands& operands, cudaStream_t stream) {
  launch_flat(swiglu_kernel<>, std::int64_t{operands.rows} * operands.cols, operands, stream);
}
void launch_rotary(const RowOperands& operands, cudaStream_t stream) {
  launch_flat(rotary_kernel<>, std::int64_t{operands.rows} * operands.cols / 2, operands, stream);
}
void launch_cast_tensor(const RowOperands& operands, cudaStream_t stream) {
  launch_flat(cast_tensor_kernel<>, std::int64_t{operands.rows} * operands.cols, operands, stream);
}
void launch_cast_block(const RowOperands& operands, cudaStream_t stream) {
  launch_flat(cast_block_kernel<>, std::int64_t{operands.rows} * operands.cols, operands, stream);
}

std::vector<double> expect_softmax(const RowInputs& inputs) { return softmax(inputs.in); }
std::vector<double> expect_rms_norm(const RowInputs& inputs) {
  return rms_norm(inputs.in, inputs.weight, kEpsilon);
}
std::vector<double> expect_swiglu(const RowInputs& inputs) {
  const std::size_t cols = inputs.in.size() / 2;
  std::vector<double> result;
  for (std::size_t i = 0; i < cols; ++i)
    result.push_back(swiglu(inputs.in[i], inputs.in[cols + i]));
  return result;
}
std::vector<double> expect_rotary(const RowInputs& inputs) {
  std::vector<double> result(inputs.in.size());
  for (std::size_t head = 0; head < result.size(); head += kBlock) {
    for (int pair = 0; pair < kBlock / 2; ++pair) {
      const double angle = rotary_angle(inputs.row, pair, kBlock, kRotaryBase);
      const std::size_t low = head + static_cast<std::size_t>(pair), high = low + kBlock / 2;
      result[low] = inputs.in[low] * std::cos(angle) - inputs.in[high] * std::sin(angle);
      result[high] = inputs.in[high] * std::cos(angle) + inputs.in[low] * std::sin(angle);
    }
  }
  return result;
}
/// What E4M3 makes of the row's values under `scale`, scaled back.
void expect_cast(const RowInputs& inputs, std::size_t first, std::size_t count, double scale,
                 std::vector<double>& result) {
  for (std::size_t i = first; i < first + count; ++i) {
    const auto scaled = static_cast<float>(inputs.in[i] / scale);
    result.push_back(scale * decode_e4m3(encode_e4m3(scaled)));
  }
}
std::vector<double> expect_cast_tensor(const RowInputs& inputs) {
  std::vector<double> result;
  expect_cast(inputs, 0, inputs.in.size(), kTensorScale, result);
  return result;
}
std::vector<double> expect_cast_block(const RowInputs& inputs) {
  std::vector<double> result;
  for (std::size_t first = 0; first < inputs.in.size(); first += kBlock) {
    double most = 0;
    for (std::size_t i = first; i < first + kBlock; ++i)
      most = std::max(most, std::abs(inputs.in[i]));
    expect_cast(inputs, first, kBlock, most / kLargestE4m3, result);
  }
  return result;
}

/// Tolerances: bf16 results round by 2^-9; a value next to a tie of E4M3 may fall to the other side
/// (one in some thousands, by an eighth of itself).
const std::vector<RowKernel>& kernels() {
  static const std::vector<RowKernel> all = {
      {"softmax", 1, 2, 8, 0, false, 0.01, launch_softmax, expect_softmax},
      {"rms_norm", 1, 2, 8, 0, false, 0.01, launch_rms_norm, expect_rms_norm},
      {"swiglu", 2, 2, 8, 0, false, 0.01, launch_swiglu, expect_swiglu},
      {"rotary", 1, 2, 128, 64 * 8, false, 0.01, launch_rotary, expect_rotary},
      {"cast_fp8_tensor", 1, 1, 8, 0, false, 0.03, launch_cast_tensor, expect_cast_tensor},
      {"cast_fp8_block", 1, 1, 128, 0, true, 0.03, launch_cast_block, expect_cast_block}};
  return all;
}

class Bench {
 public:
  explicit Bench(const Context& context)
      : context_(context),
        in_(kBytes),
        out_(kBytes / 2),
        weight_(16384 * 2),
        turns_(kMostRows * std::size_t{64} * sizeof(float2)),
        scales_(static_cast<std::size_t>(kMostElements) / kBlock * sizeof(float)) {
    fill(Format::kBf16, in_.as(), kBytes / 2, context.seed);
    fill(Format::kBf16, weight_.as(), weight_.bytes() / 2, context.seed + 1);
    turns_kernel<><<<kMostRows * 64 / 256, 256>>>(turns_.as<float2>(), kMostRows);
    ORRERY_CUDA(cudaGetLastError());
    ORRERY_CUDA(cudaDeviceSynchronize());
  }

  bool fits(const RowKernel& kernel, const RowShape& shape) const {
    return shape.cols % kernel.column_step == 0 && shape.elements() <= kMostElements;
  }

  /// Whole rows: the first, the last and some between.
  void check(const RowKernel& kernel, const RowShape& shape) const {
    ORRERY_CUDA(cudaMemset(out_.as(), 0xFF, out_elements(shape) * out_size(kernel)));
    ORRERY_CUDA(cudaMemset(scales_.as(), 0xFF, scales_.bytes()));
    kernel.launch(operands(kernel, shape, 0), nullptr);
    ORRERY_CUDA(cudaGetLastError());
    ORRERY_CUDA(cudaDeviceSynchronize());
    Comparison comparison;
    for (const Place& place : sample_places(shape.rows, 1, 6, context_.seed)) {
      const std::vector<double> expected = kernel.expected(inputs(kernel, shape, place.row));
      const std::vector<double> got = results(kernel, shape, place.row);
      for (std::size_t i = 0; i < got.size(); ++i) comparison.add(got[i], expected[i]);
    }
    comparison.require(kernel.tolerance, std::string(kernel.name) + " of " +
                                             std::to_string(shape.rows) + " x " +
                                             std::to_string(shape.cols));
  }

  void measure(Table& table, const RowKernel& kernel, const RowShape& shape) const {
    const std::int64_t elements = shape.elements();
    const std::int64_t weights = std::string(kernel.name) == "rms_norm" ? 2 * shape.cols : 0;
    const std::int64_t read = 2 * elements * kernel.in_for_out + weights +
                              std::int64_t{shape.rows} * kernel.side_bytes_of_row;
    const std::int64_t written =
        elements * kernel.out_bytes + (kernel.scales ? elements / kBlock * 4 : 0);
    TimingOptions options;
    options.copies = copies(kernel, shape, static_cast<std::size_t>(read + written));
    const Timing timing = time_graph(
        context_,
        [&](cudaStream_t stream, int i) {
          kernel.launch(operands(kernel, shape, i % options.copies), stream);
          ORRERY_CUDA(cudaGetLastError());
        },
        options);
    table.add_row(with_timing({context_.system, std::string(kernel.name), std::int64_t{shape.rows},
                               std::int64_t{shape.cols}, read, written,
                               static_cast<double>(read + written) / (timing.us.median * 1e-6)},
                              timing));
  }

 private:
  static std::size_t out_elements(const RowShape& shape) {
    return static_cast<std::size_t>(shape.elements());
  }
  static std::size_t out_size(const RowKernel& kernel) {
    return static_cast<std::size_t>(kernel.out_bytes);
  }
  std::size_t in_elements(const RowKernel& kernel, const RowShape& shape) const {
    return out_elements(shape) * static_cast<std::size_t>(kernel.in_for_out);
  }

  int copies(const RowKernel& kernel, const RowShape& shape, std::size_t bytes) const {
    const auto most =
        static_cast<int>(std::min({in_.bytes() / 2 / in_elements(kernel, shape),
                                   out_.bytes() / 2 / out_elements(shape), std::size_t{4096}}));
    return std::clamp(rotation(context_.device, bytes), 1, most);
  }

  RowOperands operands(const RowKernel& kernel, const RowShape& shape, int copy) const {
    const auto index = static_cast<std::size_t>(copy);
    RowOperands result;
    result.in = in_.as<__nv_bfloat16>() + index * in_elements(kernel, shape);
    result.weight = weight_.as<__nv_bfloat16>();
    result.turns = turns_.as<float2>();
    result.out = out_.as<char>() + index * out_elements(shape) * out_size(kernel);
    result.scales = scales_.as<float>();
    result.rows = shape.rows;
    result.cols = shape.cols;
    return result;
  }

  RowInputs inputs(const RowKernel& kernel, const RowShape& shape, std::int64_t row) const {
    const RandomBuffer in{Format::kBf16, Data::kRandom, context_.seed};
    const RandomBuffer weight{Format::kBf16, Data::kRandom, context_.seed + 1};
    RowInputs result{row, {}, {}};
    const std::int64_t width = std::int64_t{shape.cols} * kernel.in_for_out;
    for (std::int64_t i = 0; i < width; ++i) result.in.push_back(in.at(row * width + i));
    for (std::int64_t i = 0; i < shape.cols; ++i) result.weight.push_back(weight.at(i));
    return result;
  }

  /// The row's results as numbers, fp8 times its scale.
  std::vector<double> results(const RowKernel& kernel, const RowShape& shape,
                              std::int64_t row) const {
    const auto cols = static_cast<std::size_t>(shape.cols);
    std::vector<std::uint8_t> bytes(cols * out_size(kernel));
    ORRERY_CUDA(cudaMemcpy(bytes.data(),
                           out_.as<char>() + static_cast<std::size_t>(row) * bytes.size(),
                           bytes.size(), cudaMemcpyDeviceToHost));
    std::vector<float> scales(cols / kBlock, kTensorScale);
    if (kernel.scales) {
      ORRERY_CUDA(cudaMemcpy(scales.data(),
                             scales_.as<float>() + static_cast<std::size_t>(row) * scales.size(),
                             scales.size() * sizeof(float), cudaMemcpyDeviceToHost));
    }
    std::vector<double> result;
    for (std::size_t i = 0; i < cols; ++i) {
      if (kernel.out_bytes == 2) {
        result.push_back(
            decode_bf16(static_cast<std::uint16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8)));
      } else {
        const double scale = kernel.scales ? scales[i / kBlock] : kTensorScale;
        result.push_back(scale * decode_e4m3(bytes[i]));
      }
    }
    return result;
  }

  const Context& context_;
  DeviceBuffer in_, out_, weight_, turns_, scales_;
};

std::vector<RowShape> shapes(bool full) {
  const std::vector<int> rows =
      full ? std::vector<int>{1, 8, 32, 128, 512, 1024, 2048, 4096, 8192, 16384, 65536}
           : std::vector<int>{1, 128, 1024, 8192};
  const std::vector<int> cols =
      full ? std::vector<int>{128, 512, 1024, 2048, 4096, 5120, 7168, 8192, 14336, 16384}
           : std::vector<int>{1024, 4096, 8192};
  std::vector<RowShape> result;
  for (const int r : rows) {
    for (const int c : cols) result.push_back({r, c});
  }
  return result;
}

void run(const Context& context, Table& table) {
  const Bench bench(context);
  Failures failures;
  for (const RowShape& shape : shapes(context.depth == Depth::kFull)) {
    for (const RowKernel& kernel : kernels()) {
      if (context.out_of_time()) break;
      if (!bench.fits(kernel, shape)) continue;
      try {
        bench.check(kernel, shape);
        bench.measure(table, kernel, shape);
      } catch (const WrongResult& error) {
        failures.add(error);
      }
    }
  }
  failures.raise();
}

const Registration registration({
    .number = 17,
    .name = "row_kernels",
    .what = "softmax, RMSNorm, SwiGLU, rotary and casts to fp8 by rows and columns: bandwidth and "
            "fixed cost of memory-bound kernels",
    .quick_s = 5,
    .full_s = 14,
    .columns = with_timing_columns({"system", "kernel", "rows", "cols", "read_bytes",
                                    "written_bytes", "bytes_per_s"}),
    .run = run,
});

}  // namespace
}  // namespace orrery::measure::row_kernels
