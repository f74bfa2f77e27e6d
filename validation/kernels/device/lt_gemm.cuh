// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "device/number_formats.h"
#include "device/timing.cuh"
#include "host/gemm_shapes.h"

namespace orrery::measure {

/// @throws std::runtime_error with cuBLAS's name of the error and the place.
void check(cublasStatus_t status, const char* file, int line);
#define ORRERY_CUBLAS(call) ::orrery::measure::check((call), __FILE__, __LINE__)

/// Result format of a GEMM: bf16 for bf16 and fp8 operands, fp32 for tf32.
constexpr Format gemm_output(Format operands) {
  return operands == Format::kTf32 ? Format::kF32 : Format::kBf16;
}

/// Per-tensor scales of fp8 operands: not 1, so that a check notices when they are left out.
constexpr float kInputScale = 0.5f, kWeightScale = 0.25f;
constexpr double gemm_scale(Format format) {
  return format == Format::kE4m3 ? double{kInputScale} * double{kWeightScale} : 1.0;
}

/// The library with its workspace and the scales.
class LtLibrary {
 public:
  LtLibrary();
  ~LtLibrary();
  LtLibrary(const LtLibrary&) = delete;
  LtLibrary& operator=(const LtLibrary&) = delete;

  cublasLtHandle_t handle() const { return handle_; }
  void* workspace() const { return workspace_.as(); }
  std::size_t workspace_bytes() const { return workspace_.bytes(); }
  const float* scales() const { return scales_.as<float>(); }  ///< of the input, of the weight

 private:
  cublasLtHandle_t handle_ = nullptr;
  DeviceBuffer workspace_, scales_;
};

/// What the library chose; ids as in cublasLt.h.
struct LtAlgorithm {
  int id = 0, tile = 0, stages = 0, split_k = 0, reduction = 0, cluster = 0;
  double waves = 0;  ///< of blocks, as the library estimates
  std::size_t workspace_bytes = 0;
};

/// out[m,n] = in[m,k] x weight[n,k]^T, all row-major (weights stored [n,k]), `batch` of them one
/// after the other, by the heuristics' first choice.
class LtGemm {
 public:
  /// nullopt when the library has no algorithm for it on this device.
  static std::optional<LtGemm> plan(const LtLibrary& library, Format format, const GemmShape& shape,
                                    int batch = 1);

  void run(cudaStream_t stream, const void* in, const void* weight, void* out) const;
  LtAlgorithm algorithm() const;

 private:
  template <auto kDestroy>
  struct Deleter {
    template <class T>
    void operator()(T* object) const {
      kDestroy(object);
    }
  };
  template <class Handle, auto kDestroy>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Deleter<kDestroy>>;
  using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

  explicit LtGemm(const LtLibrary& library) : library_(&library) {}
  static Layout layout(Format format, std::int64_t rows, std::int64_t columns, int batch);
  void describe(Format format);
  bool choose();

  const LtLibrary* library_;
  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> operation_;
  Layout weight_, in_, out_;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

}  // namespace orrery::measure
