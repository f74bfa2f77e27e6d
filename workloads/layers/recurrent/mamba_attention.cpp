// SPDX-License-Identifier: Apache-2.0
// Mamba-2 and attention beside each other, from one norm, whose outputs are added (Falcon-H1, arXiv
// 2507.22448; transformers, modeling_falcon_h1.py). In inference each is reduced over tensor
// parallel ranks by itself (vLLM, model_executor/models/falcon_h1.py); in training they share the
// gathered input and one reduction, as parallel blocks of Megatron-Core do, an estimate, for no
// published software trains them. Scales of muP are part of other kernels.
#include <vector>

#include "workloads/layers/parts/mixer.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// The sum of what both give, or of the gradients of their input.
void add_both(StepList& steps, const LayerTask& task, const char* name) {
  const double bytes = activation_bytes(task.work.formats.precision);
  steps.then(stream(name, KernelClass::kElementwise, task.work.tokens(), task.model.hidden,
                    {2 * bytes, bytes, 1}));
}

/// Training: attention gathers the input and leaves its sums in parts, Mamba reduces both.
RankWork of_attention(RankWork work) {
  work.place.partial_output = work.batch.phase == Phase::kTraining;
  return work;
}
RankWork of_mamba(RankWork work) {
  work.place.whole_input = work.batch.phase == Phase::kTraining;
  return work;
}

class MambaAttention final : public Mixer {
 public:
  std::string name() const override { return "mamba attention"; }
  std::string sizes(const LlmConfig& model, const LayerConfig& layer) const override {
    return ":" + mamba2().sizes(model, layer) + " beside" + attention_sizes(model, layer);
  }
  MixerWeights weights(const LayerTask& task) const override {
    MixerWeights all = grouped_attention().weights(task);
    return all += mamba2().weights(task);
  }
  SequenceCache cache(const LlmConfig& model, const LayerConfig& layer, int tp) const override {
    SequenceCache both = grouped_attention().cache(model, layer, tp);
    both.state_bytes += mamba2().cache(model, layer, tp).state_bytes;
    return both;
  }
  double multiply_adds(const LlmConfig& model, const LayerConfig& layer) const override {
    return mamba2().multiply_adds(model, layer);
  }
  std::vector<KeyTerm> key_terms(const LlmConfig& model, const LayerConfig& layer) const override {
    return grouped_attention().key_terms(model, layer);
  }
  void require_split(const LlmConfig& model, const LayerConfig& layer, int tp) const override {
    mamba2().require_split(model, layer, tp);
    grouped_attention().require_split(model, layer, tp);
  }
  void forward(StepList& steps, const LayerTask& task) const override {
    const RankWork attends = of_attention(task.work), scans = of_mamba(task.work);
    grouped_attention().forward(steps, {task.model, task.layer, attends, task.forward});
    if (task.work.batch.phase == Phase::kTraining)
      add_both(steps, task, "mamba and attention addition");
    mamba2().forward(steps, {task.model, task.layer, scans, task.forward});
    if (task.work.batch.phase != Phase::kTraining)
      add_both(steps, task, "mamba and attention addition");
  }
  void backward(StepList& steps, const LayerTask& task) const override {
    const RankWork attends = of_attention(task.work), scans = of_mamba(task.work);
    mamba2().backward(steps, {task.model, task.layer, scans, task.forward});
    add_both(steps, task, "mamba and attention addition backward");
    grouped_attention().backward(steps, {task.model, task.layer, attends, task.forward});
  }
  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override {
    grouped_attention().part_forward(steps, task, part);
    mamba2().part_forward(steps, task, part);
  }
};

}  // namespace

const Mixer& mamba_attention() {
  static const MambaAttention mixer;
  return mixer;
}

}  // namespace orrery
