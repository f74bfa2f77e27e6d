// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/gpu_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "sim/config/diagnostics.h"
#include "sim/config/input_files.h"
#include "sim/config/library.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

using namespace literals;

constexpr std::uint16_t kNvidia = 0x10de, kAmd = 0x1002;

constexpr auto kGpuParts = std::to_array<GpuPart>({
    {kNvidia, 0x15f8, "NVIDIA P100 PCIe 16GB"},
    {kNvidia, 0x15f9, "NVIDIA P100 SXM2 16GB"},
    {kNvidia, 0x1db1, "NVIDIA V100 SXM2 16GB", "dgx_1"},
    {kNvidia, 0x1db4, "NVIDIA V100 PCIe 16GB"},
    {kNvidia, 0x1db5, "NVIDIA V100 SXM2 32GB", "dgx_1", "v100_sxm_32"},
    {kNvidia, 0x1db6, "NVIDIA V100 PCIe 32GB"},
    {kNvidia, 0x1db8, "NVIDIA V100 SXM3 32GB", "dgx_2"},
    {kNvidia, 0x1e30, "NVIDIA Quadro RTX 6000 or 8000"},
    {kNvidia, 0x1eb8, "NVIDIA T4", "g4dn_metal"},
    {kNvidia, 0x20b0, "NVIDIA A100 SXM4 40GB", "dgx_a100_40"},
    {kNvidia, 0x20b1, "NVIDIA A100 PCIe 40GB", "a100_pcie_40_8"},
    {kNvidia, 0x20b2, "NVIDIA A100 SXM4 80GB", "dgx_a100"},
    {kNvidia, 0x20b3, "NVIDIA A100 SXM 64GB"},
    {kNvidia, 0x20b5, "NVIDIA A100 PCIe 80GB", "a100_pcie_8"},
    {kNvidia, 0x20b7, "NVIDIA A30 PCIe"},
    {kNvidia, 0x20bd, "NVIDIA A800 SXM4 40GB"},
    {kNvidia, 0x20f1, "NVIDIA A100 PCIe 40GB", "a100_pcie_40_8"},
    {kNvidia, 0x20f3, "NVIDIA A800 SXM4 80GB"},
    {kNvidia, 0x20f5, "NVIDIA A800 PCIe 80GB"},
    {kNvidia, 0x2204, "NVIDIA GeForce RTX 3090"},
    {kNvidia, 0x2230, "NVIDIA RTX A6000"},
    {kNvidia, 0x2235, "NVIDIA A40"},
    {kNvidia, 0x2236, "NVIDIA A10"},
    {kNvidia, 0x2237, "NVIDIA A10G", "g5_48xlarge"},
    {kNvidia, 0x2321, "NVIDIA H100 NVL 94GB", "h100_nvl_8"},
    {kNvidia, 0x2322, "NVIDIA H800 PCIe"},
    {kNvidia, 0x2324, "NVIDIA H800 SXM5", "dgx_h800"},
    {kNvidia, 0x2329, "NVIDIA H20", "hgx_h20"},
    {kNvidia, 0x232c, "NVIDIA H20 HBM3e"},
    {kNvidia, 0x2330, "NVIDIA H100 SXM5 80GB", "dgx_h100"},
    {kNvidia, 0x2331, "NVIDIA H100 PCIe", "h100_pcie_8"},
    {kNvidia, 0x2335, "NVIDIA H200 SXM 141GB", "dgx_h200"},
    {kNvidia, 0x2336, "NVIDIA H100 SXM5 96GB"},
    {kNvidia, 0x2337, "NVIDIA H100 SXM5 64GB"},
    {kNvidia, 0x2339, "NVIDIA H100 SXM5 94GB"},
    {kNvidia, 0x233a, "NVIDIA H800 NVL 94GB"},
    {kNvidia, 0x233b, "NVIDIA H200 NVL", "h200_nvl_8"},
    {kNvidia, 0x2342, "NVIDIA GH200 120GB"},
    {kNvidia, 0x2348, "NVIDIA GH200 144GB HBM3e"},
    {kNvidia, 0x2684, "NVIDIA GeForce RTX 4090", "rtx_4090_8"},
    {kNvidia, 0x26b1, "NVIDIA RTX 6000 Ada"},
    {kNvidia, 0x26b5, "NVIDIA L40"},
    {kNvidia, 0x26b9, "NVIDIA L40S", "l40s_8"},
    {kNvidia, 0x26ba, "NVIDIA L20"},
    {kNvidia, 0x27b8, "NVIDIA L4", "g6_48xlarge"},
    {kNvidia, 0x2901, "NVIDIA B200", "dgx_b200"},
    {kNvidia, 0x2941, "NVIDIA GB200", "gb200_nvl72"},
    {kNvidia, 0x29bc, "NVIDIA B100"},
    {kNvidia, 0x2b85, "NVIDIA GeForce RTX 5090", "rtx_5090_8"},
    {kNvidia, 0x2bb1, "NVIDIA RTX PRO 6000 Blackwell Workstation", "rtx_pro_6000_8"},
    {kNvidia, 0x2bb5, "NVIDIA RTX PRO 6000 Blackwell Server", "rtx_pro_6000_8"},
    {kNvidia, 0x3182, "NVIDIA B300 SXM6", "dgx_b300"},
    {kNvidia, 0x31c2, "NVIDIA GB300", "gb300_nvl72"},
    {kAmd, 0x66a0, "AMD Instinct MI50 or MI60"},
    {kAmd, 0x66a1, "AMD Instinct MI50 or MI60"},
    {kAmd, 0x738c, "AMD Instinct MI100"},
    {kAmd, 0x7408, "AMD Instinct MI250X"},
    {kAmd, 0x740c, "AMD Instinct MI250X or MI250"},
    {kAmd, 0x740f, "AMD Instinct MI210"},
    {kAmd, 0x74a0, "AMD Instinct MI300A"},
    {kAmd, 0x74a1, "AMD Instinct MI300X", "mi300x_platform"},
    {kAmd, 0x74a2, "AMD Instinct MI308X"},
    {kAmd, 0x74a5, "AMD Instinct MI325X"},
    {kAmd, 0x74a9, "AMD Instinct MI300X HF"},
    {kAmd, 0x74b5, "AMD Instinct MI300X VF", "mi300x_platform"},
    {kAmd, 0x74b9, "AMD Instinct MI325X VF"},
    {kAmd, 0x75a0, "AMD Instinct MI350X"},
    {kAmd, 0x75a3, "AMD Instinct MI355X", "mi355x_platform"},
    {kAmd, 0x75b0, "AMD Instinct MI350X VF"},
    {kAmd, 0x75b3, "AMD Instinct MI355X VF", "mi355x_platform"},
});

