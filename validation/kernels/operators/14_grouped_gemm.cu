// SPDX-License-Identifier: Apache-2.0
#include <cublas_v2.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "device/lt_gemm.cuh"
#include "device/random.cuh"
#include "host/gemm_shapes.h"
#include "host/measurement.h"
#include "host/priority_shapes.h"
#include "host/reference.h"
#include "host/sampling.h"

namespace orrery::measure::grouped_gemm {
namespace {

// All 256 experts of a layer of DeepSeek-V3 have 14 GiB of gates and ups.
constexpr std::size_t kWeightBytes = std::size_t{14} << 30;
constexpr std::size_t kRowBytes = std::size_t{2} << 30;

class Cublas {
 public:
  Cublas() { ORRERY_CUBLAS(cublasCreate(&handle_)); }
  ~Cublas() { cublasDestroy(handle_); }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  cublasHandle_t get() const { return handle_; }

 private:
  cublasHandle_t handle_ = nullptr;
};

/// Pointers of the experts that have rows, on the device as the library wants them, for one copy.
struct Pointers {
  std::vector<const void*> weight, in;
  std::vector<void*> out;
};

/// One grouped call, prepared: a group for every expert that has rows. Column-major terms as in
/// device/lt_gemm.cu.
class Grouped {
 public:
  Grouped(const GroupedShape& shape, int copies)
      : shape_(shape), rows_(rows_of_experts(shape)), copies_(copies) {
    for (const std::int64_t rows : rows_) {
      if (rows > 0) counts_.push_back(static_cast<int>(rows));
    }
    const std::size_t groups = counts_.size();
    weight_transposed_.assign(groups, CUBLAS_OP_T);
    in_transposed_.assign(groups, CUBLAS_OP_N);
    n_.assign(groups, static_cast<int>(shape.n));
    k_.assign(groups, static_cast<int>(shape.k));
    ones_.assign(groups, 1);
    alpha_.assign(groups, 1.0f);
    beta_.assign(groups, 0.0f);
  }

  /// Places the copies in the buffers and sends the pointers to the device.
  void place(const DeviceBuffer& weight, const DeviceBuffer& in, const DeviceBuffer& out) {
    std::vector<const void*> all;
    for (int copy = 0; copy < copies_; ++copy) {
      const Pointers pointers = pointers_of(copy, weight, in, out);
      all.insert(all.end(), pointers.weight.begin(), pointers.weight.end());
      all.insert(all.end(), pointers.in.begin(), pointers.in.end());
      all.insert(all.end(), pointers.out.begin(), pointers.out.end());
    }
    pointers_ = DeviceBuffer(all.size() * sizeof(void*));
    ORRERY_CUDA(cudaMemcpy(pointers_.as(), all.data(), pointers_.bytes(), cudaMemcpyHostToDevice));
  }

  void run(const Cublas& cublas, cudaStream_t stream, int copy) const {
    const std::size_t groups = counts_.size();
    void** const first = pointers_.as<void*>() + 3 * groups * static_cast<std::size_t>(copy);
    ORRERY_CUBLAS(cublasSetStream(cublas.get(), stream));
    ORRERY_CUBLAS(cublasGemmGroupedBatchedEx(
        cublas.get(), weight_transposed_.data(), in_transposed_.data(), n_.data(), counts_.data(),
        k_.data(), alpha_.data(), first, CUDA_R_16BF, k_.data(), first + groups, CUDA_R_16BF,
        k_.data(), beta_.data(), first + 2 * groups, CUDA_R_16BF, n_.data(),
        static_cast<int>(groups), ones_.data(), CUBLAS_COMPUTE_32F));
  }

  const std::vector<std::int64_t>& rows() const { return rows_; }
  int active() const { return static_cast<int>(counts_.size()); }

 private:
  Pointers pointers_of(int copy, const DeviceBuffer& weight, const DeviceBuffer& in,
                       const DeviceBuffer& out) const {
    Pointers result;
    std::int64_t row = copy * shape_.rows;
    std::int64_t expert = std::int64_t{copy} * shape_.experts;
    for (const std::int64_t rows : rows_) {
      if (rows > 0) {
        result.weight.push_back(weight.as<std::uint16_t>() + expert * shape_.n * shape_.k);
        result.in.push_back(in.as<std::uint16_t>() + row * shape_.k);
        result.out.push_back(out.as<std::uint16_t>() + row * shape_.n);
      }
      row += rows;
      ++expert;
    }
    return result;
  }

  const GroupedShape shape_;
  const std::vector<std::int64_t> rows_;
  const int copies_;
  std::vector<int> counts_, n_, k_, ones_;
  std::vector<cublasOperation_t> weight_transposed_, in_transposed_;
  std::vector<float> alpha_, beta_;
  DeviceBuffer pointers_{sizeof(void*)};
};

class Bench {
 public:
  Bench(const Context& context, Table& table)
      : context_(context),
        table_(table),
        weight_(std::min(kWeightBytes, static_cast<std::size_t>(context.device.memory_bytes) / 4)),
        in_(kRowBytes),
        out_(kRowBytes) {
    fill(Format::kBf16, weight_.as(), weight_.bytes() / 2, context.seed + 1);
    fill(Format::kBf16, in_.as(), in_.bytes() / 2, context.seed);
  }

