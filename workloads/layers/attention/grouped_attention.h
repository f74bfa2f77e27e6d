// SPDX-License-Identifier: Apache-2.0
// Attention whose heads share keys and values in groups, for mixers that are made of it.
#pragma once

#include <vector>

#include "workloads/layers/parts/mixer.h"

namespace orrery {

class GroupedAttention : public Mixer {
 public:
  std::string name() const override { return "attention"; }
  PartWeights weights(const LayerTask& task) const override;
  SequenceCache cache(const LlmConfig& model, const LayerConfig& layer, int tp) const override;
  std::vector<KeyTerm> key_terms(const LlmConfig& model, const LayerConfig& layer) const override;
  void require_split(const LlmConfig& model, const LayerConfig& layer, int tp) const override;
  std::vector<LayerOp> ops(const LayerTask& task) const override;
  void part_forward(StepList& steps, const LayerTask& task,
                    const AttentionPart& part) const override;

 protected:
  /// From the gradient of what heads give to those of queries, keys and values.
  virtual void core_backward(StepList& steps, const LayerTask& task) const;
};

/// Rotary positions of queries and keys; in inference with the cache.
LayerOp rotary_op(const LayerTask& task);
/// What heads give times the sigmoid of their gates, which are columns of a product; nothing where
/// attention has none.
LayerOp output_gate(const LayerTask& task);

}  // namespace orrery
