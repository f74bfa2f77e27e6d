// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), for mixers that are
// made of it.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"

namespace orrery {

class LatentAttention : public Mixer {
 public:
  std::string name() const override { return "attention"; }
  PartWeights weights(const LayerTask& task) const override;
  SequenceCache cache(const LlmConfig& model, const LayerConfig& layer, int tp) const override;
  std::vector<KeyTerm> key_terms(const LlmConfig& model, const LayerConfig& layer) const override;
  std::int64_t widest(const LayerTask& task) const override;
  void require_split(const LlmConfig& model, const LayerConfig& layer, int tp) const override;
  std::vector<LayerOp> ops(const LayerTask& task) const override;
  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override;

 protected:
  /// What else reads the layer's input and the latents of queries, before parts are worked on.
  virtual void beside_queries(StepList& /*steps*/, const LayerTask& /*task*/) const {}
  /// Whether a training step attends in the latent space, not to expanded keys and values.
  virtual bool absorbs(const LayerTask& /*task*/) const { return false; }
  /// From the gradient of what heads give to that of the latents.
  virtual void heads_backward(StepList& steps, const LayerTask& task) const;
  /// Gradients of other matrices that read the layer's input, which is there.
  virtual void beside_latents_backward(StepList& /*steps*/, const LayerTask& /*task*/) const {}

 private:
  void heads_forward(StepList& steps, const LayerTask& task) const;
  void down_backward(StepList& steps, const LayerTask& task) const;
};

/// The up-projection of queries, and the columns of all that up-projections take as input, as
/// tensor parallel ranks gather them.
Linear query_up(const LayerTask& task);
std::int64_t latent_width(const LayerTask& task);

/// Queries of a part are brought into the latent space (the key up-projection is absorbed into
/// them) and its latents written to the cache; after `attention`, results are brought back by the
/// value up-projection.
void absorb_queries(StepList& steps, const LayerTask& task, std::int64_t tokens);
void expand_values(StepList& steps, const LayerTask& task, std::int64_t tokens);

/// Training: rotary positions of queries and keys, and the copies around them, or their gradients
/// (Megatron-LM 003b4ce, core/transformer/multi_latent_attention.py: qkv_up_proj_and_rope_apply).
void rotate_trained(StepList& steps, const LayerTask& task, bool forward);

}  // namespace orrery
