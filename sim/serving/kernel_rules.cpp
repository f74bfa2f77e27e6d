// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/kernel_rules.h"

#include <map>
#include <stdexcept>
#include <string>

#include "sim/config/schema.h"

namespace orrery {
namespace {

struct Switches {
  std::map<std::string_view, const KernelSwitch*> by_key;
  bool complete = false;
};

Switches& all() {
  static Switches switches;
  return switches;
}

}  // namespace

KernelSwitch::KernelSwitch(const char* key, bool otherwise, const char* help)
    : key_(key), otherwise_(otherwise), help_(help), index_(all().by_key.size()) {
  const bool is_new = all().by_key.emplace(key, this).second;
  if (!is_new || all().complete || index_ == KernelRules::kMostSwitches)
    throw std::logic_error(std::string("cannot add the kernel switch ") + key);
}

bool KernelRules::on(const KernelSwitch& which) const {
  const EngineSwitch value = switches[which.index_];
  return value == EngineSwitch::kAuto ? which.otherwise_ : value == EngineSwitch::kOn;
}

bool KernelRules::on(std::string_view key) const { return on(*all().by_key.at(key)); }

void KernelRules::set(const KernelSwitch& which, bool on) {
  switches[which.index_] = on ? EngineSwitch::kOn : EngineSwitch::kOff;
}

void KernelRules::set(std::string_view key, bool on) { set(*all().by_key.at(key), on); }

const config::Schema<KernelRules>& KernelRules::schema() {
  static const auto schema = [] {
    config::Schema<KernelRules> keys("kernels", "kernels of an engine; auto: those of its version");
    all().complete = true;
    for (const auto& [key, one] : all().by_key)
      keys.optional(key, &KernelRules::switches, one->index_, one->help_);
    return keys.optional(
        "experts", &KernelRules::experts,
        "kernels of experts: those that were measured (SGLang: cutlass); triton: Triton's "
        "fused_moe where tensor cores do not scale blocks, priced as products of fp8; deep_gemm: "
        "DeepGEMM's, beside DeepEP, priced as its dense products; marlin: Marlin's, which widen "
        "weights");
  }();
  return schema;
}

}  // namespace orrery
