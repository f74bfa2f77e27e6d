// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/model_experiment.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/experiments/core/known_replay.h"
#include "sim/app/experiments/engines/expert_ranks.h"
#include "sim/app/experiments/steps/checkpoint.h"
#include "sim/app/experiments/steps/explanation.h"
#include "sim/app/experiments/steps/model_step.h"
#include "sim/app/experiments/steps/plan_check.h"
#include "workloads/software/modules.h"

namespace orrery {

using config::between;
using config::Schema;

const Schema<BatchConfig>& BatchConfig::schema() {
  static const auto schema =
      Schema<BatchConfig>("batch", "sequences of one step")
          .optional("global", &BatchConfig::global, "sequences in a step; 0: micro * dp",
                    between(0, 1e9))
          .optional("micro", &BatchConfig::micro,
                    "sequences of one pass on a data-parallel rank; 0: global / dp",
                    between(0, 1e9))
          .optional("sequence", &BatchConfig::sequence, "tokens of a sequence (training, prefill)",
                    between(0, 1e8))
          .optional("encoder_sequence", &BatchConfig::encoder_sequence,
                    "training of an encoder and decoder: tokens of a sequence that the encoder "
                    "reads (Megatron-LM: encoder_seq_length); 0: as many as the decoder",
                    between(0, 1e8));
  return schema;
}

namespace {

std::string plan_text(const ModelExperiment& e) {
  std::string text = std::to_string(e.ranks()) + " ranks: TP" + std::to_string(e.parallel.tp);
  const auto add = [&text](const char* name, int size) {
    if (size > 1) text += std::string(" ") + name + std::to_string(size);
  };
  add("PP", e.parallel.pp);
  add("VPP", e.parallel.vpp);
  add("CP", e.parallel.cp);
  add("DCP", e.parallel.dcp);
  add("DP", e.parallel.dp);
  add("EP", e.parallel.ep);
  add("ETP", e.parallel.etp);
  return text;
}

}  // namespace

bool ModelExperiment::has_experts() const { return orrery::has_experts(model); }

void ModelExperiment::complete(config::Node& node, config::Diagnostics& diagnostics) {
  StepExperiment::complete(node, diagnostics);
  if (!model.hf.path.empty())
    model.build();  // mistakes in that file are no contradiction of values
  warn_of_checkpoint(model, node, diagnostics);
}

void ModelExperiment::check(const config::Node& node, config::Diagnostics& diagnostics) const {
  if (!is_written(node, "model")) {
    complain(diagnostics, node, {"experiment"}, "this experiment needs the key 'model'",
             {{}, {"a name of `orrery describe models`, a path, or {hf: path of a config.json}"}});
    return;
  }
  const int available = system.ranks() * nodes;
  if (ranks() > available) {
    const int needed = (ranks() + system.ranks() - 1) / system.ranks();
    complain(diagnostics, node, {"parallel", "parallel.tp", "parallel.pp", "parallel.dp", "nodes"},
             ranks_text(parallel) + " ranks, but " + std::to_string(nodes) + " x " + system.name +
                 " has " + std::to_string(available),
             {{}, {"nodes: " + std::to_string(needed) + " would have them"}});
  }
  if (!has_batch()) {
    complain(diagnostics, node, {"batch"}, "batch.global or batch.micro must be given");
  }
  check_step(node, diagnostics);
}

std::vector<InputFile> ModelExperiment::input_files() const {
  std::vector<InputFile> files;
  add_model_files(model, files);
  for (InputFile& file : StepExperiment::input_files()) files.push_back(std::move(file));
  return files;
}

void ModelExperiment::strip_names(nlohmann::ordered_json& configuration) const {
  StepExperiment::strip_names(configuration);
  erase_keys(configuration["model"], {"hf", "source", "model"});
}

Program ModelExperiment::program() const { return step(model.build()).program; }

std::string ModelExperiment::part_of(const Kernel& kernel) const {
  return std::string(module_of(kernel.name));
}

std::string ModelExperiment::plan_hint() const { return expert_parallel_hint(*this); }

void ModelExperiment::check_plan(const config::Node& node, config::Diagnostics& diagnostics) const {
  const LlmConfig llm = model.build();
  require_plan(llm);
  const PlacedPlan plan{parallel, system.ranks(), {}};
  warn_of_straddling(plan, node, diagnostics);
  warn_of_copies(plan, llm, node, diagnostics);
}

void ModelExperiment::explain(const KnownReplay& replay,
                              nlohmann::ordered_json& explanation) const {
  const LlmConfig llm = model.build();
  const ModelStep built = step(llm);
  const ParameterCount count = count_parameters(llm);
  explanation["sizes"] = explain_sizes(
      *this, {count.total, count.active, built.model_flops, worst_stage(memory(llm, parallel))},
      built.program);
  explain_program(*this, built.program, replay, explanation);
}

TableView ModelExperiment::table() const {
  constexpr Table::Align kRight = Table::Align::kRight;
  using R = RunRecord;
  return {
      {{{"plan"},
        [this](const R&) { return plan_text(*this); },
        true,
        {"parallel.tp", "parallel.pp", "parallel.vpp", "parallel.cp", "parallel.dcp", "parallel.dp",
         "parallel.ep", "parallel.etp"}},
       {{"batch", kRight}, [this](const R&) { return batch_text(); }, true, batch_paths()},
       {{"step", kRight}, [](const R& r) { return time_cell(r, "step_time_s"); }},
       {{"p10 to p90", kRight}, [](const R& r) { return interval_cell(r, "step_time_s"); }},
       {{"tokens/s/acc", kRight},
        [](const R& r) { return metric_cell(r, "tokens_per_s_per_accelerator", ""); }},
       {{"MFU", kRight}, [](const R& r) { return percent_cell(r, "model_flops_utilization"); }},
       {{"memory", kRight}, [](const R& r) { return metric_cell(r, "peak_memory_bytes", "B"); }},
       {{"exposed comm", kRight}, exposed_cell},
       {{"power", kRight}, [](const R& r) { return metric_cell(r, "average_power_w", "W"); }},
       {{"system power", kRight}, [](const R& r) { return metric_cell(r, "system_power_w", "W"); }},
       {{"system tokens/J", kRight},
        [](const R& r) { return metric_cell(r, "system_tokens_per_joule", ""); }}},
      "step_time_s, tokens_per_s_per_accelerator",
      "system.accelerator.memory.bandwidth=4 TB/s",
      "Ranks that do the same at the same time are folded into one, exactly. Power is that of the "
      "accelerators; system power adds what hosts, switches and fans draw.\n"};
}

}  // namespace orrery
