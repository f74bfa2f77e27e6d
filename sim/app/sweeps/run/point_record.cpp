// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/run/point_record.h"

#include <utility>

#include "sim/app/experiments/core/simulate.h"

namespace orrery {

void describe(const PlanCursor& at, RunRecord& record) {
  if (at.group() != nullptr) {
    record.base = at.group()->configuration();
    record.varied = at.group()->varied(at.values());
    record.experiment = at.group()->kind();
  } else {
    record.base = configuration_of(at.whole());
    record.experiment = at.whole().experiment->kind;
  }
}

RunRecord without_result(const PlanCursor& at, RunStatus status, std::string reason) {
  RunRecord record;
  record.name = at.row().name;
  record.status = status;
  record.reason = std::move(reason);
  describe(at, record);
  return record;
}

}  // namespace orrery
