// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/units/text.h"

namespace orrery {

/// Times are whole picoseconds, and wire times of messages are rounded up.
inline constexpr double kSlowerByRounding = 1e-3;

/// Figures of an accelerator of which more is better, or beginnings of their paths.
inline constexpr std::array<std::string_view, 26> kBetterFigures = {"compute.clock",
                                                                    "compute.boost_clock",
                                                                    "compute.units",
                                                                    "compute.matrix.",
                                                                    "compute.matrix_per_clock.",
                                                                    "compute.vector",
                                                                    "compute.special",
                                                                    "memory.bandwidth",
                                                                    "memory.capacity",
                                                                    "memory.stacks",
                                                                    "memory.data_rate",
                                                                    "memory.exchange",
                                                                    "core.registers",
                                                                    "core.accumulators",
                                                                    "core.shared_memory",
                                                                    "core.shared_bandwidth",
                                                                    "core.max_blocks",
                                                                    "core.max_warps",
                                                                    "cache.capacity",
                                                                    "cache.bandwidth",
                                                                    "cache.far_bandwidth",
                                                                    "scale_up.bandwidth",
                                                                    "scale_out.bandwidth",
                                                                    "host_link.bandwidth",
                                                                    "copy_engines.bandwidth",
                                                                    "die_to_die"};

inline bool is_better_figure(std::string_view path) {
  constexpr std::string_view kAccelerator = "system.accelerator.";
  if (!path.starts_with(kAccelerator)) return false;
  path.remove_prefix(kAccelerator.size());
  return std::any_of(kBetterFigures.begin(), kBetterFigures.end(), [&](std::string_view better) {
    return better.ends_with('.') ? path.starts_with(better) : path == better;
  });
}

/// Whether a change lets a device choose how it runs as before: a higher clock need not be used.
/// Not slower under a power cap either, but for the clock that steps have in common.
inline bool may_be_left_unused(std::string_view assignment) {
  return assignment.find("compute.clock=") != std::string_view::npos ||
         assignment.find("compute.boost_clock=") != std::string_view::npos;
}

/// Slowdown that a higher clock may bring under a cap: one clock serves all kernels of a step.
inline constexpr double kSlowerUnderCap = 0.01;

/// Slowdown of a product whose tiles a library chooses by estimates (the mean over its menu): a
/// core that holds larger tiles offers more to choose from. At most 4.1 % of 1,638 products on an
/// H100 with 64 to 512 KiB of registers; the fastest tile is never slower.
inline constexpr double kSlowerByMenu = 0.05;

/// Slowdown of a collective whose protocol and algorithm NCCL chooses by its own cost model: faster
/// links move the size at which it changes over, and near that size it may choose the slower one.
/// By the same protocol nothing is slower (CollectiveLaws).
inline constexpr double kSlowerByProtocol = 0.01;

/// The slowdown that an assignment may bring, as a share of the time.
inline double allowed_slowdown(std::string_view assignment) {
  const auto changes = [&](std::string_view key) {
    return assignment.find(key) != std::string_view::npos;
  };
  if (changes("core.registers=") || changes("core.accumulators=") || changes("core.shared_memory="))
    return kSlowerByMenu;
  if (changes("scale_up.bandwidth=") || changes("scale_out.bandwidth=")) return kSlowerByProtocol;
  return kSlowerByRounding;
}

/// Assignments that multiply one figure of the accelerator each.
inline std::vector<std::string> better_figures(const LoadedExperiment& loaded, double factor) {
  std::vector<std::string> assignments;
  for (const config::Leaf& leaf : loaded.leaves()) {
    if (!leaf.value || *leaf.value == 0 || !is_better_figure(leaf.path)) continue;
    const double more = *leaf.value * factor;
    assignments.push_back(leaf.path + "=" +
                          (leaf.unit.empty() ? std::to_string(std::llround(more))
                                             : print_number(more) + " " + leaf.unit));
  }
  return assignments;
}

}  // namespace orrery
