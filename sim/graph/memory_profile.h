// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/graph/program.h"
#include "sim/graph/tensors.h"

namespace orrery {

/// Bytes over a stretch of work, counted from what was in memory before it: how many it leaves, and
/// the most that it has at any time.
class MemoryProfile {
 public:
  void makes(TensorRole role, Bytes bytes);
  void frees(TensorRole role, Bytes bytes);
  void add(const Tensor& tensor, TensorEvent::What what);
  /// `later` follows.
  void then(const MemoryProfile& later);

  Bytes left(TensorRole role) const { return of(role).left; }
  Bytes peak(TensorRole role) const { return of(role).peak; }
  Bytes left() const { return all_.left; }
  /// Most bytes of all roles at one time; at most the sum of their own peaks.
  Bytes peak() const { return all_.peak; }
  /// Bytes of a role at that time, the first of equals.
  Bytes at_peak(TensorRole role) const { return at_peak_[static_cast<std::size_t>(role)]; }

 private:
  struct Level {
    Bytes left, peak;
    void add(Bytes bytes);
    void then(const Level& later);
  };
  const Level& of(TensorRole role) const { return levels_[static_cast<std::size_t>(role)]; }

  std::array<Level, kTensorRoles> levels_{};
  std::array<Bytes, kTensorRoles> at_peak_{};
  Level all_;
};

/// Tensors of one rank of `role` over all its calls, in the order in which they are issued; nothing
/// where the program names no tensors.
MemoryProfile memory_profile(const Program& program, const Role& role);

/// Bytes that the calls of `role` leave alive, one after the other.
std::vector<Bytes> memory_after_calls(const Program& program, const Role& role);

/// What is wrong with the tensors of a program, in sentences: one that is used or freed before it
/// is made, or never freed.
std::vector<std::string> verify_tensors(const Program& program);

}  // namespace orrery
