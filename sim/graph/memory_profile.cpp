// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/memory_profile.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace orrery {
namespace {

/// Profiles of all blocks, each once however often it is called.
std::vector<MemoryProfile> block_profiles(const Program& program) {
  std::vector<MemoryProfile> profiles(program.blocks.size());
  for (std::size_t block = 0; block < program.tensor_events.size(); ++block) {
    for (const TensorEvent& event : program.tensor_events[block])
      profiles[block].add(program.tensors[event.tensor], event.what);
  }
  return profiles;
}

/// Follows the tensors of one role; says the first fault of each tensor.
class TensorCheck {
 public:
  TensorCheck(const Program& program, const Role& role)
      : program_(program), role_(role), alive_(program.tensors.size()) {}

  void run(std::vector<std::string>& faults) {
    for (const BlockId block : role_.calls) {
      for (const TensorEvent& event : program_.tensor_events.at(block))
        follow(program_.blocks[block][event.op], event, faults);
    }
    for (std::size_t id = 0; id < alive_.size(); ++id) {
      if (alive_[id] > 0) faults.push_back(subject(id) + " is never freed");
    }
  }

 private:
  std::string subject(std::size_t id) const {
    return "role '" + role_.name + "': tensor '" + program_.tensors[id].name + "'";
  }

  void follow(const Operator& op, const TensorEvent& event, std::vector<std::string>& faults) {
    std::int64_t& alive = alive_[event.tensor];
    if (alive < 0) return;  // said before
    if (event.what == TensorEvent::What::kMakes) {
      ++alive;
    } else if (alive == 0) {
      faults.push_back(subject(event.tensor) + " is used by '" + op.name +
                       "' before it is made, or after it is freed");
      alive = -1;
    } else if (event.what == TensorEvent::What::kFrees) {
      --alive;
    }
  }

  const Program& program_;
  const Role& role_;
  std::vector<std::int64_t> alive_;  ///< references that are alive, by tensor; below 0: at fault
};

}  // namespace

void MemoryProfile::Level::add(Bytes bytes) {
  left += bytes;
  peak = std::max(peak, left);
}

void MemoryProfile::Level::then(const Level& later) {
  peak = std::max(peak, left + later.peak);
  left += later.left;
}

void MemoryProfile::makes(TensorRole role, Bytes bytes) {
  levels_[static_cast<std::size_t>(role)].add(bytes);
  const Bytes before = all_.peak;
  all_.add(bytes);
  if (all_.peak <= before) return;
  for (std::size_t i = 0; i < kTensorRoles; ++i) at_peak_[i] = levels_[i].left;
}

void MemoryProfile::frees(TensorRole role, Bytes bytes) { makes(role, Bytes() - bytes); }

void MemoryProfile::add(const Tensor& tensor, TensorEvent::What what) {
  if (what == TensorEvent::What::kMakes) makes(tensor.role, tensor.bytes);
  if (what == TensorEvent::What::kFrees) frees(tensor.role, tensor.bytes);
}

void MemoryProfile::then(const MemoryProfile& later) {
  if (all_.left + later.all_.peak > all_.peak) {
    for (std::size_t i = 0; i < kTensorRoles; ++i)
      at_peak_[i] = levels_[i].left + later.at_peak_[i];
  }
  for (std::size_t i = 0; i < levels_.size(); ++i) levels_[i].then(later.levels_[i]);
  all_.then(later.all_);
}

MemoryProfile memory_profile(const Program& program, const Role& role) {
  const std::vector<MemoryProfile> blocks = block_profiles(program);
  MemoryProfile all;
  for (const BlockId block : role.calls) all.then(blocks.at(block));
  return all;
}

std::vector<Bytes> memory_after_calls(const Program& program, const Role& role) {
  const std::vector<MemoryProfile> blocks = block_profiles(program);
  std::vector<Bytes> after;
  after.reserve(role.calls.size());
  Bytes now;
  for (const BlockId block : role.calls) {
    now += blocks.at(block).left();
    after.push_back(now);
  }
  return after;
}

std::vector<std::string> verify_tensors(const Program& program) {
  std::vector<std::string> faults;
  if (program.tensor_events.empty()) return faults;
  for (const Role& role : program.roles) TensorCheck(program, role).run(faults);
  return faults;
}

}  // namespace orrery
