// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/run/missing_points.h"

#include <optional>

namespace orrery {

MissingPoints missing_points(const Sweep& sweep, const ResultStore& store, const KnownPoints& known,
                             const Places& only,
                             const std::function<void(const std::function<void()>&)>& patiently,
                             const std::function<bool()>& go_on) {
  MissingPoints missing;
  missing.failed.resize(sweep.config.cases.size());
  bool joins = false;  // no point that is not missing since the last one that is
  for (PlanCursor at(sweep, only); !at.at_end() && go_on(); at.next()) {
    if (at.kind() != PlaceKind::kPoint) continue;
    const auto place = static_cast<std::size_t>(at.place());
    const std::string identity = at.identity();
    if (identity.empty() || has_place(known.elsewhere, place)) {
      joins = joins && identity.empty();
      continue;
    }
    std::optional<RunStatus> status;
    patiently([&] { status = store.status(identity); });
    const bool failed = status == RunStatus::kFailed && known.failed.count(identity) > 0;
    if (failed) ++missing.failed[at.case_index()];
    const bool has_result = status && *status != RunStatus::kFailed;
    const bool cannot = !has_result && !failed && has_place(known.cannot_be, place);
    if (has_result || failed || cannot) {
      ++missing.settled;
      missing.cannot_be += cannot ? 1 : 0;
      joins = false;
      continue;
    }
    append(missing.places, place, joins);
    ++missing.points;
    joins = true;
  }
  return missing;
}

}  // namespace orrery
