// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/kineto/streams.h"

#include <algorithm>
#include <iterator>

namespace orrery::kineto {
namespace {

/// Kernels that a stream may have before the one that is waited for: launch queues of devices are
/// shorter.
constexpr std::size_t kFarthest = 4096;

}  // namespace

std::optional<PlannedEnd> Streams::last(std::uint16_t stream, std::uint32_t call,
                                        std::int64_t latest) const {
  const State& state = states_[stream];
  if (state.last == kNone) return std::nullopt;
  if (state.call <= call && state.end.end <= latest) return state.end;
  // What lies further back has ended long ago.
  std::size_t left = kFarthest;
  for (std::uint32_t i = state.last; i != kNone && ops_.holds(i) && left > 0;
       i = ops_[i].previous, --left)
    if (ops_[i].call <= call && ops_[i].start <= latest)
      return PlannedEnd{ops_[i].node, ops_[i].start};
  return std::nullopt;
}

std::vector<PlannedEnd> Streams::last_of_all(std::uint32_t call, std::int64_t latest,
                                             std::uint16_t without) const {
  std::vector<PlannedEnd> ends;
  for (std::size_t stream = 0; stream < states_.size(); ++stream) {
    if (stream == without) continue;
    if (const auto end = last(static_cast<std::uint16_t>(stream), call, latest))
      ends.push_back(*end);
  }
  return ends;
}

void Streams::add_wait(std::uint16_t stream, const StreamWait& wait) {
  std::deque<StreamWait>& waits = states_[stream].waits;
  auto at = waits.end();
  while (at != waits.begin() && std::prev(at)->call > wait.call) --at;
  waits.insert(at, wait);
}

void Streams::append(std::uint32_t index, PlannedEnd end, std::int64_t recorded_end) {
  DeviceOp& op = ops_[index];
  State& state = states_[op.stream];
  op.previous = state.last;
  op.node = end.node;
  op.start = end.end;
  state.last = index;
  state.end = end;
  state.call = op.call;
  state.recorded_end = std::max(state.recorded_end, recorded_end);
}

}  // namespace orrery::kineto
