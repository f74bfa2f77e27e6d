// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/program_replayer.h"
#include "sim/trace/timeline.h"

namespace orrery {
namespace {

/// "memory activations": counters of a viewer stand together by their names.
std::string counter_name(const std::string& what) { return "memory " + what + " B"; }

/// Events of a block come in the order of its operators.
std::vector<std::uint32_t> first_events(const OperatorGraph& block,
                                        const std::vector<TensorEvent>& events) {
  std::vector<std::uint32_t> first(block.size() + 1, 0);
  for (const TensorEvent& event : events) ++first[event.op + 1];
  for (std::size_t op = 1; op < first.size(); ++op) first[op] += first[op - 1];
  return first;
}

}  // namespace

MemoryTrack::MemoryTrack(const Program& program, const std::vector<Actor>& actors,
                         Timeline& timeline)
    : program_(program), timeline_(timeline), alive_(actors.size()), held_(actors.size()) {
  for (std::size_t block = 0; block < program.tensor_events.size(); ++block)
    first_event_.push_back(first_events(program.blocks[block], program.tensor_events[block]));
  if (first_event_.empty()) return;
  for (std::uint32_t actor = 0; actor < actors.size(); ++actor) {
    for (const HeldMemory& held : program.roles[actors[actor].role].held) {
      timeline.counter(actor, counter_name(held.what), 0, held.bytes.base());
      held_[actor] += held.bytes;
    }
    for (std::size_t i = 0; i < kTensorRoles; ++i)
      if (static_cast<TensorRole>(i) != TensorRole::kGradient)
        write(actor, static_cast<TensorRole>(i), 0);
  }
}

void MemoryTrack::starts(std::uint32_t actor, BlockId block, OperatorId op, Picoseconds now) {
  apply(actor, block, op, false, now);
}

void MemoryTrack::ends(std::uint32_t actor, BlockId block, OperatorId op, Picoseconds now) {
  apply(actor, block, op, true, now);
}

void MemoryTrack::apply(std::uint32_t actor, BlockId block, OperatorId op, bool ends,
                        Picoseconds now) {
  if (first_event_.empty()) return;
  const std::vector<std::uint32_t>& first = first_event_[block];
  const TensorEvent::What wanted = ends ? TensorEvent::What::kFrees : TensorEvent::What::kMakes;
  std::array<bool, kTensorRoles> changed{};
  for (std::uint32_t i = first[op]; i < first[op + 1]; ++i) {
    const TensorEvent& event = program_.tensor_events[block][i];
    if (event.what != wanted) continue;
    const Tensor& tensor = program_.tensors[event.tensor];
    const auto at = static_cast<std::size_t>(tensor.role);
    Bytes& alive = alive_[actor][at];
    alive = ends ? alive - tensor.bytes : alive + tensor.bytes;
    changed[at] = true;
  }
  for (std::size_t i = 0; i < kTensorRoles; ++i)
    if (changed[i]) write(actor, static_cast<TensorRole>(i), now);
}

void MemoryTrack::write(std::uint32_t actor, TensorRole tensors, Picoseconds now) {
  const auto at = static_cast<std::size_t>(tensors);
  timeline_.counter(actor, counter_name(to_string(tensors)), now, alive_[actor][at].base());
  Bytes all = held_[actor];
  for (const Bytes& alive : alive_[actor]) all += alive;
  timeline_.counter(actor, counter_name("all"), now, all.base());
}

}  // namespace orrery
