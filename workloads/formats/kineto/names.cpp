// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/kineto/names.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace orrery::kineto {
namespace {

/// Parts of kernels' names, in small letters, and what they say. The first that is found counts.
struct Rule {
  KernelClass kind;
  bool product;
  std::vector<std::string_view> parts;
};

const Rule kRules[] = {
    // What has parts of a product's name and is none.
    {KernelClass::kGemm, false, {"splitkreduce", "splitk_reduce"}},
    {KernelClass::kGemm, true, {"gemmk1_kernel"}},
    // Attention before products: its kernels have both names.
    {KernelClass::kAttentionDecode,
     false,
     {"flash_fwd_splitkv", "paged_attention", "decodewithpagedkv"}},
    {KernelClass::kMlaDecode, false, {"flash_mla"}},
    {KernelClass::kAttentionDecode, false, {"masked_multihead_attention"}},
    {KernelClass::kAttentionPrefill,
     false,
     {"flash", "fmha", "attn_fwd", "attn_bwd", "attention", "cudnn_generated_fort_native_sdpa"}},
    // Optimizers before elementwise kernels, which carry them.
    {KernelClass::kOptimizer,
     false,
     {"multi_tensor_apply", "multitensorapply", "adam", "adagrad", "optimizer", "lamb_"}},
    // Convolutions before products: implicit ones have both names.
    {KernelClass::kConvolution,
     true,
     {"implicit_gemm", "implicitgem", "winograd", "fprop", "dgrad", "wgrad", "convolve", "conv2d",
      "conv_depthwise", "scudnn", "hcudnn", "cudnn::cnn", "miopenconv", "miopensp3asm",
      "naive_conv", "igemm_"}},
    {KernelClass::kConvolution, false, {"nchwtonhwc", "nhwctonchw", "cudnn::ops", "fft2d"}},
    // Products of experts, then others.
    {KernelClass::kGroupedGemm, true, {"grouped_gemm", "groupedgemm", "fused_moe", "moe_gemm"}},
    {KernelClass::kGemm,
     true,
     {"gemm", "nvjet", "gemv", "cijk_", "cublas", "cutlass", "xmma", "dot_kernel", "_matmul",
      "wmma"}},
    {KernelClass::kSoftmax, false, {"softmax"}},
    {KernelClass::kNormalization,
     false,
     {"layer_norm", "layernorm", "rms_norm", "rmsnorm", "batch_norm", "batchnorm", "group_norm",
      "rowwisemoments", "gammabeta", "bn_fw_", "bn_bw_", "norm"}},
    {KernelClass::kEmbedding, false, {"embedding", "indexselect", "index_select", "gather_kernel"}},
    {KernelClass::kQuantize, false, {"quantize"}},
    {KernelClass::kScan, false, {"selective_scan", "mamba"}},
    {KernelClass::kElementwise,
     false,
     {"elementwise", "reduce_kernel", "catarray", "dropout", "triton_poi", "triton_red",
      "triton_per", "pool", "fbgemm", "at::native", "at_cuda_detail", "cub::", "thrust::", "index",
      "indices", "copy"}},
};

}  // namespace

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

NameFacts facts_of(std::string_view kernel) {
  const std::string name = in_small_letters(kernel);
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
    if (is_fbgemm && rule.product) continue;
    if (std::none_of(rule.parts.begin(), rule.parts.end(), has)) continue;
    facts.kind = rule.kind;
    facts.product = rule.product;
    facts.classified = true;
    break;
  }
  return facts;
}

}  // namespace orrery::kineto
