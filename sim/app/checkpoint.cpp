// SPDX-License-Identifier: Apache-2.0
#include "sim/app/checkpoint.h"

#include <memory>
#include <optional>

#include "sim/machine/precision_names.h"
#include "workloads/llm/checkpoint_format.h"

namespace orrery {
namespace {

/// Where nobody wrote a precision, inference takes that of the checkpoint; the key then says which
/// file it comes from.
void take_checkpoint_precision(LoadedExperiment& loaded) {
  Experiment& e = loaded.experiment;
  if (e.kind != ExperimentKind::kInference || e.model.hf.empty()) return;
  const config::Origin& written = loaded.node.at_path("precision")->origin();
  const bool of_model =
      written.kind == config::Origin::Kind::kFile && *written.file == e.model.hf.path;
  if (written.kind != config::Origin::Kind::kDefault && !of_model) return;
  const std::optional<Quantization> stored = load_quantization(e.model.hf.path);
  if (!stored) return;
  e.precision = stored->precision;
  const config::Origin origin{config::Origin::Kind::kFile,
                              std::make_shared<const std::string>(e.model.hf.path), 1, 1};
  loaded.node.set("precision", config::Node::scalar(to_string(e.precision), origin), origin);
}

}  // namespace

void read_checkpoint(LoadedExperiment& loaded, config::Diagnostics& diagnostics) {
  const Experiment& e = loaded.experiment;
  if (e.model.hf.empty()) return;
  try {
    const LlmConfig model = e.model.build();
    for (const std::string& warning : model.warnings)
      diagnostics.warning(loaded.node.at_path("model")->where(), 1, model.name + ": " + warning);
    take_checkpoint_precision(loaded);
  } catch (const config::ConfigError&) {
    return;
  }
}

}  // namespace orrery
