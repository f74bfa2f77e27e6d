// SPDX-License-Identifier: Apache-2.0
#include "workloads/ops/step_list.h"

#include <algorithm>
#include <array>
#include <utility>

namespace orrery {

const std::string& Step::name() const { return kernel() ? kernel()->name : collective()->name; }

std::size_t StepList::then(std::variant<Kernel, LayerCollective> work) {
  return join(std::move(work), {});
}

std::size_t StepList::aside(std::variant<Kernel, LayerCollective> work,
                            std::vector<std::size_t> after) {
  std::erase(after, kStart);
  if (Kernel* kernel = std::get_if<Kernel>(&work)) {
    const auto further = static_cast<double>(kernel->launches - 1);
    kernel->issue = host_.kernel + host_.launch * further;
  }
  steps_.push_back({std::move(work), std::move(after)});
  steps_.back().begins_turn = std::exchange(next_begins_, false);
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

namespace {

Tensor named(const std::string& part, Tensor tensor) {
  tensor.name.insert(0, part);
  return tensor;
}

}  // namespace

void StepList::append(const StepList& other, const std::string& part) {
  const std::size_t offset = steps_.size();
  for (Step step : other.steps_) {
    for (std::size_t& earlier : step.after) earlier += offset;
    for (auto* told : {&step.makes, &step.uses, &step.frees})
      for (TensorId& id : *told) id = tensor_id(named(part, other.tensors_[id]));
    if (step.after.empty() && cursor_ != kStart) step.after.push_back(cursor_);
    step.part.insert(0, part);
    step.begins_turn |= std::exchange(next_begins_, false);
    steps_.push_back(std::move(step));
  }
  next_begins_ |= other.next_begins_;
  if (other.cursor_ != kStart) cursor_ = other.cursor_ + offset;
}

bool StepList::has_turns() const { return std::ranges::any_of(steps_, &Step::begins_turn); }

/// Ends of turns: before steps that begin one, or behind exchanges.
std::vector<std::size_t> StepList::turns(bool by_exchanges) const {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const LayerCollective* collective = steps_[i].collective();
    const bool exchange = collective != nullptr && collective->scope == Scope::kExpert;
    if (!by_exchanges && i > 0 && steps_[i].begins_turn) ends.push_back(i);
    if (by_exchanges && exchange && i + 1 < steps_.size()) ends.push_back(i + 1);
  }
  ends.push_back(steps_.size());
  return ends;
}

StepList StepList::alternating(const StepList& first, const StepList& second, const Kernel& merge) {
  constexpr std::size_t kBehind = 2;  // SGLang's tbo_delta_stages of decodes
  StepList both;
  struct Half {
    const StepList& list;
    std::vector<std::size_t> ends;
    std::vector<std::size_t> index = {};  // in the new list, of the steps that it has
  };
  const bool exchanges = !first.has_turns() || !second.has_turns();
  std::array<Half, 2> halves = {Half{first, first.turns(exchanges)},
                                Half{second, second.turns(exchanges)}};
  const auto take = [&](Half& half, std::size_t turn) {
    if (turn >= half.ends.size()) return;
    while (half.index.size() < half.ends[turn]) {
      Step step = half.list.steps_[half.index.size()];
      for (std::size_t& earlier : step.after) earlier = half.index[earlier];
      half.index.push_back(both.steps_.size());
      both.steps_.push_back(std::move(step));
    }
  };
  const std::size_t behind = exchanges ? 0 : kBehind;
  const std::size_t turns = std::max(halves[0].ends.size(), halves[1].ends.size() + behind);
  for (std::size_t turn = 0; turn < turns; ++turn) {
    take(halves[0], turn);
    if (turn >= behind) take(halves[1], turn - behind);
  }
  both.join(merge, {halves[0].index[first.cursor_], halves[1].index[second.cursor_]});
  return both;
}

TensorId StepList::tensor_id(const Tensor& tensor) {
  for (std::size_t id = 0; id < tensors_.size(); ++id)
    if (tensors_[id].name == tensor.name) return static_cast<TensorId>(id);
  tensors_.push_back(tensor);
  return static_cast<TensorId>(tensors_.size() - 1);
}

std::vector<Tensor> StepList::left(TensorRole role) const {
  std::vector<int> alive(tensors_.size());
  for (const Step& step : steps_) {
    for (const TensorId id : step.makes) ++alive[id];
    for (const TensorId id : step.frees) --alive[id];
  }
  std::vector<Tensor> left;
  for (std::size_t id = 0; id < alive.size(); ++id)
    if (alive[id] > 0 && tensors_[id].role == role) left.push_back(tensors_[id]);
  return left;
}

void StepList::launch_early() {
  for (Step& step : steps_) {
    Kernel* kernel = std::get_if<Kernel>(&step.work);
    if (kernel != nullptr && kernel->start == KernelStart::kAlone)
      kernel->start = KernelStart::kEarly;
  }
}

void StepList::set_rate(KernelClass kind, double rate) {
  for (Step& step : steps_) {
    Kernel* kernel = std::get_if<Kernel>(&step.work);
    if (kernel != nullptr && kernel->kind == kind) kernel->rate *= rate;
  }
}

void StepList::tell(TensorEvent::What what, const Tensor& tensor) {
  if (!tells_tensors_ || tensor.bytes.base() == 0) return;
  Step& step = steps_.back();
  const TensorId id = tensor_id(tensor);
  auto& told = what == TensorEvent::What::kMakes  ? step.makes
               : what == TensorEvent::What::kUses ? step.uses
                                                  : step.frees;
  told.push_back(id);
}

std::vector<std::optional<std::size_t>> StepList::last_use_for_weights() const {
  std::vector<std::optional<std::size_t>> last(tensors_.size());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i].for_weights) continue;
    for (const auto* told : {&steps_[i].uses, &steps_[i].frees})
      for (const TensorId id : *told) last[id] = i;
  }
  return last;
}

StepList StepList::part(bool of_weights) const {
  StepList part;
  part.tensors_ = tensors_;
  const std::vector<std::optional<std::size_t>> last_use = last_use_for_weights();
  std::vector<std::size_t> index(steps_.size(), kStart);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].for_weights != of_weights) continue;
    index[i] = part.steps_.size();
    part.steps_.push_back(steps_[i]);
    std::vector<std::size_t>& after = part.steps_.back().after;
    for (std::size_t& earlier : after) earlier = index[earlier];
    std::erase(after, kStart);
    std::vector<TensorId>& frees = part.steps_.back().frees;
    frees.clear();
    for (const Step& step : steps_) {
      for (const TensorId id : step.frees) {
        const auto by = static_cast<std::size_t>(&step - steps_.data());
        if (last_use[id].value_or(by) == i) frees.push_back(id);
      }
    }
  }
  if (cursor_ != kStart) part.cursor_ = index[cursor_];
  return part;
}

MemoryProfile memory_profile(const StepList& steps) {
  MemoryProfile profile;
  for (const Step& step : steps.steps()) {
    for (const TensorId id : step.makes)
      profile.add(steps.tensors()[id], TensorEvent::What::kMakes);
    for (const TensorId id : step.frees)
      profile.add(steps.tensors()[id], TensorEvent::What::kFrees);
  }
  return profile;
}

}  // namespace orrery
