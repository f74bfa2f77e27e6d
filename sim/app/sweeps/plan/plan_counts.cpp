// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/plan_counts.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string>
#include <variant>

#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/workers/isolate.h"
#include "sim/app/sweeps/workers/run_point.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

/// Places that an estimate is made from, and the fewest, however long they take.
constexpr std::uint64_t kLookedAt = 400, kFewest = 16;
constexpr std::chrono::milliseconds kLongestLook{1000};
constexpr std::size_t kSimulated = 3;
constexpr std::chrono::milliseconds kLongestTrial{3000};
/// Places between two reports of progress.
constexpr std::uint64_t kReported = 4096;
/// A count ends after so long where it would take longer than the other.
constexpr std::chrono::seconds kFirstCount{5}, kLongestCount{300};

PlanCounts none_of(const Sweep& sweep) {
  PlanCounts counts;
  for (const PlanRules& rules : sweep.rules) counts.excluded.emplace_back(rules.where.size());
  return counts;
}

/// Adds the present place, and those that it covers. @return whether the store decides about it
bool add_place(const PlanCursor& at, const ResultStore& store, std::uint64_t covers,
               PlanCounts& counts) {
  counts.places += covers;
  if (at.kind() == PlaceKind::kNone) {
    counts.none += covers;
  } else if (at.kind() == PlaceKind::kExcluded) {
    counts.excluded[at.case_index()][at.rule()] += covers;
  } else if (!at.can_be()) {
    counts.impossible += covers;
  } else {
    const auto status = store.database() != nullptr ? store.status(at.identity()) : std::nullopt;
    (!status                         ? counts.to_do
     : *status == RunStatus::kFailed ? counts.failed
                                     : counts.done) += covers;
    return true;
  }
  return false;
}

void scale(PlanCounts& counts, std::uint64_t places) {
  const double factor =
      static_cast<double>(places) / static_cast<double>(std::max<std::uint64_t>(1, counts.places));
  const auto scaled = [factor](std::uint64_t& count) {
    count = static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * factor));
  };
  for (auto& rules : counts.excluded)
    for (std::uint64_t& count : rules) scaled(count);
  for (std::uint64_t* count :
       {&counts.none, &counts.impossible, &counts.done, &counts.failed, &counts.to_do})
    scaled(*count);
  counts.places = places;
}

/// What some points took one after the other, as "seconds count". The first reads what the others
/// find read (calibrations, the machine), as in a worker, and counts only where it is alone.
std::string times_of(const Sweep& sweep, const std::vector<std::uint64_t>& places) {
  const auto begin = Clock::now();
  const std::size_t wanted = std::min(kSimulated + 1, places.size());
  std::vector<double> seconds;
  PlanCursor cursor(sweep);
  for (std::size_t i = 0; i < wanted; ++i) {
    cursor.seek(places[i * places.size() / wanted]);
    try {
      seconds.push_back(simulate_timed(sweep.load_whole(cursor.point())).times.wall_s);
    } catch (const std::exception&) {
      continue;  // why it fails is said when it runs
    }
    if (Clock::now() - begin > kLongestTrial) break;
  }
  if (seconds.size() > 1) seconds.erase(seconds.begin());
  return std::to_string(std::accumulate(seconds.begin(), seconds.end(), 0.0)) + " " +
         std::to_string(seconds.size());
}

/// The mean time of some points, simulated here and now in a process of their own.
void try_some(const Sweep& sweep, const std::vector<std::uint64_t>& places,
              PlanEstimate& estimate) {
  const auto outcome = run_isolated([&] { return times_of(sweep, places); });
  if (!std::holds_alternative<std::string>(outcome)) return;
  double seconds = 0;
  std::size_t tried = 0;
  std::istringstream(std::get<std::string>(outcome)) >> seconds >> tried;
  if (tried == 0) return;
  estimate.point_s = seconds / static_cast<double>(tried);
  estimate.point_s_from =
      std::to_string(tried) + (tried == 1 ? " point" : " points") + " simulated now";
}

/// Whether going through all places will take too long, by those that were gone through so far.
bool takes_long(Clock::duration taken, std::uint64_t places, std::uint64_t all) {
  const double share = static_cast<double>(places) / static_cast<double>(all);
  return taken > kFirstCount && std::chrono::duration<double>(taken) / share > kLongestCount;
}

}  // namespace

PlanEstimate estimate_plan(const Sweep& sweep, const ResultStore& store) {
  PlanEstimate estimate;
  estimate.counts = none_of(sweep);
  const auto begin = Clock::now();
  const std::uint64_t places = sweep.places();
  const std::uint64_t looks = std::min(places, kLookedAt);
  std::vector<std::uint64_t> to_do;
  double seconds = 0;
  std::size_t timed = 0;
  PlanCursor cursor(sweep);
  for (std::uint64_t i = 0; i < looks; ++i) {
    // Evenly spread, and not all at the same step of fast axes: the golden ratio within each part.
    const double part = static_cast<double>(places) / static_cast<double>(looks);
    const double within = std::fmod(static_cast<double>(i) * 0.6180339887498949, 1.0);
    cursor.seek(
        std::min(places - 1, static_cast<std::uint64_t>((static_cast<double>(i) + within) * part)));
    const bool decided = add_place(cursor, store, 1, estimate.counts);
    ++estimate.looked_at;
    if (decided) {
      const std::vector<RunTimes> times = store.times(cursor.identity());
      if (!times.empty()) seconds += times.front().wall_s;
      timed += times.empty() ? 0 : 1;
      to_do.push_back(cursor.place());
    }
    if (estimate.looked_at >= kFewest && Clock::now() - begin > kLongestLook) break;
  }
  scale(estimate.counts, places);
  if (timed > 0) {
    estimate.point_s = seconds / static_cast<double>(timed);
    estimate.point_s_from = std::to_string(timed) + " results of this plan in the store";
  } else {
    try_some(sweep, to_do, estimate);
  }
  return estimate;
}

PlanListing count_plan(const Sweep& sweep, const ResultStore& store,
                       const PlanCountOptions& options) {
  PlanListing listing{none_of(sweep), {}, true};
  const auto begin = Clock::now();
  std::uint64_t reported = 0, steps = 0;
  for (PlanCursor cursor(sweep); !cursor.at_end(); cursor.next()) {
    add_place(cursor, store, cursor.covers(), listing.counts);
    if (cursor.kind() == PlaceKind::kExcluded && listing.excluded.size() < options.rows)
      listing.excluded.push_back({cursor.place(), cursor.case_index(), cursor.rule(),
                                  cursor.covers(), Sweep::axes(cursor.point())});
    if (++steps % kReported == 0 &&
        takes_long(Clock::now() - begin, listing.counts.places, sweep.places())) {
      listing.whole = false;
      break;
    }
    if (options.progress && listing.counts.places - reported >= kReported) {
      reported = listing.counts.places;
      options.progress(reported);
    }
  }
  return listing;
}

}  // namespace orrery
