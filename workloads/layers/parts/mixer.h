// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/layers/parts/layer_op.h"
#include "workloads/layers/parts/part_weights.h"
#include "workloads/models/llm_config.h"

namespace orrery {

/// What a rank holds of a sequence between steps of inference, in one layer.
struct SequenceCache {
  std::int64_t token_elements = 0;  ///< elements of each token in view, in the format of the cache
  double state_bytes = 0;           ///< bytes of a sequence, however long it is
  std::int64_t index_elements = 0;  ///< elements of each token in the format of indexers
};

/// Multiply-adds that grow with the keys in view.
struct KeyTerm {
  double each = 0;        ///< multiply-adds of a token for each key
  std::int64_t most = 0;  ///< keys that count at most; 0: all
};

/// What mixes the tokens of a sequence in a layer. A kind is a file with one such object, which
/// says once what its weights are, its steps forward and backward (with the tensors that they
/// keep), and what it holds of a sequence; parameters, memory, FLOPs, kernels and transfers follow.
class Mixer {
 public:
  virtual ~Mixer() = default;

  /// What its norm and residual are called by, and where breakdowns put its kernels.
  virtual std::string name() const = 0;
  /// Its sizes behind its name, as descriptions print them: " 40 x 128, 8 KV heads"; empty: none.
  virtual std::string sizes(const LlmConfig& /*model*/, const LayerConfig& /*layer*/) const {
    return {};
  }
  /// Its weights, as products of the step read them.
  virtual PartWeights weights(const LayerTask& task) const = 0;
  /// The weights as training has them on one of tp ranks.
  PartWeights weights(const LlmConfig& model, const LayerConfig& layer, int tp) const;
  virtual SequenceCache cache(const LlmConfig& model, const LayerConfig& layer, int tp) const = 0;
  /// Multiply-adds of one token between the matrices, whatever it sees.
  virtual double multiply_adds(const LlmConfig& /*model*/, const LayerConfig& /*layer*/) const {
    return 0;
  }
  /// The same for keys in view.
  virtual std::vector<KeyTerm> key_terms(const LlmConfig& /*model*/,
                                         const LayerConfig& /*layer*/) const {
    return {};
  }
  /// Most columns of an activation between two of its kernels, on one rank: those of a matrix.
  virtual std::int64_t widest(const LayerTask& task) const;
  /// @throws config::KeyError where tp ranks cannot split it
  virtual void require_split(const LlmConfig& model, const LayerConfig& layer, int tp) const = 0;

  /// Whether the norm in front of it is its own, of other columns than the model's; it then says
  /// what it keeps of the layer's input.
  virtual bool norms_input() const { return false; }
  /// Whether its backward pass is modelled.
  virtual bool trains() const { return true; }
  /// From the normed input of the layer to its output before the residual.
  virtual std::vector<LayerOp> ops(const LayerTask& task) const = 0;
  /// The work on one part of the batch, between the projections of all tokens. No collectives but
  /// those of context parallel ranks.
  virtual void part_forward(StepList& steps, const LayerTask& task,
                            const AttentionPart& part) const = 0;

 protected:
  /// part_forward() of all parts, which begin a turn.
  LayerOp::Emit parts_forward() const;
};

/// A matrix of a mixer, in the format that the layer stores: in x out elements of a rank.
Linear mixer_matrix(const LayerTask& task, std::string name, std::int64_t in, std::int64_t out,
                    MatrixSplit split);
/// A matrix that is never quantised.
Linear sixteen_bit_matrix(const LayerTask& task, std::string name, std::int64_t in,
                          std::int64_t out, MatrixSplit split);

/// A mixer that its file adds: `const AddedMixer added_mamba1(MixerKind::kMamba1, mamba1);`
struct AddedMixer {
  /// @param attention distinguishes the mixers of kAttention
  AddedMixer(MixerKind kind, const Mixer& mixer, AttentionKind attention = AttentionKind::kGrouped);
};

/// The mixer of a layer; null if nothing mixes its tokens.
const Mixer* mixer_of(const LlmConfig& model, const LayerConfig& layer);
/// The mixer of a kind; of kAttention grouped attention.
const Mixer& mixer_of(MixerKind kind);

/// The first kind of a model's layers that is not attention over all tokens or a window: what plans
/// that are known of attention alone refuse by name; empty: there is none.
std::string unlike_attention(const LlmConfig& model);
/// Whether some layer holds a state of each sequence.
bool holds_states(const LlmConfig& model);

/// Sizes of attention of any kind: heads, columns, what is cached, windows and chunks.
std::string attention_sizes(const LlmConfig& model, const LayerConfig& layer);

}  // namespace orrery
