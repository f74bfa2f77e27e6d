// SPDX-License-Identifier: Apache-2.0
#include "device/lt_gemm.cuh"

#include <stdexcept>

namespace orrery::measure {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;

cudaDataType_t element_type(Format format) {
  switch (format) {
    case Format::kBf16:
      return CUDA_R_16BF;
    case Format::kE4m3:
      return CUDA_R_8F_E4M3;
    default:
      return CUDA_R_32F;
  }
}

template <class T>
T config_of(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  std::size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : T{};  // not every algorithm has every attribute
}

}  // namespace

void check(cublasStatus_t status, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(cublasLtGetStatusName(status)) + " at " + file + ':' +
                           std::to_string(line));
}

LtLibrary::LtLibrary() : workspace_(kWorkspaceBytes), scales_(2 * sizeof(float)) {
  ORRERY_CUBLAS(cublasLtCreate(&handle_));
  const float scales[2] = {kInputScale, kWeightScale};
  ORRERY_CUDA(cudaMemcpy(scales_.as(), scales, sizeof(scales), cudaMemcpyHostToDevice));
}
LtLibrary::~LtLibrary() { cublasLtDestroy(handle_); }

/// cuBLAS is column-major: our row-major [rows, columns] is its columns x rows.
LtGemm::Layout LtGemm::layout(Format format, std::int64_t rows, std::int64_t columns, int batch) {
  cublasLtMatrixLayout_t created = nullptr;
  ORRERY_CUBLAS(cublasLtMatrixLayoutCreate(&created, element_type(format),
                                           static_cast<std::uint64_t>(columns),
                                           static_cast<std::uint64_t>(rows), columns));
  Layout result(created);
  const std::int64_t stride = rows * columns;
  ORRERY_CUBLAS(cublasLtMatrixLayoutSetAttribute(created, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                 &batch, sizeof(batch)));
  ORRERY_CUBLAS(cublasLtMatrixLayoutSetAttribute(
      created, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)));
  return result;
}

void LtGemm::describe(Format format) {
  const cublasComputeType_t compute =
      format == Format::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t created = nullptr;
  ORRERY_CUBLAS(cublasLtMatmulDescCreate(&created, compute, CUDA_R_32F));
  operation_.reset(created);
  const auto set = [created](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    ORRERY_CUBLAS(cublasLtMatmulDescSetAttribute(created, attribute, &value, sizeof(value)));
  };
  // Row-major out = in weight^T is column-major out^T = weight in^T: the first operand is the
  // weight, stored k x n and transposed ("TN", the only form of fp8 on Hopper).
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (format != Format::kE4m3) return;
  const float* const input_scale = library_->scales();
  const float* const weight_scale = input_scale + 1;
  set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, weight_scale);
  set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, input_scale);
  // As inference frameworks do: no promotion of partial sums to fp32 registers.
  set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
}

bool LtGemm::choose() {
  cublasLtMatmulPreference_t created = nullptr;
  ORRERY_CUBLAS(cublasLtMatmulPreferenceCreate(&created));
  const Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference(created);
  const std::size_t workspace = library_->workspace_bytes();
  ORRERY_CUBLAS(cublasLtMatmulPreferenceSetAttribute(
      created, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)));
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(library_->handle(), operation_.get(), weight_.get(), in_.get(),
                                     out_.get(), out_.get(), created, 1, &chosen_, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  ORRERY_CUBLAS(status);
  return found > 0 && chosen_.state == CUBLAS_STATUS_SUCCESS;
}

std::optional<LtGemm> LtGemm::plan(const LtLibrary& library, Format format, const GemmShape& shape,
                                   int batch) {
  LtGemm gemm(library);
  gemm.describe(format);
  gemm.weight_ = layout(format, shape.n, shape.k, batch);
  gemm.in_ = layout(format, shape.m, shape.k, batch);
  gemm.out_ = layout(gemm_output(format), shape.m, shape.n, batch);
  if (!gemm.choose()) return std::nullopt;
  return gemm;
}

void LtGemm::run(cudaStream_t stream, const void* in, const void* weight, void* out) const {
  const float alpha = 1, beta = 0;
  ORRERY_CUBLAS(cublasLtMatmul(library_->handle(), operation_.get(), &alpha, weight, weight_.get(),
                               in, in_.get(), &beta, out, out_.get(), out, out_.get(),
                               &chosen_.algo, library_->workspace(), library_->workspace_bytes(),
                               stream));
}

LtAlgorithm LtGemm::algorithm() const {
  const cublasLtMatmulAlgo_t& chosen = chosen_.algo;
  LtAlgorithm result;
  result.id = config_of<std::int32_t>(chosen, CUBLASLT_ALGO_CONFIG_ID);
  result.tile = config_of<std::int32_t>(chosen, CUBLASLT_ALGO_CONFIG_TILE_ID);
  result.stages = config_of<std::int32_t>(chosen, CUBLASLT_ALGO_CONFIG_STAGES_ID);
  result.split_k = config_of<std::int32_t>(chosen, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  result.reduction = config_of<std::int32_t>(chosen, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  result.cluster = config_of<std::uint16_t>(chosen, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
  result.waves = chosen_.wavesCount;
  result.workspace_bytes = chosen_.workspaceSize;
  return result;
}

}  // namespace orrery::measure
