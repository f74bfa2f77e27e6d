// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "device/lt_gemm.cuh"
#include "device/random.cuh"
#include "host/reference.h"
#include "host/sampling.h"

namespace orrery::measure {

/// Random inputs, weights and room for results that all GEMM shapes of one precision share: a shape
/// takes as many slices of them, one after the other, as rotate its working set out of the L2.
class GemmData {
 public:
  GemmData(const Context& context, Format format, std::size_t bytes_each)
      : context_(context),
        format_(format),
        in_{format, Data::kRandom, context.seed},
        weight_{format, Data::kRandom, context.seed + 1},
        in_buffer_(bytes_each),
        weight_buffer_(bytes_each),
        out_buffer_(bytes_each) {
    refill(Data::kRandom);
  }

  /// Other data for all inputs.
  void refill(Data data) {
    in_.data = weight_.data = data;
    fill(format_, in_buffer_.as(), in_buffer_.bytes() / bytes_of(format_), in_.seed, data);
    fill(format_, weight_buffer_.as(), weight_buffer_.bytes() / bytes_of(format_), weight_.seed,
         data);
  }

  Format format() const { return format_; }
  bool fits(const GemmShape& shape, int batch = 1) const { return largest(shape, batch) <= room(); }

  /// Copies of the working set that exceed twice the L2, as far as there is room.
  int copies(const GemmShape& shape, int batch = 1) const {
    const std::size_t bytes =
        in_bytes(shape, batch) + weight_bytes(shape, batch) + out_bytes(shape, batch);
    const auto most = static_cast<int>(std::min<std::size_t>(room() / largest(shape, batch), 4096));
    return std::clamp(rotation(context_.device, bytes), 1, std::max(most, 1));
  }

  const void* in(const GemmShape& shape, int copy, int batch = 1) const {
    return in_buffer_.as<char>() + in_bytes(shape, batch) * static_cast<std::size_t>(copy);
  }
  const void* weight(const GemmShape& shape, int copy, int batch = 1) const {
    return weight_buffer_.as<char>() + weight_bytes(shape, batch) * static_cast<std::size_t>(copy);
  }
  void* out(const GemmShape& shape, int copy, int batch = 1) const {
    return out_buffer_.as<char>() + out_bytes(shape, batch) * static_cast<std::size_t>(copy);
  }

  /// Runs copy 0 of `gemm` into poisoned memory and compares `samples` entries of every sampled
  /// matrix of the batch. @throws WrongResult.
  void check(const LtGemm& gemm, const GemmShape& shape, int samples, int batch = 1) const {
    ORRERY_CUDA(cudaMemset(out_buffer_.as(), 0xFF, out_bytes(shape, batch)));
    gemm.run(nullptr, in_buffer_.as(), weight_buffer_.as(), out_buffer_.as());
    ORRERY_CUDA(cudaDeviceSynchronize());
    Comparison comparison;
    const double scale = gemm_scale(format_);
    for (const Place& place : sample_places(batch * shape.m, shape.n, samples, context_.seed)) {
      const std::int64_t matrix = place.row / shape.m;
      const double exact = scale * dot(in_, place.row * shape.k, weight_,
                                       (matrix * shape.n + place.column) * shape.k, shape.k);
      comparison.add(result_at(place.row * shape.n + place.column), exact);
    }
    comparison.require(gemm_tolerance(format_, shape.k),
                       std::string("gemm ") + name_of(format_) + " batch " + std::to_string(batch) +
                           " m=" + std::to_string(shape.m) + " n=" + std::to_string(shape.n) +
                           " k=" + std::to_string(shape.k));
  }

 private:
  static constexpr std::size_t kAlignment = 256;  // of every copy

  static std::size_t aligned(std::int64_t elements, int batch, Format format) {
    const std::size_t bytes =
        static_cast<std::size_t>(elements) * static_cast<std::size_t>(batch) * bytes_of(format);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::size_t in_bytes(const GemmShape& shape, int batch) const {
    return aligned(shape.m * shape.k, batch, format_);
  }
  std::size_t weight_bytes(const GemmShape& shape, int batch) const {
    return aligned(shape.n * shape.k, batch, format_);
  }
  std::size_t out_bytes(const GemmShape& shape, int batch) const {
    return aligned(shape.m * shape.n, batch, gemm_output(format_));
  }
  std::size_t largest(const GemmShape& shape, int batch) const {
    return std::max({in_bytes(shape, batch), weight_bytes(shape, batch), out_bytes(shape, batch)});
  }
  std::size_t room() const { return in_buffer_.bytes(); }

  double result_at(std::int64_t index) const {
    if (gemm_output(format_) == Format::kF32) return read<float>(index);
    return decode_bf16(read<std::uint16_t>(index));
  }
  template <class T>
  T read(std::int64_t index) const {
    T value{};
    ORRERY_CUDA(cudaMemcpy(&value, out_buffer_.as<T>() + index, sizeof(T), cudaMemcpyDeviceToHost));
    return value;
  }

  const Context& context_;
  Format format_;
  RandomBuffer in_, weight_;
  DeviceBuffer in_buffer_, weight_buffer_, out_buffer_;
};

}  // namespace orrery::measure
