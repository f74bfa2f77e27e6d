// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/doubts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/machine/accelerator_config.h"
#include "sim/machine/clock.h"
#include "sim/machine/what_if.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

constexpr double kNear = 0.04;  // two or four times, rounded figures on both sides

bool near(double ratio, double expected) { return std::abs(ratio / expected - 1) <= kNear; }

/// Collects findings about keys of one device.
class Doubts {
 public:
  explicit Doubts(std::string within) : within_(std::move(within)) {}

  void add(const std::string& key, std::string message, std::vector<std::string> notes = {}) {
    found_.emplace_back(within_ + key, std::move(message),
                        config::Advice{.suggestion = {}, .notes = std::move(notes)});
  }
  std::vector<config::KeyError> take() { return std::move(found_); }

 private:
  std::string within_;
  std::vector<config::KeyError> found_;
};

std::string key_of(Precision precision) {
  return std::string("compute.matrix.") + to_string(precision);
}

const char* const kDenseNote =
    "rates are dense: data sheets lead with those of sparse operands, which are twice as high";

// Figures without a source count as changed on purpose (what_if.h), so that they are no error.
void doubt_rates(const ComputeConfig& compute, Doubts& doubts) {
  for (const auto& [precision, per_clock] : compute.matrix_per_clock) {
    const auto rate = compute.matrix.find(precision);
    if (rate == compute.matrix.end()) continue;
    const FlopsPerSecond product(compute.units.value * compute.clock.value.base() *
                                 per_clock.value);
    const double ratio = rate->second.value / product;
    if (std::abs(ratio - 1) <= kSheetRounding) continue;
    std::vector<std::string> notes;
    if (near(ratio, 2)) notes.emplace_back(kDenseNote);
    doubts.add(key_of(precision),
               "units x clock x matrix_per_clock is " + print(product) + ", not " +
                   print(rate->second.value),
               std::move(notes));
  }
}

/// The fastest of some formats; 0: the device has none.
FlopsPerSecond fastest(const ComputeConfig& compute, std::initializer_list<Precision> formats) {
  FlopsPerSecond highest(0);
  for (const Precision format : formats) {
    const auto rate = compute.matrix.find(format);
    if (rate != compute.matrix.end()) highest = std::max(highest, rate->second.value);
  }
  return highest;
}

/// Four times the rate at half the width: few units do that, but sparse over dense rates look so.
/// Those that do, as Trainium3's of MXFP8, say so by their FLOPs a clock, which doubt_rates()
/// checks. The wide rate is the fastest of its width: graphics cards halve that of fp8, whose sums
/// they keep in fp32, and not that of int8.
void doubt_ratios(const ComputeConfig& compute, Doubts& doubts) {
  const FlopsPerSecond wide = fastest(compute, {Precision::kBf16, Precision::kFp16});
  const FlopsPerSecond half = fastest(compute, {Precision::kFp8, Precision::kInt8});
  const auto check = [&](Precision narrow, FlopsPerSecond slow, const char* width) {
    const auto fast = compute.matrix.find(narrow);
    if (fast == compute.matrix.end() || slow.base() <= 0) return;
    if (compute.matrix_per_clock.count(narrow) > 0) return;
    if (!near(fast->second.value / slow, 4)) return;
    doubts.add(key_of(narrow),
               std::string(to_string(narrow)) + " is four times as fast as formats of " + width,
               {kDenseNote});
  };
  check(Precision::kFp8, wide, "16 bits");
  check(Precision::kNvfp4, half, "8 bits");
}

/// Pins without sources that do not give the bandwidth; with sources it is an error.
void doubt_memory(const MemoryConfig& memory, Doubts& doubts) {
  const auto written = [](const auto& fact) { return fact && fact->source.empty(); };
  if (!written(memory.stacks) || !written(memory.bus_width) || !written(memory.data_rate)) return;
  const BytesPerSecond pins = bandwidth_of_pins(memory);
  if (std::abs(pins / memory.bandwidth.value - 1) <= kSheetRounding) return;
  doubts.add("memory.bandwidth", "stacks x bus_width x data_rate is " + print(pins) + ", not " +
                                     print(memory.bandwidth.value));
}

