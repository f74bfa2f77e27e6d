// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/workers/isolate.h"

#include "sim/app/sweeps/workers/local_workers.h"

namespace orrery {

std::variant<std::string, Failure> run_isolated(const std::function<std::string()>& work) {
  LocalWorkers workers(1, [&work](std::size_t) { return work(); });
  workers.submit({0, 1});
  return std::move(workers.poll().at(0).result);
}

}  // namespace orrery
