// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/closed_forms.h"

#include <algorithm>
#include <stdexcept>

#include "workloads/layers/attention/chunked_attention.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/models/encoder_alone.h"

namespace orrery {
namespace {

/// Keys that the average query of a sequence meets: half of all when causal, w - w^2/(2 L) of a
/// window w <= L. The continuous forms, which meet at w = L.
double mean_keys(std::int64_t sequence, std::int64_t window, bool causal) {
  const auto length = static_cast<double>(sequence);
  const double seen = window > 0 ? std::min(static_cast<double>(window), length) : length;
  return causal ? seen - seen * seen / (2 * length) : seen;
}

/// The same for what a layer sees; not causal, those of the last token.
double seen_keys(std::int64_t sequence, std::int64_t window, std::int64_t chunk, bool causal) {
  if (chunk == 0) return mean_keys(sequence, window, causal);
  return causal ? mean_keys_in_chunks(sequence, chunk, true)
                : static_cast<double>(keys_in_chunk(sequence, chunk));
}

/// Multiply-adds of one token between the matrices of a layer, whatever it sees.
double fixed_adds(const LlmConfig& model, const LayerConfig& layer) {
  const Mixer* mixer = mixer_of(model, layer);
  return mixer == nullptr ? 0 : mixer->multiply_adds(model, layer);
}

/// Those for keys in view, by how many the layer sees at most; 0: all.
std::map<std::int64_t, double> key_adds(const LlmConfig& model, const LayerConfig& layer) {
  std::map<std::int64_t, double> adds;
  const Mixer* mixer = mixer_of(model, layer);
  if (mixer == nullptr) return adds;
  for (const KeyTerm& term : mixer->key_terms(model, layer)) {
    const bool both = term.most > 0 && layer.window > 0;
    adds[both ? std::min(term.most, layer.window) : std::max(term.most, layer.window)] += term.each;
  }
  return adds;
}

}  // namespace

std::int64_t textbook_parameters(const TextbookDimensions& d) {
  return 12 * d.layers * d.hidden * d.hidden + d.vocabulary * d.hidden;
}

Bytes textbook_weights_fp16(const TextbookDimensions& d) {
  return Bytes(2.0 * static_cast<double>(textbook_parameters(d)));
}

Bytes textbook_training_state(const TextbookDimensions& d) {
  return Bytes(16.0 * static_cast<double>(textbook_parameters(d)));
}

Bytes textbook_activations(const TextbookDimensions& d) {
  const std::int64_t values =
      9 * d.batch * d.sequence * d.hidden + 2 * d.batch * d.heads * d.sequence * d.sequence;
  return Bytes(2.0 * static_cast<double>(d.layers) * static_cast<double>(values));
}

AnswerFlops::AnswerFlops(const LlmConfig& model) : head_(static_cast<double>(head_adds(model))) {
  matrices_ = static_cast<double>(count_parameters(model).active_matrices) - head_;
  for (const LayerConfig& layer : model.layers) {
    for (const auto& [window, each] : key_adds(model, layer)) views_[{window, layer.chunk}] += each;
    matrices_ += fixed_adds(model, layer);
  }
}

double AnswerFlops::of_keys(std::int64_t tokens) const {
  if (tokens == 0) return 0;
  double all = 0;
  for (const auto& [view, each] : views_)
    all += each * seen_keys(tokens, view.first, view.second, true) * static_cast<double>(tokens);
  return all;
}

Flops AnswerFlops::of(std::int64_t prompt, std::int64_t kept, std::int64_t output) const {
  const std::int64_t end = prompt + output - 1;
  return Flops(2 * (matrices_ * static_cast<double>(end - kept) +
                    head_ * static_cast<double>(output) + of_keys(end) - of_keys(kept)));
}

Flops model_flops_per_token(const LlmConfig& model, std::int64_t sequence, bool causal) {
  if (sequence <= 0) throw std::logic_error("model_flops_per_token: the sequence must be positive");
  auto all = static_cast<double>(count_parameters(model).active_matrices);
  for (const LayerConfig& layer : model.layers) {
    const bool masked = causal && layer.kind != LayerKind::kEncoder;
    all += fixed_adds(model, layer);
    for (const auto& [window, each] : key_adds(model, layer))
      all += each * seen_keys(sequence, window, layer.chunk, masked);
  }
  return Flops(2 * all);
}

Flops encoder_decoder_flops(const LlmConfig& model, std::int64_t encoder, std::int64_t decoder) {
  const AttentionConfig& a = model.attention;
  const auto hidden = static_cast<double>(model.hidden);
  const auto read = static_cast<double>(encoder), predicted = static_cast<double>(decoder);
  const double square = hidden * static_cast<double>(a.heads * a.head_dim);
  const double mlp =
      (model.mlp.gated ? 3 : 2) * hidden * static_cast<double>(model.mlp.intermediate);
  const auto products = static_cast<double>(2 * a.heads * a.head_dim);
  const double encodes = read * (4 * square + mlp + products * read);
  const double decodes = predicted * (4 * square + mlp + products * predicted / 2);
  const double crosses = 2 * square * (predicted + read) + products * predicted * read;
  const auto layers = static_cast<double>(model.encoder_layers());
  const double others = static_cast<double>(model.layer_count()) - layers;
  const double head = predicted * hidden * static_cast<double>(model.vocabulary);
  return Flops(2 * (layers * encodes + others * (decodes + crosses) + head));
}

}  // namespace orrery
