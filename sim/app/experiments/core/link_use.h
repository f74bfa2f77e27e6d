// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/app/experiments/keys/enum_names.h"
#include "sim/graph/topology.h"
#include "sim/replay/replay.h"
#include "sim/results/run_record.h"
#include "sim/results/table.h"

namespace orrery {

struct MachineLinkUse {
  std::vector<LinkUse> classes;
  std::vector<LinkUse> links;  ///< links that carried something; where they are recorded
};
MachineLinkUse link_use(const Topology& topology, const ReplayResult& replay, Recorded recorded);
void add_link_use(const MachineLinkUse& use, RunRecord& record);

/// A row a class of links; nothing where there are none.
std::optional<Table> link_use_table(const RunRecord& record);

}  // namespace orrery
