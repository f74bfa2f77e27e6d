// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/mixer.h"

namespace orrery {

const Mixer* mixer_of(const LlmConfig& model, const LayerConfig& layer) {
  switch (layer.mixer) {
    case MixerKind::kAttention:
      return model.attention_of(layer).kind == AttentionKind::kLatent ? &latent_attention()
                                                                      : &grouped_attention();
    case MixerKind::kMamba2:
      return &mamba2();
    case MixerKind::kNone:
      break;
  }
  return nullptr;
}

}  // namespace orrery
