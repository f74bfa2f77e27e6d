// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/family.h"

#include "models/kernels/roofline.h"
#include "models/kernels/tiles/gemm.h"
#include "models/kernels/tiles/grouped_gemm.h"
#include "models/kernels/tiles/prefill.h"
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

}  // namespace

std::size_t parameter_index(const KernelFamily& family, const std::string& name) {
  const std::vector<ParameterInfo>& all = family.parameters();
  std::size_t index = 0;
  while (index < all.size() && name != all[index].name) ++index;
  return index;
}

FamilyOf family_of(const std::string& model, KernelClass kind) {
  static const RooflineFamily roofline;
  static const PrefillFamily prefill;
  static const GemmFamily gemm;
  static const GroupedGemmFamily grouped;
  if (model == "tiles" && kind == KernelClass::kGemm) return {&gemm, group_of(kind)};
  if (model == "tiles" && kind == KernelClass::kGroupedGemm) return {&grouped, group_of(kind)};
  if (model == "tiles" && kind == KernelClass::kAttentionPrefill) return {&prefill, group_of(kind)};
  if (model == "tiles" || model == "roofline") return {&roofline, group_of(kind)};
  throw config::ConfigError("unknown kernel model '" + model + "'; there are: roofline, tiles");
}

}  // namespace orrery
