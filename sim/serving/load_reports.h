// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "sim/serving/instance.h"
#include "sim/serving/router.h"
#include "sim/units/units.h"

namespace orrery {

/// The loads that a router sees. Instances report theirs at fixed intervals; between two reports
/// the router adds the requests that it has sent itself.
class LoadReports {
 public:
  /// @param interval between two reports; 0: every change is reported at once
  explicit LoadReports(Seconds interval = {}) : interval_(to_picoseconds(interval)) {}

  bool at_once() const { return interval_ == 0; }
  Picoseconds interval() const { return interval_; }
  /// All instances report.
  void report(const std::vector<Instance>& instances);
  /// The router has sent a request, which the instance already expects.
  void sent(const Request& request, std::size_t instance);
  /// What the router sees of an instance now.
  InstanceView view(const std::vector<Instance>& instances, std::size_t instance) const;

 private:
  Picoseconds interval_;
  std::vector<InstanceView> last_;  ///< last reports and the requests sent since, by instance
};

}  // namespace orrery
