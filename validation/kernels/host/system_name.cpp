// SPDX-License-Identifier: Apache-2.0
#include "host/system_name.h"

#include <array>
#include <cctype>
#include <string_view>

namespace orrery::measure {
namespace {

struct Known {
  std::string_view slug, system;
};

/// Drivers name the SXM parts plainly ("NVIDIA H200") and say PCIe or NVL of the others.
constexpr std::array kKnown = {
    Known{"a100_sxm4_40gb", "a100_sxm_40gb"},
    Known{"a100_sxm4_80gb", "a100_sxm"},
    Known{"h100_80gb_hbm3", "h100_sxm"},
    Known{"h100_sxm5_80gb", "h100_sxm"},
    Known{"h200", "h200_sxm"},
    Known{"b200", "b200_sxm"},
    Known{"gb200", "gb200"},
};

/// Lower case letters and digits; a run of anything else is one underscore.
std::string slug(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      result += static_cast<char>(std::tolower(byte));
    } else if (!result.empty() && result.back() != '_') {
      result += '_';
    }
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  return result;
}

}  // namespace

std::string system_name(const std::string& gpu) {
  std::string name = slug(gpu);
  constexpr std::string_view kVendor = "nvidia_";
  if (name.compare(0, kVendor.size(), kVendor) == 0) name.erase(0, kVendor.size());
  for (const Known& known : kKnown) {
    if (name == known.slug) return std::string(known.system);
  }
  return name.empty() ? "unknown" : name;
}

}  // namespace orrery::measure
