// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/critical_path.h"

#include <algorithm>

namespace orrery {

void CriticalPath::clear(std::size_t streams) {
  nodes_.clear();
  running_.assign(streams, Node{});
  ended_ = last_ = kNone;
}

void CriticalPath::starts(std::size_t stream, Picoseconds now) {
  running_[stream].step.begin = now;
  running_[stream].before = ended_;
}

void CriticalPath::meets(std::size_t stream, std::size_t last, Picoseconds now) {
  running_[stream].step.begin = now;
  running_[stream].before = running_[last].before;
}

void CriticalPath::ends(std::size_t stream, const PathStep& step, Picoseconds now) {
  Node node = running_[stream];
  const Picoseconds begin = node.step.begin;
  node.step = step;
  node.step.begin = begin;
  node.step.end = now;
  ended_ = static_cast<std::uint32_t>(nodes_.size());
  if (last_ == kNone || now > nodes_[last_].step.end) last_ = ended_;
  nodes_.push_back(node);
}

std::vector<PathStep> CriticalPath::steps() const {
  std::vector<PathStep> steps;
  for (std::uint32_t at = last_; at != kNone; at = nodes_[at].before)
    steps.push_back(nodes_[at].step);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

}  // namespace orrery
