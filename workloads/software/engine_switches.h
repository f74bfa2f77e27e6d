// SPDX-License-Identifier: Apache-2.0
// Switches of serving engines' kernels that several rooms read. A file that alone reads a switch
// declares it itself.
#pragma once

#include "sim/serving/kernel_rules.h"

namespace orrery {

inline const KernelSwitch kQuantFusion{
    "quant_fusion", true,
    "let norms, activations and attention quantise what a product in 8 bits or fewer reads; off: "
    "kernels of their own do (vLLM: fuse_norm_quant, fuse_act_quant, fuse_attn_quant)"};

inline const KernelSwitch kBlockQuantFusion{
    "block_quant_fusion", true,
    "with quant_fusion, the same for products with a scale for each block of elements (fp8_block)"};

/// Norms and their weights, residuals, matrices that others join, rotations, writes to the cache,
/// scores, softmax and values.
inline const KernelSwitch kOperatorsApart{
    "operators_apart", false,
    "launch a kernel for each operation of the model's graph, none being fused (llama.cpp)"};

inline const KernelSwitch kAllReduceNorm{
    "allreduce_norm", false,
    "let small all-reduces of tensor parallel ranks add the residual and norm the sum "
    "(TensorRT-LLM's AllReduceFusionOp; FlashInfer's trtllm_allreduce_fusion in vLLM, "
    "fuse_allreduce_rms, and SGLang, enable_flashinfer_allreduce_fusion)"};

inline const KernelSwitch kSharesAsRouted{
    "shares_as_routed", false,
    "run the shared expert of DeepSeek-V3 and R1 on tensor parallel ranks as one more of the "
    "routed experts (SGLang: off by disable_shared_experts_fusion)"};

inline const KernelSwitch kDecodesByStages{
    "decodes_by_stages", true,
    "with two_batch_overlap, let two batches of decodes take turns by stages of a layer (SGLang); "
    "off: at each exchange (vLLM)"};

}  // namespace orrery
