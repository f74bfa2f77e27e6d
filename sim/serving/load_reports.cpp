// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/load_reports.h"

namespace orrery {

void LoadReports::report(const std::vector<Instance>& instances) {
  last_.clear();
  for (const Instance& instance : instances) last_.push_back(instance.view());
}

void LoadReports::sent(const Request& request, std::size_t instance) {
  if (at_once()) return;
  ++last_[instance].waiting;
  last_[instance].tokens += request.prompt;
}

InstanceView LoadReports::view(const std::vector<Instance>& instances, std::size_t instance) const {
  InstanceView view = at_once() ? instances[instance].view() : last_[instance];
  view.instance = instance;
  return view;
}

}  // namespace orrery
