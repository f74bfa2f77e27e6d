// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/kernel_classes.h"

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

namespace orrery {
namespace {

/// The class of number N is at place N. Made at its first use, because files add classes while
/// statics are initialised.
std::vector<std::pair<KernelClass, const char*>>& registry() {
  static std::vector<std::pair<KernelClass, const char*>> classes = {
      {KernelClass::kGemm, "gemm"},
      {KernelClass::kGroupedGemm, "grouped_gemm"},
      {KernelClass::kAttentionPrefill, "attention_prefill"},
      {KernelClass::kAttentionDecode, "attention_decode"},
      {KernelClass::kMlaPrefill, "mla_prefill"},
      {KernelClass::kMlaDecode, "mla_decode"},
      {KernelClass::kNormalization, "normalization"},
      {KernelClass::kElementwise, "elementwise"},
      {KernelClass::kEmbedding, "embedding"},
      {KernelClass::kSoftmax, "softmax"},
      {KernelClass::kOptimizer, "optimizer"},
      {KernelClass::kQuantize, "quantize"},
      {KernelClass::kCopy, "copy"},
      {KernelClass::kScan, "scan"},
      {KernelClass::kConvolution, "convolution"},
      {KernelClass::kSparse, "sparse"},
      {KernelClass::kLora, "lora"},
  };
  return classes;
}

}  // namespace

const std::vector<std::pair<KernelClass, const char*>>& kernel_classes() { return registry(); }

const char* to_string(KernelClass kind) {
  return registry().at(static_cast<std::size_t>(kind)).second;
}

std::optional<KernelClass> kernel_class_named(std::string_view name) {
  for (const auto& [kind, known] : registry())
    if (name == known) return kind;
  return std::nullopt;
}

KernelClass added_kernel_class(const char* name) {
  if (const auto known = kernel_class_named(name)) return *known;
  const std::size_t number = registry().size();
  if (number > std::numeric_limits<std::uint8_t>::max())
    throw std::logic_error("no number is left for the class of kernels '" + std::string(name) +
                           "'");
  registry().emplace_back(static_cast<KernelClass>(number), name);
  return registry().back().first;
}

}  // namespace orrery
