// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/families/family.h"

namespace orrery {
namespace {

void build_gemma(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  model.tied_embeddings = reader.tied_embeddings(true);
}

/// Gemma 2 (arXiv 2408.00118): every second layer, from the first, has a window; norms stand before
/// and behind attention and MLP. Logit caps cost next to nothing and are left out.
void build_gemma2(FieldReader& reader, LlmConfig& model) {
  build_gemma(reader, model);
  model.norms_per_layer = 4;
  read_alternating_windows(reader, model);
}

/// Gemma 3 (arXiv 2503.19786): all but every sixth layer have a window; norms on queries and keys.
void build_gemma3(FieldReader& reader, LlmConfig& model) {
  build_gemma(reader, model);
  model.norms_per_layer = 4;
  model.attention.qk_norm = true;
  read_window_pattern(reader, model, 6);
}

const RegisterFamily kGemma({"gemma"}, build_gemma);
const RegisterFamily kGemma2({"gemma2"}, build_gemma2);
const RegisterFamily kGemma3({"gemma3_text"}, build_gemma3);

}  // namespace
}  // namespace orrery
