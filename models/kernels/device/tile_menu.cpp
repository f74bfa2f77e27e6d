// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/tile_menu.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "sim/config/diagnostics.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

constexpr Tile kLibrary[] = {{16, 64},   {32, 64},  {64, 64},   {128, 64},  {256, 64},
                             {64, 128},  {96, 128}, {128, 128}, {160, 128}, {192, 128},
                             {256, 128}, {64, 256}, {128, 256}, {256, 256}};
constexpr Tile kWideningTiles[] = {{16, 128}, {16, 256}};
/// Loads of one step run beside the matrix instructions of another.
constexpr double kFewestStages = 2;
constexpr double kResultShare = 0.5;  ///< share of the registers

/// Bytes of the stages of a row of inputs and of a column of weights.
OperandBytes stage_bytes(Precision precision, OperandBytes bytes) {
  const double depth = kFewestStages * stage_depth(precision);
  return {depth * bytes.input, depth * bytes.weight};
}

double operand_bytes(Tile tile, OperandBytes stages) {
  return tile.rows * stages.input + tile.columns * stages.weight;
}

double result_bytes(Tile tile) { return tile.rows * tile.columns * kResultBytes; }

bool fits(Tile tile, const TileRoom& room, OperandBytes stages) {
  const double results = result_bytes(tile);
  return operand_bytes(tile, stages) + (room.together ? results : 0) <= room.shared &&
         results <= room.results;
}

std::string kibibytes(double bytes) { return print_grouped(bytes / 1024) + " KiB"; }

/// "a tile of 256x256 with 2 stages of 64 bf16 elements needs 131,072 bytes of shared memory; ..."
std::string arithmetic(Tile tile, const TileRoom& room, const Kernel& kernel, OperandBytes stages) {
  const double operands = operand_bytes(tile, stages), results = result_bytes(tile);
  if (operands + (room.together ? results : 0) > room.shared)
    return fmt::format(
        "a tile of {}x{} with {} stages of {} {} elements needs {} bytes{}; the core has {} of "
        "shared memory",
        print_grouped(tile.rows), print_grouped(tile.columns), print_grouped(kFewestStages),
        print_grouped(stage_depth(kernel.precision)), to_string(kernel.precision),
        print_grouped(operands),
        room.together ? fmt::format(" and {} for its results", print_grouped(results)) : "",
        kibibytes(room.shared));
  return fmt::format("a tile of {}x{} needs {} bytes for its results; the core has {} of {}",
                     print_grouped(tile.rows), print_grouped(tile.columns), print_grouped(results),
                     kibibytes(room.results), room.place);
}

}  // namespace

TileRoom tile_room(const AcceleratorConfig& accelerator) {
  TileRoom room;
  if (!accelerator.core) return room;
  const CoreConfig& core = *accelerator.core;
  room.shared = core.shared_memory.value.base();
  if (core.accumulators) {
    room.results = core.accumulators->value.base();
    room.place = "accumulators";
  } else if (core.registers) {
    room.results = kResultShare * core.registers->value.base();
  } else {
    room.together = true;
  }
  return room;
}

bool is_widened(const Kernel& kernel) {
  return kernel.weights.bits > 0 &&
         static_cast<double>(kernel.weights.bits) < 8 * element_bytes(kernel.precision);
}

TileTraffic tile_traffic(double m, double n, double k, Tile tile) {
  return {std::ceil(n / tile.columns) * m * k, std::ceil(m / tile.rows) * n * k};
}

double stage_depth(Precision precision) { return 128 / element_bytes(precision); }

TileMenu tile_menu(const Kernel& kernel, const AcceleratorConfig& accelerator, OperandBytes bytes) {
  const TileRoom room = tile_room(accelerator);
  const OperandBytes stages = stage_bytes(kernel.precision, bytes);
  TileMenu menu;
  const bool asked = kernel.tile[0] > 0 || kernel.tile[1] > 0;
  const Tile wanted{static_cast<double>(std::max<std::int64_t>(1, kernel.tile[0])),
                    static_cast<double>(std::max<std::int64_t>(1, kernel.tile[1]))};
  const auto add = [&](Tile tile) {
    if (fits(tile, room, stages)) menu.add(tile);
  };
  if (asked) {
    add(wanted);
  } else {
    for (const Tile tile : kLibrary) add(tile);
    if (is_widened(kernel))
      for (const Tile tile : kWideningTiles) add(tile);
  }
  if (menu.begin() == menu.end()) {
    throw config::KeyError(
        {"operator.tile", "operator"},
        accelerator.name + ": " + arithmetic(asked ? wanted : kLibrary[0], room, kernel, stages));
  }
  return menu;
}

}  // namespace orrery
