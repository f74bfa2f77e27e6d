// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/graph/kernel.h"
#include "sim/graph/memory_profile.h"
#include "sim/graph/tensors.h"
#include "sim/graph/transfer.h"
#include "sim/units/units.h"

namespace orrery {

/// Which ranks a collective of a layer joins.
enum class Scope : std::uint8_t {
  kTensor,
  kExpert,
  kExpertTensor,
  kContext,
  kDecodeContext,
  kContextHeads,  ///< runs of kContext ranks that exchange heads
  kContextRings,  ///< one rank of each such run
  kHostOut,       ///< each rank alone, to its host board
  kHostIn,        ///< and back
};
inline constexpr std::size_t kScopes = 9;

/// A collective of a layer, before it is known which real ranks take part. `bytes` as in Transfer.
struct LayerCollective {
  std::string name;
  TransferKind kind = TransferKind::kAllReduce;
  Scope scope = Scope::kTensor;
  Bytes bytes;
  std::optional<ExpertRouting> routing = std::nullopt;  ///< routing of a dispatch or combine
};

struct Step {
  std::variant<Kernel, LayerCollective> work;
  std::vector<std::size_t> after;  ///< earlier steps of the same list; none: starts with the list
  bool for_weights = false;        ///< only gradients of weights need it
  bool begins_turn = false;        ///< where two lists take turns the other goes on before it
  std::string part = {};           ///< what of the model it belongs to: "layer 3 "
  /// Entries of StepList::tensors(). What is freed is used by this step and no later one.
  std::vector<TensorId> makes = {}, uses = {}, frees = {};

  const Kernel* kernel() const { return std::get_if<Kernel>(&work); }
  const LayerCollective* collective() const { return std::get_if<LayerCollective>(&work); }
  const std::string& name() const;
};

/// What the host takes to issue a kernel, and each further launch that the kernel stands for.
struct HostTime {
  Seconds kernel, launch;
};

/// The steps of a piece of a model on one rank, in issue order, with a cursor on the step that
/// produces the value passed on. Kernels run in issue order anyway; `after` is what lets
/// collectives run beside them.
class StepList {
 public:
  static constexpr std::size_t kStart = static_cast<std::size_t>(-1);

  /// Appends a step that uses the cursor's value and produces the next one.
  std::size_t then(std::variant<Kernel, LayerCollective> work);
  /// Appends a step beside the main path: after the given ones (kStart is ignored), cursor unmoved.
  std::size_t aside(std::variant<Kernel, LayerCollective> work, std::vector<std::size_t> after);
  /// The same for a step that only gradients of weights need.
  std::size_t for_weights(std::variant<Kernel, LayerCollective> work,
                          std::vector<std::size_t> after);
  /// Appends a step of the main path that needs `others` besides the cursor.
  std::size_t join(std::variant<Kernel, LayerCollective> work, std::vector<std::size_t> others);
  /// What follows needs that step.
  void move_to(std::size_t step) { cursor_ = step; }
  /// Appends another list; its first steps use the cursor's value.
  /// @param part put before what its steps say of themselves and the names of its tensors
  void append(const StepList& other, const std::string& part = {});
  /// The next step begins a turn: see alternating().
  void next_turn() { next_begins_ = true; }
  /// Two lists that share the streams, in turn. Where steps begin turns, the second list is two
  /// turns behind the first; else each goes up to its next exchange of tokens with other experts'
  /// ranks, so that the kernels of one are issued behind the exchange of the other. Both start with
  /// the new list; `merge` needs the ends of both.
  static StepList alternating(const StepList& first, const StepList& second, const Kernel& merge);
  /// The steps that only gradients of weights need, or all others. What a step waits for in the
  /// part that is left out has happened before. What gradients of weights use is freed by them.
  StepList part(bool of_weights) const;

  /// Kernels of a class run at `rate` of their speed.
  void set_rate(KernelClass kind, double rate);

  /// Kernels with launches of their own start by programmatic dependent launch.
  void launch_early();
  /// What the host takes for kernels from now on.
  void issued_in(HostTime time) { host_ = time; }
  /// From now on steps say which tensors they make, use and free, or say nothing.
  void tell_tensors(bool tells) { tells_tensors_ = tells; }
  bool tells_tensors() const { return tells_tensors_; }
  /// Tensors of a role that the list makes and does not free.
  std::vector<Tensor> left(TensorRole role) const;
  /// The last step does this to a tensor, which is known by its name.
  void tell(TensorEvent::What what, const Tensor& tensor);
  const std::vector<Tensor>& tensors() const { return tensors_; }

  /// The step that produces the current value, kStart at the beginning.
  std::size_t cursor() const { return cursor_; }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  bool has_turns() const;
  std::vector<std::size_t> turns(bool by_exchanges) const;
  TensorId tensor_id(const Tensor& tensor);
  /// The last step, by tensor, for gradients of weights that uses or frees it.
  std::vector<std::optional<std::size_t>> last_use_for_weights() const;

  std::vector<Step> steps_;
  std::vector<Tensor> tensors_;
  bool tells_tensors_ = false;
  bool next_begins_ = false;
  HostTime host_;
  std::size_t cursor_ = kStart;
};

/// Bytes over the steps in their order.
MemoryProfile memory_profile(const StepList& steps);

}  // namespace orrery
