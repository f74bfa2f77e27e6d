// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "sim/app/questions/base/options.h"
#include "sim/app/sweeps/sweep_tally.h"

namespace orrery {

/// How progress of a sweep is told on standard error.
enum class ProgressForm {
  kBar,    ///< one line that renews itself
  kLines,  ///< a line every ten seconds
  kJson,   ///< a JSON object a line, at most one a second: orrery.progress/1
  kNone
};

/// `--progress auto|lines|json|none`; auto is a bar on a terminal and lines elsewhere.
void take_progress(Options& options, std::string& word);
ProgressForm progress_form(const std::string& word);

/// Tells how a run of a sweep comes along, whichever executor it has: done of all, points a second,
/// time left, failures, best so far. Paces itself: it may be told of every point.
class SweepProgress {
 public:
  explicit SweepProgress(ProgressForm form);
  /// Clears the bar, or says the last state.
  ~SweepProgress();
  SweepProgress(const SweepProgress&) = delete;
  SweepProgress& operator=(const SweepProgress&) = delete;

  void tell(const SweepTally& tally);

 private:
  using Clock = std::chrono::steady_clock;
  /// What was done when, of the last half minute: rates are those of now, not of the whole run.
  struct Sample {
    Clock::time_point time;
    std::uint64_t done = 0, simulated = 0;
  };

  void say(const SweepTally& tally, bool last);
  void keep_sample(const SweepTally& tally);

  ProgressForm form_;
  Clock::time_point started_, said_;
  std::deque<Sample> samples_;
  SweepTally last_;
};

/// Rates and what follows from them.
struct ProgressRates {
  double elapsed_s = 0;
  double points_per_s = 0;  ///< simulated points
  double left_s = -1;       ///< until all places are settled; -1: nobody knows
};
/// "[=====>    ] 512 of 1000, 85.3/s, 6 s left, 2 failed, best step_time_s 12.3 ms (tp 8)".
std::string progress_text(const SweepTally& tally, const ProgressRates& rates, bool bar);
/// The same as an object of one line.
std::string progress_json(const SweepTally& tally, const ProgressRates& rates, bool last);

}  // namespace orrery
