// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/file_path.h"
#include "sim/config/schema.h"
#include "workloads/schedules/schedule.h"

namespace orrery {

/// Which slices the chunks of a rank hold.
enum class ChunkPlacement { kRoundRobin, kFolded };

/// `schedule:` a name, or the passes of each rank.
///
/// Passes are written "F3.1": a forward pass (F), backward pass (B) or gradients of weights (W) of
/// micro-batch 3 through chunk 1, which may be left out where it is 0. Where a micro-batch has a W,
/// its B are the gradients of activations alone. "F4+B2": side by side.
struct ScheduleConfig {
  std::string name = kAutoSchedule;
  FilePath file;                    ///< text with a line of passes for each rank
  std::vector<std::string> passes;  ///< lines of such a text
  ChunkPlacement chunks = ChunkPlacement::kRoundRobin;

  static const config::Schema<ScheduleConfig>& schema();
  /// The schedule of given passes; null where a name says which.
  /// @throws config::ConfigError at what is no pass
  std::shared_ptr<const PipelineSchedule> written() const;
};

template <>
struct config::EnumNames<ChunkPlacement> {
  static constexpr std::pair<ChunkPlacement, const char*> values[] = {
      {ChunkPlacement::kRoundRobin, "round_robin"}, {ChunkPlacement::kFolded, "folded"}};
};

}  // namespace orrery
