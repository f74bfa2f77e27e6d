// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/families/family.h"

namespace orrery {
namespace {

void build_mixtral(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  make_all_layers_moe(reader, model, reader.size({"num_local_experts"}, llm_limits::kExperts));
  read_uniform_window(reader, model);
}

/// MiniCPM scales embeddings and residuals by constants, which cost nothing here.
void build_minicpm(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  const std::int64_t experts = reader.count_or({"num_experts"}, llm_limits::kExperts, 0);
  if (experts > 0) make_all_layers_moe(reader, model, experts);
}

const RegisterFamily kMixtral({"mixtral"}, build_mixtral);
const RegisterFamily kMinicpm({"minicpm"}, build_minicpm);

}  // namespace
}  // namespace orrery
