// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/step_outcome.h"

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/keys/common_metrics.h"

namespace orrery {

void add_breakdown(const TimeBreakdown& time, RunRecord& record) {
  const auto add = [&record](const DeclaredMetric& metric, Picoseconds part) {
    add_metric(record, metric, to_seconds(part).base());
  };
  add(kBreakdownCompute, time.compute);
  add(kBreakdownContention, time.contention);
  add(kBreakdownExposedCommunication, time.exposed_communication);
  add(kBreakdownBubble, time.bubble);
  add(kBreakdownOptimizer, time.optimizer);
  add(kBreakdownHost, time.host);
  add(kBreakdownIdle, time.idle);
}

}  // namespace orrery
