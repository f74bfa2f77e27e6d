// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/family.h"

#include "models/kernels/roofline.h"
#include "models/kernels/tiles/decode.h"
#include "models/kernels/tiles/gemm.h"
#include "models/kernels/tiles/grouped_gemm.h"
#include "models/kernels/tiles/mla.h"
#include "models/kernels/tiles/prefill.h"
#include "models/kernels/tiles/quantize.h"
#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

/// Classes that stream rows through vector lanes share their parameters, each other class has its
/// own.
const char* group_of(KernelClass kind) {
  switch (kind) {
    case KernelClass::kNormalization:
    case KernelClass::kElementwise:
    case KernelClass::kEmbedding:
    case KernelClass::kSoftmax:
    case KernelClass::kOptimizer:
      return "stream";
    default:
      return to_string(kind);
  }
}

/// Null where tiles are not modelled.
const KernelFamily* tile_family(KernelClass kind) {
  static const GemmFamily gemm;
  static const GroupedGemmFamily grouped;
  static const PrefillFamily prefill;
  static const DecodeFamily decode;
  static const MlaPrefillFamily mla_prefill;
  static const MlaDecodeFamily mla_decode;
  static const QuantizeFamily quantize;
  switch (kind) {
    case KernelClass::kGemm:
      return &gemm;
    case KernelClass::kGroupedGemm:
      return &grouped;
    case KernelClass::kAttentionPrefill:
      return &prefill;
    case KernelClass::kAttentionDecode:
      return &decode;
    case KernelClass::kMlaPrefill:
      return &mla_prefill;
    case KernelClass::kMlaDecode:
      return &mla_decode;
    case KernelClass::kQuantize:
      return &quantize;
    default:
      return nullptr;
  }
}

}  // namespace

std::size_t parameter_index(const KernelFamily& family, const std::string& name) {
  const std::vector<ParameterInfo>& all = family.parameters();
  std::size_t index = 0;
  while (index < all.size() && name != all[index].name) ++index;
  return index;
}

FamilyOf family_of(const std::string& model, KernelClass kind) {
  static const RooflineFamily roofline;
  if (model != "tiles" && model != "roofline")
    throw config::ConfigError("unknown kernel model '" + model + "'; there are: roofline, tiles");
  const KernelFamily* tiled = model == "tiles" ? tile_family(kind) : nullptr;
  return {tiled ? tiled : &roofline, group_of(kind)};
}

}  // namespace orrery
