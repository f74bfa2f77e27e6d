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
LayerOp::Emit add_both(const LayerTask& task, const char* name) {
  const double bytes = task.bytes();
  return kernels({elementwise(name, task.work.tokens(), task.model.hidden, {2 * bytes, bytes, 1})});
}

// Training: attention gathers the input and leaves its sums in parts, Mamba reduces both.
RankWork of_attention(RankWork work) {
  work.place.partial_output = work.trains();
  return work;
}
RankWork of_mamba(RankWork work) {
  work.place.whole_input = work.trains();
  return work;
}

const Mixer& attention() { return mixer_of(MixerKind::kAttention); }
const Mixer& mamba() { return mixer_of(MixerKind::kMamba2); }

class MambaAttention final : public Mixer {
 public:
  std::string name() const override { return "mamba attention"; }
  std::string sizes(const LlmConfig& model, const LayerConfig& layer) const override {
    return ":" + mamba().sizes(model, layer) + " beside" + attention_sizes(model, layer);
  }
  PartWeights weights(const LayerTask& task) const override {
    PartWeights all = attention().weights(task);
    return all += mamba().weights(task);
  }
  SequenceCache cache(const LlmConfig& model, const LayerConfig& layer, int tp) const override {
    SequenceCache both = attention().cache(model, layer, tp);
    both.state_bytes += mamba().cache(model, layer, tp).state_bytes;
    return both;
  }
  double multiply_adds(const LlmConfig& model, const LayerConfig& layer) const override {
    return mamba().multiply_adds(model, layer);
  }
  std::vector<KeyTerm> key_terms(const LlmConfig& model, const LayerConfig& layer) const override {
    return attention().key_terms(model, layer);
  }
  void require_split(const LlmConfig& model, const LayerConfig& layer, int tp) const override {
    mamba().require_split(model, layer, tp);
    attention().require_split(model, layer, tp);
  }
  std::vector<LayerOp> ops(const LayerTask& task) const override {
    const LayerOp attends =
        with_work(of_attention, [](const LayerTask& own) { return attention().ops(own); });
    const LayerOp scans =
        with_work(of_mamba, [](const LayerTask& own) { return mamba().ops(own); });
    const LayerOp sum{add_both(task, "mamba and attention addition"),
                      add_both(task, "mamba and attention addition backward")};
    if (task.work.trains()) return {attends, sum, scans};
    return {attends, scans, sum};
  }
  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override {
    attention().part_forward(steps, task, part);
    mamba().part_forward(steps, task, part);
  }
};

const MambaAttention mamba_attention{};
const AddedMixer added_mamba_attention(MixerKind::kMambaAttention, mamba_attention);

}  // namespace
}  // namespace orrery