void doubt_port(const std::string& name, const PortConfig& port, Doubts& doubts) {
  const BytesPerSecond known = link_rate(port.kind);
  if (!port.present() || known.base() == 0 || port.links.value == 0) return;
  const BytesPerSecond one = port.bandwidth.published() / port.links.value;
  const double ratio = one / known;
  if (ratio <= 1 + kSheetRounding) return;  // slower: an adapter or a device that does not reach it
  std::vector<std::string> notes;
  if (near(ratio, 2)) notes.emplace_back("bandwidths are one way: data sheets add up both");
  if (near(ratio, 8)) notes.emplace_back("Gb/s are bits, GB/s bytes");
  doubts.add(name + ".bandwidth",
             print(port.bandwidth.published()) + " over " + std::to_string(port.links.value) +
                 " links are " + print(one) + " each; " + port.kind + " has " + print(known) +
                 " one way",
             std::move(notes));
}

/// Power of the hottest product at the rate that it reaches, with the memory streaming beside it.
Watts full_load(const AcceleratorConfig& device) {
  const Watts rest = device.power.floor() + busy_power(device, 1) +
                     device.memory.bandwidth.value * device.kernel.memory_efficiency.value *
                         device.energy.memory.value;
  Watts highest = rest;
  for (const auto& [precision, rate] : device.compute.matrix) {
    const auto share = device.kernel.matrix_efficiency.find(precision);
    const auto energy = device.energy.matrix.find(precision);
    if (share == device.kernel.matrix_efficiency.end() || energy == device.energy.matrix.end())
      continue;
    highest = std::max(highest, rest + rate.value * share->second.value * energy->second.value);
  }
  return highest;
}

void doubt_power(const AcceleratorConfig& device, Doubts& doubts) {
  // A part draws its share of the design power, and what-ifs of units keep that of the whole.
  if (device.partition || device.sold || !device.followed.empty()) return;
  constexpr double kLeast = 0.5, kMost = 1.5;
  const Watts load = full_load(device), tdp = device.power.tdp.value;
  const double share = load / tdp;
  if (share >= kLeast && share <= kMost) return;
  const std::string rounded = print_grouped(load.base(), load.base() < 100 ? 2 : 0) + " W";
  doubts.add(
      "power.tdp",
      "the hottest product, with the memory streaming, takes " + rounded + ", " +
          print_grouped(share, 2) + " of the design power",
      {share > 1 ? "rates of sparse operands, or energies of an older process, look so"
                 : "a power of a whole board or server beside rates of one device looks so"});
}

}  // namespace

// NVLink: NVIDIA white papers, Volta to Rubin; InfiniBand: IBTA roadmap; PCIe: PCI-SIG, 16 lanes
// with their encoding (128b/130b; flits of generation 6); Infinity Fabric: AMD CDNA 2 and 3 white
// papers, CDNA 4 Hot Chips 2025 (76.8 GB/s). One way.
BytesPerSecond link_rate(const std::string& kind) {
  constexpr double kGB = 1e9, kGb = 1e9 / 8;
  static const std::array<std::pair<std::string_view, double>, 19> rates = {{
      {"NVLink 1", 20 * kGB},          {"NVLink 2", 25 * kGB},
      {"NVLink 3", 25 * kGB},          {"NVLink 4", 25 * kGB},
      {"NVLink 5", 50 * kGB},          {"NVLink 6", 100 * kGB},
      {"InfiniBand EDR", 100 * kGb},   {"InfiniBand HDR", 200 * kGb},
      {"InfiniBand NDR", 400 * kGb},   {"InfiniBand XDR", 800 * kGb},
      {"PCIe 3.0 x16", 15.754 * kGB},  {"PCIe 4.0 x16", 31.508 * kGB},
      {"PCIe 5.0 x16", 63.015 * kGB},  {"PCIe 6.0 x16", 126 * kGB},
      {"PCIe 4.0 x8", 15.754 * kGB},   {"PCIe 5.0 x8", 31.508 * kGB},
      {"Infinity Fabric 3", 50 * kGB}, {"Infinity Fabric 4", 76.8 * kGB},
      {"Slingshot 11", 200 * kGb},
  }};
  const auto found = std::find_if(rates.begin(), rates.end(),
                                  [&](const auto& rate) { return rate.first == kind; });
  return BytesPerSecond(found == rates.end() ? 0 : found->second);
}

std::vector<config::KeyError> doubts(const AcceleratorConfig& device, const std::string& within) {
  Doubts found(within);
  doubt_rates(device.compute, found);
  doubt_ratios(device.compute, found);
  doubt_memory(device.memory, found);
  doubt_port("scale_up", device.scale_up, found);
  doubt_port("scale_out", device.scale_out, found);
  doubt_port("host_link", device.host_link, found);
  doubt_power(device, found);
  return found.take();
}

}  // namespace orrery
