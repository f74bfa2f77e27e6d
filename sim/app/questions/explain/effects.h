// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/known_replay.h"
#include "sim/app/pricing/tile_store.h"
#include "sim/results/run_record.h"

namespace orrery {

/// Keys of a configuration by what trying other values of them told.
struct Effects {
  std::vector<std::string> none;          ///< nothing of the result changes
  std::vector<std::string> not_examined;  ///< telling would take more than about a second
};

/// An experiment and what becomes of its result where one value is another. A try builds, prices
/// and reports the experiment anew in this process; it replays only where a replay rests on
/// something else and prices do not show it already.
class Trials {
 public:
  /// @param loaded has to outlive this object
  /// @throws as simulate()
  explicit Trials(const LoadedExperiment& loaded);

  /// As it is; without components.
  const RunRecord& record() const { return record_; }
  const KnownReplay& replay() const { return replay_; }

  enum class Answer { kSame, kOther, kRefused, kTooLong };
  /// The result with `path=text`.
  Answer with(const std::string& path, const std::string& text);

  /// Tries all other_values() of a key: kOther where one of them changes something, kRefused where
  /// none is allowed.
  Answer examine(const config::Leaf& leaf);
  /// Effects of every value of the configuration that is no label.
  Effects effects();

 private:
  std::string result_of(const LoadedExperiment& loaded, ReplayStandIn& replay, RunRecord& record);

  const LoadedExperiment& loaded_;
  TileStore tiles_;
  KnownReplay replay_;
  RunRecord record_;
  std::string result_;
};

/// Whether the text at a path only says what something is called or where it was published.
bool is_label(std::string_view path);

/// Other values for a leaf, as texts: numbers doubled, halved, times (shares: 4) and over 16;
/// something instead of nothing; all other enumerators; the other flag; another text. Empty: it
/// cannot be varied.
std::vector<std::string> other_values(const config::Leaf& leaf);

}  // namespace orrery
