// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/app/experiments/core/play.h"
#include "sim/replay/critical_path.h"

namespace orrery {

/// A replay with what it rested on, to tell whether another experiment would replay the same.
class KnownReplay final : public ReplayStandIn {
 public:
  /// Replays and remembers.
  ReplayOutcome replay(const ReplayInputs& inputs, const ReplayFunction& replayer) override;

  CriticalPath* path() override { return &path_; }

  const ReplayResult& result() const { return outcome_.replay; }
  /// What decides when it ends.
  std::vector<PathStep> critical_path() const { return path_.steps(); }
  const ReplayOutcome& outcome() const { return outcome_; }
  bool begun() const { return begun_; }  ///< else the experiment does not fit
  bool ended() const { return ended_; }  ///< else a dead link held it up

  /// Whether the nodes, what runs on the role that ended last, and the prices of its kernels are
  /// those of `inputs`: a result has rows of all of these. Where they are not, it is another one.
  bool same_classes(const ReplayInputs& inputs) const;
  /// Whether replay() would give outcome() again.
  bool same(const ReplayInputs& inputs) const;

 private:
  struct Slowdown {
    KernelId kernel = 0;
    DeviceLoad taken;
    double factor = 1;
  };
  class Recorder;

  Program program_;
  Costs costs_;
  std::vector<bool> loaded_;        ///< whether transfers load the link, by link
  std::vector<std::string> nodes_;  ///< nodes that the ranks are on
  std::vector<Slowdown> slowdowns_;
  bool has_slowdowns_ = false;
  std::vector<double> power_, ranks_;
  ReplayOutcome outcome_;
  CriticalPath path_;
  bool begun_ = false, ended_ = false;
};

/// Why the replay of an experiment that is only tried was left out.
enum class LeftOut : std::uint8_t {
  kOtherPrices,  ///< the result is another one without it
  kTooLong,
};

/// An experiment with another value: gives the known result where it is the same, replays where
/// that takes less than about a second.
/// @throws LeftOut
class TriedReplay final : public ReplayStandIn {
 public:
  explicit TriedReplay(const KnownReplay& known) : known_(known) {}
  ReplayOutcome replay(const ReplayInputs& inputs, const ReplayFunction& replayer) override;

 private:
  const KnownReplay& known_;
};

}  // namespace orrery
