// SPDX-License-Identifier: Apache-2.0
#include "sim/store/merge.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace orrery {
namespace {

/// Points that are saved in one transaction.
constexpr std::size_t kPerBatch = 256;

/// The next points of a store after `last`, which moves on with them; empty behind the last one.
std::vector<StoredPoint> next_points(const ResultStore& from, std::string& last,
                                     MergeReport& report) {
  std::vector<StoredPoint> points;
  while (points.size() < kPerBatch) {
    const std::optional<std::string> next = from.next_identity(last);
    if (!next) break;
    last = *next;
    try {
      if (std::optional<StoredPoint> point = from.point(last)) points.push_back(std::move(*point));
    } catch (const StoreError& error) {
      report.damaged.emplace_back(error.what());
    }
  }
  return points;
}

/// Saves points in one transaction.
std::vector<SaveOutcome> save(ResultStore& into, const std::vector<StoredPoint>& points) {
  std::vector<SaveOutcome> outcomes;
  outcomes.reserve(points.size());
  ResultStore::Batch batch = into.begin();
  for (const StoredPoint& point : points) outcomes.push_back(batch.save(point));
  batch.commit();
  return outcomes;
}

/// Reads as far as the file can be read.
std::vector<StoredPoint> readable_points(const ResultStore& from, std::string& last,
                                         MergeReport& report) {
  try {
    return next_points(from, last, report);
  } catch (const StoreError& error) {  // not one point, but the way to the next
    report.damaged.emplace_back(error.what());
    return {};
  }
}

}  // namespace

void merge(ResultStore& into, const std::filesystem::path& other, MergeReport& report,
           const std::function<void(const std::function<void()>&)>& patiently) {
  std::optional<ResultStore> from;
  try {
    from.emplace(ResultStore::open_read_only(other));
  } catch (const StoreError& error) {
    report.damaged.emplace_back(error.what());
    return;
  }
  std::string last;
  for (auto points = readable_points(*from, last, report); !points.empty();
       points = readable_points(*from, last, report)) {
    std::vector<SaveOutcome> outcomes;
    patiently([&] { outcomes = save(into, points); });
    const auto number = [&outcomes](SaveOutcome outcome) {
      return static_cast<std::size_t>(std::count(outcomes.begin(), outcomes.end(), outcome));
    };
    report.added += number(SaveOutcome::kAdded);
    report.replaced_failures += number(SaveOutcome::kReplacedFailure);
    report.known += number(SaveOutcome::kAlreadyThere);
  }
  patiently([&] { into.group_rows(); });
}

}  // namespace orrery
