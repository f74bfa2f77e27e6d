// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/family.h"

#include <stdexcept>
#include <utility>

#include "models/kernels/device/roofline.h"
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

using Families = std::map<KernelClass, TileFamily>;

/// Made at its first use, because families of other files register while statics are initialised.
Families& registry() {
  static Families registered;
  return registered;
}

constexpr const char* kNarrowWeights = "_w";

}  // namespace

const std::map<KernelClass, TileFamily>& tile_families() { return registry(); }

void add_tile_family(KernelClass kind, std::string help, const KernelFamily& family) {
  if (!registry().emplace(kind, TileFamily{std::move(help), &family}).second)
    throw std::logic_error("two tile families of " + std::string(to_string(kind)));
}

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
  const auto tiled = model == "tiles" ? registry().find(kind) : registry().end();
  return {tiled != registry().end() ? tiled->second.family : &roofline, group_of(kind)};
}

FamilyOf family_of(const std::string& model, const Kernel& kernel) {
  FamilyOf of = family_of(model, kernel.kind);
  if (kernel.weights.bits > 0 && !kernel.weights.marlin)
    of.group += kNarrowWeights + std::to_string(kernel.weights.bits);
  return of;
}

std::string wide_group(const std::string& group) {
  const std::size_t suffix = group.rfind(kNarrowWeights);
  const bool narrow = suffix != std::string::npos &&
                      group.find_first_not_of("0123456789", suffix + 2) == std::string::npos;
  return narrow ? group.substr(0, suffix) : group;
}

}  // namespace orrery
