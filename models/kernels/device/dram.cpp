// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/dram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

namespace orrery {
namespace {

constexpr double kBurst = 32;  ///< bytes of an access, in all standards below
constexpr double kFetch = 64;  ///< bytes that a cache asks for at least: two sectors
constexpr double kQueue = 64;  ///< bursts of one direction; a common size in simulators of DRAM
constexpr double kPerBank = 200.0 / 350;  ///< tRFCpb / tRFC of HBM3 (JESD238)

/// Nanoseconds. HBM3 at 6.4 Gb/s as in Ramulator 2 (tCL, tFAW) and its preset (tWTR); they change
/// little between generations, and are taken for all.
constexpr double kReadLatency = 12.5;
constexpr double kWriteToRead = 4;
constexpr double kFourActivates = 15;

/// Data pins of a (pseudo) channel by standard: JESD235 (HBM2) 64, JESD238 (HBM3) and HBM4 32,
/// JESD209-4 (LPDDR4) 16.
int channel_width(std::string_view kind) {
  constexpr std::array<std::pair<std::string_view, int>, 4> kWidths = {
      {{"HBM2", 64}, {"HBM3", 32}, {"HBM4", 32}, {"LPDDR4", 16}}};
  for (const auto& [prefix, width] : kWidths)
    if (kind.substr(0, prefix.size()) == prefix) return width;
  return 0;
}

/// The memory whose pins tell the losses.
const MemoryConfig& organised(const MemoryConfig& memory) {
  return memory.stacks || !memory.sold ? memory : *memory.sold;
}

/// Nanoseconds that a burst occupies its channel; 0 where that is not known.
double burst_time(const MemoryConfig& memory) {
  const int width = channel_width(memory.kind);
  if (width == 0 || !memory.stacks || !memory.bus_width || !memory.data_rate) return 0;
  return kBurst / (width * memory.data_rate->value.base()) * 1e9;
}

}  // namespace

double DramEfficiency::stream(double reads) const {
  const double writes = 1 - reads;
  return read / (reads + writes * (1 + write_cost) + std::min(reads, writes) * turnaround);
}

std::optional<DramEfficiency> dram_efficiency(const MemoryConfig& memory) {
  const MemoryConfig& pins = organised(memory);
  const double burst = burst_time(pins);
  if (burst == 0) return std::nullopt;
  // Two clocks of a quarter of the data rate are eight bits of a pin; a burst of HBM3 is as long.
  const double two_clocks = 1e9 / pins.data_rate->value.base();
  DramEfficiency efficiency;
  efficiency.read = 1 - memory.refresh.value * kPerBank;
  efficiency.turnaround = (kWriteToRead + kReadLatency + two_clocks) / (kQueue * burst);
  return efficiency;
}

std::optional<double> random_read_efficiency(const MemoryConfig& memory, Bytes bytes) {
  const auto dram = dram_efficiency(memory);
  if (!dram) return std::nullopt;
  const double burst = burst_time(organised(memory));
  const double fetched = std::ceil(bytes.base() / kFetch) * kFetch;
  const double useful = bytes.base() / kBurst * burst;
  return dram->read * useful / std::max(fetched / kBurst * burst, kFourActivates / 4);
}

}  // namespace orrery
