// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/steady_window.h"

namespace orrery {

std::vector<double> SteadyWindow::energies() const {
  std::vector<double> all;
  for (const Instance& instance : instances_) all.push_back(instance.energy());
  return all;
}

void SteadyWindow::arrived(const Request& request, bool first_hand, Picoseconds now) {
  if (!any_) {
    any_ = true;
    first_ = request.id;
    first_arrival_ = now;
  }
  if (first_hand && now > first_arrival_) open_ = true;
  if (open_ && !first_hand) return;
  until_ = now;
  if (from_ == kNotYet) return;
  energy_until_ = energies();
  log_.keep_gaps();
}

void SteadyWindow::answered(const RequestState& progress, Picoseconds now) {
  if (progress.request.id != first_) return;
  from_ = now;
  energy_from_ = energy_until_ = energies();
  log_.begin_window();
}

}  // namespace orrery
