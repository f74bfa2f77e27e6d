// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/step_list.h"

#include <utility>

namespace orrery {

const std::string& Step::name() const { return kernel() ? kernel()->name : collective()->name; }

std::size_t StepList::then(std::variant<Kernel, LayerCollective> work) {
  return join(std::move(work), {});
}

std::size_t StepList::aside(std::variant<Kernel, LayerCollective> work,
                            std::vector<std::size_t> after) {
  std::erase(after, kStart);
  steps_.push_back({std::move(work), std::move(after)});
  return steps_.size() - 1;
}

std::size_t StepList::for_weights(std::variant<Kernel, LayerCollective> work,
                                  std::vector<std::size_t> after) {
  const std::size_t step = aside(std::move(work), std::move(after));
  steps_[step].for_weights = true;
  return step;
}

std::size_t StepList::join(std::variant<Kernel, LayerCollective> work,
                           std::vector<std::size_t> others) {
  others.push_back(cursor_);
  cursor_ = aside(std::move(work), std::move(others));
  return cursor_;
}

void StepList::append(const StepList& other) {
  const std::size_t offset = steps_.size();
  for (Step step : other.steps_) {
    for (std::size_t& earlier : step.after) earlier += offset;
    if (step.after.empty() && cursor_ != kStart) step.after.push_back(cursor_);
    steps_.push_back(std::move(step));
  }
  if (other.cursor_ != kStart) cursor_ = other.cursor_ + offset;
}

StepList StepList::part(bool of_weights) const {
  StepList part;
  std::vector<std::size_t> index(steps_.size(), kStart);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].for_weights != of_weights) continue;
    index[i] = part.steps_.size();
    part.steps_.push_back(steps_[i]);
    std::vector<std::size_t>& after = part.steps_.back().after;
    for (std::size_t& earlier : after) earlier = index[earlier];
    std::erase(after, kStart);
  }
  if (cursor_ != kStart) part.cursor_ = index[cursor_];
  return part;
}

}  // namespace orrery
