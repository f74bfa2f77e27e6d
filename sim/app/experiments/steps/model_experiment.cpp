// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/model_experiment.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/experiments/core/known_replay.h"
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
  std::string text = fmt::format("{} ranks: TP{}", e.ranks(), e.parallel.tp);
  const auto add = [&text](const char* name, int size) {
    if (size > 1) text += fmt::format(" {}{}", name, size);
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
  if (!is_written(node, "model")) return miss_key(diagnostics, node, "model", {kModelNote});
  const int available = system.ranks() * nodes;
  if (ranks() > available) {
    const int needed = (ranks() + system.ranks() - 1) / system.ranks();
    complain(diagnostics, node, {"parallel", "parallel.tp", "parallel.pp", "parallel.dp", "nodes"},
             fmt::format("{} ranks, but {} x {} has {}", ranks_text(parallel), nodes, system.name,
                         available),
             {{}, {fmt::format("nodes: {} would have them", needed)}});
  }
  if (!has_batch())
    complain(diagnostics, node, {"batch"}, "batch.global or batch.micro must be given");
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
  return {{{{"plan"},
            [this](const RunRecord&) { return plan_text(*this); },
            true,
            {"parallel.tp", "parallel.pp", "parallel.vpp", "parallel.cp", "parallel.dcp",
             "parallel.dp", "parallel.ep", "parallel.etp"}},
           {{"batch", Table::Align::kRight},
            [this](const RunRecord&) { return batch_text(); },
            true,
            batch_paths()},
           time_column("step", "step_time_s"),
           interval_column("step_time_s"),
           metric_column("tokens/s/acc", "tokens_per_s_per_accelerator", ""),
           percent_column("MFU", "model_flops_utilization"),
           metric_column("memory", "peak_memory_bytes", "B"),
           {{"exposed comm", Table::Align::kRight}, exposed_cell},
           metric_column("power", "average_power_w", "W"),
           metric_column("system power", "system_power_w", "W"),
           metric_column("system tokens/J", "system_tokens_per_joule", "")},
          "step_time_s, tokens_per_s_per_accelerator",
          "system.accelerator.memory.bandwidth=4 TB/s",
          "Ranks that do the same at the same time are folded into one, exactly. Power is that of "
          "the accelerators; system power adds what hosts, switches and fans draw.\n"};
}

}  // namespace orrery
