// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/kineto/names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace orrery::kineto {
namespace {

/// A part of a kernel's name, in small letters, and what it says. The first that is found counts.
struct Rule {
  std::string_view part;
  KernelClass kind;
  bool product = false;
};

constexpr Rule kRules[] = {
    // What has parts of a product's name and is none.
    {"splitkreduce", KernelClass::kGemm},
    {"splitk_reduce", KernelClass::kGemm},
    {"gemmk1_kernel", KernelClass::kGemm, true},
    // Attention before products: its kernels have both names.
    {"flash_fwd_splitkv", KernelClass::kAttentionDecode},
    {"paged_attention", KernelClass::kAttentionDecode},
    {"decodewithpagedkv", KernelClass::kAttentionDecode},
    {"flash_mla", KernelClass::kMlaDecode},
    {"masked_multihead_attention", KernelClass::kAttentionDecode},
    {"flash", KernelClass::kAttentionPrefill},
    {"fmha", KernelClass::kAttentionPrefill},
    {"attn_fwd", KernelClass::kAttentionPrefill},
    {"attn_bwd", KernelClass::kAttentionPrefill},
    {"attention", KernelClass::kAttentionPrefill},
    {"cudnn_generated_fort_native_sdpa", KernelClass::kAttentionPrefill},
    // Optimizers before elementwise kernels, which carry them.
    {"multi_tensor_apply", KernelClass::kOptimizer},
    {"multitensorapply", KernelClass::kOptimizer},
    {"adam", KernelClass::kOptimizer},
    {"adagrad", KernelClass::kOptimizer},
    {"optimizer", KernelClass::kOptimizer},
    {"lamb_", KernelClass::kOptimizer},
    // Convolutions before products: implicit ones have both names.
    {"implicit_gemm", KernelClass::kConvolution, true},
    {"implicitgem", KernelClass::kConvolution, true},
    {"winograd", KernelClass::kConvolution, true},
    {"fprop", KernelClass::kConvolution, true},
    {"dgrad", KernelClass::kConvolution, true},
    {"wgrad", KernelClass::kConvolution, true},
    {"convolve", KernelClass::kConvolution, true},
    {"conv2d", KernelClass::kConvolution, true},
    {"conv_depthwise", KernelClass::kConvolution, true},
    {"scudnn", KernelClass::kConvolution, true},
    {"hcudnn", KernelClass::kConvolution, true},
    {"cudnn::cnn", KernelClass::kConvolution, true},
    {"miopenconv", KernelClass::kConvolution, true},
    {"miopensp3asm", KernelClass::kConvolution, true},
    {"naive_conv", KernelClass::kConvolution, true},
    {"igemm_", KernelClass::kConvolution, true},
    {"nchwtonhwc", KernelClass::kConvolution},
    {"nhwctonchw", KernelClass::kConvolution},
    {"cudnn::ops", KernelClass::kConvolution},
    {"fft2d", KernelClass::kConvolution},
    // Products of experts, then others.
    {"grouped_gemm", KernelClass::kGroupedGemm, true},
    {"groupedgemm", KernelClass::kGroupedGemm, true},
    {"fused_moe", KernelClass::kGroupedGemm, true},
    {"moe_gemm", KernelClass::kGroupedGemm, true},
    {"gemm", KernelClass::kGemm, true},
    {"nvjet", KernelClass::kGemm, true},
    {"gemv", KernelClass::kGemm, true},
    {"cijk_", KernelClass::kGemm, true},
    {"cublas", KernelClass::kGemm, true},
    {"cutlass", KernelClass::kGemm, true},
    {"xmma", KernelClass::kGemm, true},
    {"dot_kernel", KernelClass::kGemm, true},
    {"_matmul", KernelClass::kGemm, true},
    {"wmma", KernelClass::kGemm, true},
    // What streams.
    {"softmax", KernelClass::kSoftmax},
    {"layer_norm", KernelClass::kNormalization},
    {"layernorm", KernelClass::kNormalization},
    {"rms_norm", KernelClass::kNormalization},
    {"rmsnorm", KernelClass::kNormalization},
    {"batch_norm", KernelClass::kNormalization},
    {"batchnorm", KernelClass::kNormalization},
    {"group_norm", KernelClass::kNormalization},
    {"rowwisemoments", KernelClass::kNormalization},
    {"gammabeta", KernelClass::kNormalization},
    {"bn_fw_", KernelClass::kNormalization},
    {"bn_bw_", KernelClass::kNormalization},
    {"norm", KernelClass::kNormalization},
    {"embedding", KernelClass::kEmbedding},
    {"indexselect", KernelClass::kEmbedding},
    {"index_select", KernelClass::kEmbedding},
    {"gather_kernel", KernelClass::kEmbedding},
    {"quantize", KernelClass::kQuantize},
    {"selective_scan", KernelClass::kScan},
    {"mamba", KernelClass::kScan},
    {"elementwise", KernelClass::kElementwise},
    {"reduce_kernel", KernelClass::kElementwise},
    {"catarray", KernelClass::kElementwise},
    {"dropout", KernelClass::kElementwise},
    {"triton_poi", KernelClass::kElementwise},
    {"triton_red", KernelClass::kElementwise},
    {"triton_per", KernelClass::kElementwise},
    {"pool", KernelClass::kElementwise},
    {"fbgemm", KernelClass::kElementwise},
    {"at::native", KernelClass::kElementwise},
    {"at_cuda_detail", KernelClass::kElementwise},
    {"cub::", KernelClass::kElementwise},
    {"thrust::", KernelClass::kElementwise},
    {"index", KernelClass::kElementwise},
    {"indices", KernelClass::kElementwise},
    {"copy", KernelClass::kElementwise},
};

}  // namespace

NameFacts facts_of(std::string_view kernel) {
  std::string name(kernel);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  NameFacts facts;
  // "ncclKernel_AllReduce_RING", "ncclDevKernel_", "void ncclKernel", RCCL's
  // "ncclDevKernel_Generic".
  facts.collective = has("nccl") && has("kernel");
  if (facts.collective) return facts;
  // s1688 is the shape of TF32 instructions (s: 32-bit results of 32-bit operands).
  facts.tf32 = has("tf32") || has("s1688gemm") || has("s1688fprop") || has("s1688dgrad") ||
               has("s1688wgrad") || has("tensorop_s1688");
  // FBGEMM's name has "gemm" in it, whatever its kernels do.
  const bool is_fbgemm = has("fbgemm");
  for (const Rule& rule : kRules) {
    if (!has(rule.part) || (is_fbgemm && rule.product)) continue;
    facts.kind = rule.kind;
    facts.product = rule.product;
    facts.classified = true;
    break;
  }
  return facts;
}

}  // namespace orrery::kineto