  void measure(const GroupedShape& shape) {
    const std::size_t weights = 2 * static_cast<std::size_t>(shape.experts * shape.n * shape.k);
    const std::size_t rows = 2 * static_cast<std::size_t>(shape.rows * std::max(shape.n, shape.k));
    if (weights > weight_.bytes() || rows > in_.bytes()) return;
    const auto most = static_cast<int>(
        std::min({weight_.bytes() / weights, in_.bytes() / rows, std::size_t{256}}));
    const int copies = std::clamp(rotation(context_.device, weights + rows), 1, most);
    Grouped grouped(shape, copies);
    grouped.place(weight_, in_, out_);
    check(shape, grouped);
    TimingOptions options;
    options.copies = copies;
    // The library reads host arrays in every call, which a graph need not replay; a row whose
    // latency is no more than host_us tells of the host.
    const Timing timing = time_stream(
        context_, [&](cudaStream_t stream, int i) { grouped.run(cublas_, stream, i % copies); },
        options);
    table_.add_row(with_timing(
        {context_.system, std::string("bf16"), std::int64_t{shape.experts}, shape.rows,
         std::string(name_of(shape.distribution)), shape.n, shape.k, std::int64_t{grouped.active()},
         *std::max_element(grouped.rows().begin(), grouped.rows().end()), host_us(grouped),
         shape.flops() / (timing.us.median * 1e-6)},
        timing));
  }

 private:
  /// What a call takes on the host.
  double host_us(const Grouped& grouped) const {
    constexpr int kCalls = 16;  // fewer than fill the queue to the GPU
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) grouped.run(cublas_, nullptr, 0);
    const auto taken = std::chrono::steady_clock::now() - start;
    ORRERY_CUDA(cudaDeviceSynchronize());
    return std::chrono::duration<double, std::micro>(taken).count() / kCalls;
  }

  /// Sampled entries of the whole result, whichever expert they belong to.
  void check(const GroupedShape& shape, const Grouped& grouped) const {
    ORRERY_CUDA(cudaMemset(out_.as(), 0xFF, 2 * static_cast<std::size_t>(shape.rows * shape.n)));
    grouped.run(cublas_, nullptr, 0);
    ORRERY_CUDA(cudaDeviceSynchronize());
    const RandomBuffer in{Format::kBf16, Data::kRandom, context_.seed};
    const RandomBuffer weight{Format::kBf16, Data::kRandom, context_.seed + 1};
    Comparison comparison;
    for (const Place& place : sample_places(shape.rows, shape.n, 64, context_.seed)) {
      std::int64_t expert = 0;
      for (std::int64_t end = grouped.rows()[0]; end <= place.row;) {
        end += grouped.rows()[static_cast<std::size_t>(++expert)];
      }
      std::uint16_t got = 0;
      ORRERY_CUDA(cudaMemcpy(&got, out_.as<std::uint16_t>() + place.row * shape.n + place.column,
                             sizeof(got), cudaMemcpyDeviceToHost));
      const std::int64_t weight_row = expert * shape.n + place.column;
      comparison.add(decode_bf16(got),
                     dot(in, place.row * shape.k, weight, weight_row * shape.k, shape.k));
    }
    comparison.require(gemm_tolerance(Format::kBf16, shape.k),
                       "grouped gemm of " + std::to_string(shape.experts) + " experts, " +
                           std::to_string(shape.rows) + " rows " + name_of(shape.distribution));
  }

  const Context& context_;
  Table& table_;
  Cublas cublas_;
  DeviceBuffer weight_, in_, out_;
};

void run(const Context& context, Table& table) {
  Bench bench(context, table);
  Failures failures;
  const bool priority = context.depth == Depth::kPriority;
  for (const GroupedShape& shape : priority ? priority_grouped_shapes() : grouped_shapes()) {
    if (context.out_of_time()) break;
    try {
      bench.measure(shape);
    } catch (const WrongResult& error) {
      failures.add(error);
    }
  }
  failures.raise();
}

const Registration registration({
    .number = 14,
    .name = "grouped_gemm",
    .what = "cuBLAS grouped bf16 GEMM over experts with balanced and skewed rows",
    .quick_s = 4,
    .full_s = 14,
    .columns = with_timing_columns({"system", "precision", "experts", "rows_total", "distribution",
                                    "n", "k", "active_experts", "largest_rows", "host_us",
                                    "flops_per_s"}),
    .run = run,
});

}  // namespace
}  // namespace orrery::measure::grouped_gemm
