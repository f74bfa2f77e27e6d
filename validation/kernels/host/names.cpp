// SPDX-License-Identifier: Apache-2.0
#include "host/names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

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

using Tile = std::pair<int, int>;

/// The enumerators of cublasLtMatmulTile_t from 1. They grew by a rule: after the first 36 come the
/// columns in steps of 64 that hold at most 48 Ki entries, then rows in steps of 64 with columns in
/// steps of 8 up to 64 Ki, each leaving out what there was; then four by hand.
std::vector<Tile> tiles() {
  std::vector<Tile> result = {{8, 8},     {8, 16},    {16, 8},   {8, 32},   {16, 16},   {32, 8},
                              {8, 64},    {16, 32},   {32, 16},  {64, 8},   {32, 32},   {32, 64},
                              {64, 32},   {32, 128},  {64, 64},  {128, 32}, {64, 128},  {128, 64},
                              {64, 256},  {128, 128}, {256, 64}, {64, 512}, {128, 256}, {256, 128},
                              {512, 64},  {64, 96},   {96, 64},  {96, 128}, {128, 160}, {160, 128},
                              {192, 128}, {128, 192}, {128, 96}, {32, 256}, {256, 32},  {8, 128}};
  const auto extend = [&result](int row_step, int column_step, int most) {
    for (int rows = row_step; rows <= 768; rows += row_step) {
      for (int columns = column_step; columns <= 768; columns += column_step) {
        const bool known =
            std::find(result.begin(), result.end(), Tile{rows, columns}) != result.end();
        if (rows * columns <= most && !known) result.emplace_back(rows, columns);
      }
    }
  };
  extend(8, 64, 48 * 1024);
  extend(64, 8, 64 * 1024);
  result.insert(result.end(), {{256, 512}, {256, 1024}, {512, 512}, {512, 1024}});
  return result;
}

template <std::size_t kCount>
std::string name_in(const std::array<const char*, kCount>& names, int first, int id) {
  const auto index = static_cast<std::size_t>(id - first);
  if (id < first || index >= kCount) return std::to_string(id);
  return names[index];
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

std::string tile_name(int id) {
  static const std::vector<Tile> known = tiles();
  if (id < 1 || static_cast<std::size_t>(id) > known.size()) return std::to_string(id);
  const Tile& tile = known[static_cast<std::size_t>(id) - 1];
  return std::to_string(tile.first) + "x" + std::to_string(tile.second);
}

std::string cluster_name(int id) {
  static constexpr std::array<const char*, 50> kNames = {
      "1x1x1",  "2x1x1",  "4x1x1",  "1x2x1",  "2x2x1",  "4x2x1",  "1x4x1",  "2x4x1",  "4x4x1",
      "8x1x1",  "1x8x1",  "8x2x1",  "2x8x1",  "16x1x1", "1x16x1", "3x1x1",  "5x1x1",  "6x1x1",
      "7x1x1",  "9x1x1",  "10x1x1", "11x1x1", "12x1x1", "13x1x1", "14x1x1", "15x1x1", "3x2x1",
      "5x2x1",  "6x2x1",  "7x2x1",  "1x3x1",  "2x3x1",  "3x3x1",  "4x3x1",  "5x3x1",  "3x4x1",
      "1x5x1",  "2x5x1",  "3x5x1",  "1x6x1",  "2x6x1",  "1x7x1",  "2x7x1",  "1x9x1",  "1x10x1",
      "1x11x1", "1x12x1", "1x13x1", "1x14x1", "1x15x1"};
  return id == 0 ? "auto" : name_in(kNames, 2, id);
}

std::string stages_name(int id) {
  constexpr int kFirstAuto = 32;
  static constexpr std::array<const char*, 7> kAuto = {"8xauto",   "16xauto",  "32xauto", "64xauto",
                                                       "128xauto", "256xauto", "768xauto"};
  if (id >= 1 && id <= 24) {  // 16, 32, 64, 128 elements x 1 to 6 stages
    return std::to_string(16 << ((id - 1) / 6)) + "x" + std::to_string((id - 1) % 6 + 1);
  }
  static constexpr std::array<const char*, 7> kOther = {"32x10", "8x4", "16x10", "8x5",
                                                        "29",    "30",  "8x3"};
  return id >= kFirstAuto ? name_in(kAuto, kFirstAuto, id) : name_in(kOther, 25, id);
}

}  // namespace orrery::measure
