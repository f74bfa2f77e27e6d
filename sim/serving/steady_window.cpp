// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/steady_window.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kMostMarks = 2048;

}  // namespace

SteadyWindow::Mark SteadyWindow::mark(Picoseconds now) const {
  Mark mark{now, {}};
  for (const Instance& instance : instances_) mark.energies.push_back(instance.energy());
  return mark;
}

/// The last mark moves on until it is `spacing_` behind the one before it. With too many marks
/// every second one goes, and the spacing doubles.
void SteadyWindow::keep(Mark last) {
  const std::size_t count = marks_.size();
  if (count > 1 && last.at - marks_[count - 2].at < spacing_) {
    marks_.back() = std::move(last);
    return;
  }
  marks_.push_back(std::move(last));
  if (marks_.size() < kMostMarks) return;
  std::vector<Mark> fewer;
  for (std::size_t i = 0; i < marks_.size(); ++i)
    if (i % 2 == 0 || i + 1 == marks_.size()) fewer.push_back(std::move(marks_[i]));
  marks_ = std::move(fewer);
  spacing_ = (marks_.back().at - first_arrival_) / (kMostMarks / 2);
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
  keep(mark(now));
  log_.keep_gaps();
}

void SteadyWindow::answered(const RequestState& progress, Picoseconds now) {
  if (progress.request.id != first_) return;
  first_end_ = now;
  log_.begin_window();
}

Picoseconds SteadyWindow::from() const {
  if (first_end_ == kNotYet) return kNotYet;
  return std::max(first_end_,
                  checked_add(first_arrival_, to_picoseconds(mean_lifetime(log_.served()))));
}

std::vector<double> SteadyWindow::energies() const {
  const Picoseconds begin = from();
  const auto after = std::find_if(marks_.begin(), marks_.end(),
                                  [&](const Mark& mark) { return mark.at >= begin; });
  const Mark& high = *after;
  const Mark& low = after == marks_.begin() ? high : *(after - 1);
  const double share = high.at == low.at ? 1
                                         : static_cast<double>(begin - low.at) /
                                               static_cast<double>(high.at - low.at);
  std::vector<double> energies = marks_.back().energies;
  for (std::size_t i = 0; i < energies.size(); ++i)
    energies[i] -= low.energies[i] + share * (high.energies[i] - low.energies[i]);
  return energies;
}

}  // namespace orrery
