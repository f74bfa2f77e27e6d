// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving_names.h"

#include "sim/app/experiments/files/known_names.h"
#include "sim/app/experiments/keys/algorithm_names.h"
#include "sim/app/experiments/serving.h"
#include "sim/serving/router.h"

namespace orrery {

std::string group_path(std::size_t group) { return "serving.fleet." + std::to_string(group); }

void ServingExperiment::check_names(const config::Node& node,
                                    config::Diagnostics& diagnostics) const {
  check_name({"serving.router", "router"}, serving.router, names_of<Routers>(), node, diagnostics);
  check_name({"serving.kv_transfer.router", "router"}, serving.kv_transfer.router,
             names_of<Routers>(), node, diagnostics);
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    check_topologies(group.system, group.nodes, group_path(i) + ".system", node, diagnostics);
    check_algorithms(group.algorithms, group_path(i) + ".algorithms", node, diagnostics);
  }
}

}  // namespace orrery
