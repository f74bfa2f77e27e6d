// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/kernel_rules.h"

#include <array>

namespace orrery {
namespace {

struct SwitchKey {
  const char* key;
  EngineSwitch KernelRules::*member;
  const char* help;
};

constexpr std::array kSwitches = {
    SwitchKey{"router", &KernelRules::router,
              "compute expert choices and weights from scores in one kernel (SGLang's "
              "moe_fused_gate, TensorRT-LLM's noAuxTc, vLLM's grouped_topk), not in one for each "
              "operation"},
    SwitchKey{"allreduce_norm", &KernelRules::allreduce_norm,
              "let small all-reduces of tensor parallel ranks add the residual and norm the sum "
              "(TensorRT-LLM's AllReduceFusionOp; FlashInfer's trtllm_allreduce_fusion in vLLM, "
              "fuse_allreduce_rms, and SGLang, enable_flashinfer_allreduce_fusion)"},
    SwitchKey{"pdl", &KernelRules::pdl,
              "start kernels by programmatic dependent launch: launch and set-up run beside the "
              "end of the kernel before (TRTLLM_ENABLE_PDL)"},
    SwitchKey{"quant_fusion", &KernelRules::quant_fusion,
              "let norms, activations and attention quantise what a product in 8 bits or fewer "
              "reads; off: kernels of their own do (vLLM: fuse_norm_quant, fuse_act_quant, "
              "fuse_attn_quant)"},
    SwitchKey{"shares_as_routed", &KernelRules::shares_as_routed,
              "run the shared expert of DeepSeek-V3 and R1 on tensor parallel ranks as one more "
              "of the routed experts (SGLang: off by disable_shared_experts_fusion)"},
    SwitchKey{"decodes_by_stages", &KernelRules::decodes_by_stages,
              "with two_batch_overlap, let two batches of decodes take turns by stages of a "
              "layer (SGLang); off: at each exchange (vLLM)"},
    SwitchKey{"operators_apart", &KernelRules::operators_apart,
              "launch a kernel for each operation of the model's graph, none being fused "
              "(llama.cpp)"},
    SwitchKey{"quantises_widened", &KernelRules::quantises_widened,
              "quantise the input of each product whose weights are narrow by a kernel of its "
              "own, with operators_apart (llama.cpp on CUDA)"},
    SwitchKey{"decodes_by_head", &KernelRules::decodes_by_head,
              "let each head of a decode read keys and values for itself, also those that heads "
              "share"}};

}  // namespace

const config::Schema<KernelRules>& KernelRules::schema() {
  static const auto schema = [] {
    config::Schema<KernelRules> keys("kernels", "kernels of an engine; auto: those of its version");
    for (const SwitchKey& one : kSwitches) keys.optional(one.key, one.member, one.help);
    return keys
        .optional("experts", &KernelRules::experts,
                  "kernels of experts: those that were measured (SGLang: cutlass); triton: "
                  "Triton's fused_moe where tensor cores do not scale blocks, priced as products "
                  "of fp8; deep_gemm: DeepGEMM's, beside DeepEP, priced as its dense products; "
                  "marlin: Marlin's, which widen weights")
        .derive([](KernelRules& kernels) {
          for (const SwitchKey& one : kSwitches)
            if (kernels.*one.member == EngineSwitch::kAuto)
              kernels.*one.member = KernelRules().*one.member;
        });
  }();
  return schema;
}

}  // namespace orrery
