// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/engine_fusions.h"

namespace orrery {

const config::Schema<EngineFusions>& EngineFusions::schema() {
  using F = EngineFusions;
  static const auto schema =
      config::Schema<F>("fusions", "kernels in the place of several, and launches that others hide")
          .optional("router", &F::router,
                    "whether scores become experts and weights in one kernel (SGLang's "
                    "moe_fused_gate, TensorRT-LLM's noAuxTc, vLLM's grouped_topk from 0.11 on), "
                    "not in one for each operation")
          .optional("allreduce_norm", &F::allreduce_norm,
                    "whether small all-reduces of tensor parallel ranks add the residual and norm "
                    "the sum (TensorRT-LLM's AllReduceFusionOp; FlashInfer's "
                    "trtllm_allreduce_fusion in vLLM, fuse_allreduce_rms, and SGLang, "
                    "enable_flashinfer_allreduce_fusion)")
          .optional("pdl", &F::pdl,
                    "whether kernels start by programmatic dependent launch: launch and set-up "
                    "beside the end of the kernel before (TRTLLM_ENABLE_PDL)");
  return schema;
}

EngineFusions EngineFusions::resolved(const EngineFusions& own) const {
  const auto said = [](EngineSwitch here, EngineSwitch otherwise) {
    return here == EngineSwitch::kAuto ? otherwise : here;
  };
  return {said(router, own.router), said(allreduce_norm, own.allreduce_norm), said(pdl, own.pdl)};
}

}  // namespace orrery
