// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/checkpoint.h"

#include <memory>
#include <optional>

#include "sim/machine/precision_names.h"
#include "workloads/llm/checkpoint_format.h"

namespace orrery {
namespace {

/// Whether nobody wrote a key, or it came from the model's file the last time that this was loaded.
bool is_open(const LoadedExperiment& loaded, const std::string& key) {
  const config::Origin& written = loaded.node.at_path(key)->origin();
  return written.kind == config::Origin::Kind::kDefault ||
         (written.kind == config::Origin::Kind::kFile &&
          *written.file == loaded.experiment.model.hf.path);
}

/// The key then says which file it comes from.
void take(LoadedExperiment& loaded, const std::string& key, const std::string& text) {
  const config::Origin origin{config::Origin::Kind::kFile,
                              std::make_shared<const std::string>(loaded.experiment.model.hf.path),
                              1, 1};
  loaded.node.set(key, config::Node::scalar(text, origin), origin);
}

void take_checkpoint_precisions(LoadedExperiment& loaded) {
  Experiment& e = loaded.experiment;
  if (e.kind != ExperimentKind::kInference || e.model.hf.empty()) return;
  const std::optional<Quantization> stored = load_quantization(e.model.hf.path);
  if (!stored) return;
  if (is_open(loaded, "precision")) {
    e.precision = stored->precision;
    take(loaded, "precision", to_string(e.precision));
  }
  if (stored->kv_cache == Precision::kFp8 && is_open(loaded, "kv_precision")) {
    e.kv_precision = CacheFormat::kFp8;
    take(loaded, "kv_precision", "fp8");
  }
}

}  // namespace

void read_checkpoint(LoadedExperiment& loaded, config::Diagnostics& diagnostics) {
  const Experiment& e = loaded.experiment;
  if (e.model.hf.empty()) return;
  try {
    const LlmConfig model = e.model.build();
    for (const std::string& warning : model.warnings)
      diagnostics.warning(loaded.node.at_path("model")->where(), 1, model.name + ": " + warning);
    take_checkpoint_precisions(loaded);
  } catch (const config::ConfigError&) {
    return;
  }
}

}  // namespace orrery