/// Whether a file of the library names the accelerator as its own.
bool has_accelerator(const std::string& file, const std::string& accelerator) {
  std::istringstream stream(config::input_files().read(file).text);
  std::string line;
  bool inside = false;
  while (std::getline(stream, line)) {
    const std::string_view text =
        std::string_view(line).substr(0, line.find_last_not_of(" \r") + 1);
    const auto is = [&](std::string_view key) {
      return text.starts_with(key) && text.substr(key.size()) == accelerator;
    };
    if (is("accelerator: ") || (inside && is("  extends: "))) return true;
    inside = text == "accelerator:" || (inside && text.starts_with(' '));
  }
  return false;
}

}  // namespace

const GpuPart* find_gpu_part(std::uint16_t vendor, std::uint16_t device) {
  const auto found = std::find_if(kGpuParts.begin(), kGpuParts.end(), [&](const GpuPart& part) {
    return part.vendor == vendor && part.device == device;
  });
  return found == kGpuParts.end() ? nullptr : &*found;
}

const char* usual_system(int sm) {
  switch (sm) {
    case 80:
      return "dgx_a100";
    case 90:
      return "dgx_h100";
    case 100:
      return "dgx_b200";
    case 103:
      return "dgx_b300";
    default:
      return nullptr;
  }
}

std::optional<BytesPerSecond> nvlink_rate(int sm) {
  if (sm == 60) return 20_GBps;
  if (sm == 70 || sm == 75 || sm == 80 || sm == 90) return 25_GBps;
  if (sm == 86) return 14.0625_GBps;
  if (sm == 100 || sm == 103) return 50_GBps;
  return std::nullopt;
}

std::optional<BytesPerSecond> xgmi_rate(std::string_view architecture) {
  if (architecture == "gfx906" || architecture == "906") return 46_GBps;
  if (architecture == "gfx908" || architecture == "908") return 46_GBps;
  if (architecture == "gfx90a" || architecture == "910") return 50_GBps;
  if (architecture == "gfx942" || architecture == "gfx940") return 64_GBps;
  if (architecture == "gfx950") return 76.8_GBps;
  return std::nullopt;
}

std::string systems_of_accelerator(const std::string& accelerator) {
  const config::Library& library = config::default_library();
  std::vector<std::string> systems = library.names("systems");
  std::erase_if(systems, [&](const std::string& name) {
    return !has_accelerator(library.locate("systems", name, ""), accelerator);
  });
  return comma_joined(systems);
}

void require_system(const std::string& name) {
  const config::Library& library = config::default_library();
  if (config::Library::is_path(name)) return;
  const std::vector<std::string> systems = library.names("systems");
  if (std::find(systems.begin(), systems.end(), name) != systems.end()) return;
  const std::vector<std::string> accelerators = library.names("accelerators");
  if (std::find(accelerators.begin(), accelerators.end(), name) != accelerators.end()) {
    const std::string with = systems_of_accelerator(name);
    throw config::ConfigError(
        fmt::format("--system {}: this is an accelerator, and a topology extends a system{}", name,
                    with.empty() ? "" : ", such as " + with));
  }
  throw config::ConfigError(fmt::format("--system {}: the library has no such system{}", name,
                                        did_you_mean(nearest_name(name, systems))));
}

}  // namespace orrery
