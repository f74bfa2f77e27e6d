// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/serving_validation.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/files/input_file.h"
#include "sim/config/load.h"
#include "sim/machine/kernel_model.h"
#include "workloads/steps/figures/statistics.h"

namespace orrery {
namespace {

constexpr const char* kRowName = "row";

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// "config.json of Qwen/Qwen3-32B on Hugging Face": the part with a slash.
std::string published_name(const std::string& source) {
  const std::size_t slash = source.find('/');
  if (slash == std::string::npos) return {};
  const std::size_t begin = source.rfind(' ', slash) + 1, end = source.find(' ', slash);
  return source.substr(begin, end - begin);
}

/// @param model a name of the library, or "{hf: PATH}"
bool has_experts(const std::string& model) {
  static std::map<std::string, bool> known;
  const auto [has, added] = known.try_emplace(model, false);
  if (!added) return has->second;
  config::Diagnostics diagnostics;
  const config::Library& library = config::default_library();
  const config::Node node =
      model.starts_with('{') ? config::parse_yaml(model, kRowName, diagnostics)
                             : config::load_file(library.locate("models", model, {}), diagnostics);
  diagnostics.throw_if_errors();
  const auto read = config::read<ModelConfig>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  return has->second = read.build().has_moe();
}

/// Everything that prices depend on: the model, and the group without its clock of the host and
/// without the sizes of its batches, which differ from row to row.
std::string fleet_key(const LoadedExperiment& read) {
  nlohmann::ordered_json group = read.configuration["serving"]["fleet"].front();
  erase_keys(group["engine"], {"version", "host", "max_num_seqs", "max_running_requests",
                               "max_batch_size", "max_num_tokens", "cuda_graph_config",
                               "cuda_graph_max_bs", "scheduler_recv_interval"});
  return read.configuration["model"].dump() + group.dump();
}

std::string runs_of(const ServingRow& row) {
  return row.model + " " + row.system + " " + row.backend + " " + row.version;
}

/// Half of the time in which the devices could compute a prompt of each client at their peak: the
/// least mean time to first token of clients that come in waves.
Seconds least_of_wave(const ServingRow& row, const ServingExperiment& e) {
  const ServingGroup& g = e.serving.fleet.front();
  InferenceConfig prompt;
  prompt.phase = Phase::kPrefill;
  prompt.sequence = row.isl;
  const AcceleratorConfig& device = g.system.accelerator;
  return model_flops(e.model.build(), prompt) * (0.5 * static_cast<double>(row.concurrency)) /
         (matrix_peak(device, g.precision) * (device.dies * row.gpus));
}

/// Tokens that the caches of all ranks have room for.
double cached_tokens(const ServingFleet& fleet, const ServingExperiment& e) {
  const ServingMemory memory = fleet.memory(e.serving.fleet).front();
  return static_cast<double>(memory.blocks * memory.block_tokens *
                             e.serving.fleet.front().parallel.dp);
}

/// Least tokens in the caches of those that are answered at a time, halfway through their answers.
double needed_tokens(const ServingRow& row) {
  const double least = row.varied_lengths() ? 0.8 : 1;
  return row.answered_at_a_time() * least *
         (static_cast<double>(row.isl) + 0.5 * static_cast<double>(row.osl));
}

LoadedExperiment loaded(const std::string& text) {
  config::Diagnostics diagnostics;
  config::Node node = config::load_text(text, kRowName, diagnostics);
  diagnostics.throw_if_errors();
  return load_experiment(std::move(node), {}, diagnostics);
}

constexpr double kSplit = 1.1;  ///< longest over shortest time of a key that is split

bool is_r1(const ServingRow& row) { return row.model.find("DeepSeek-R1") != std::string::npos; }

/// All that a row says of its run.
std::string key_of(const ServingRow& row) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", row.model, row.system, row.backend,
                     row.version, row.precision, row.gemm_quant, row.isl, row.osl, row.concurrency,
                     row.gpus, row.attention_dp, row.moe_tp, row.moe_ep);
}

}  // namespace

/// A model of the library whose published name is that of the row, or begins it: variants in other
/// precisions and tuned ones are built alike.
std::string ServingValidation::model_of(const std::string& path) {
  if (!models_.empty()) {
    std::string file = path;
    const std::size_t slash = file.find('/');
    if (slash != std::string::npos) file.replace(slash, 1, "--");
    const std::filesystem::path at = std::filesystem::path(models_) / (file + ".json");
    if (std::filesystem::exists(at)) return "{hf: " + at.string() + "}";
  }
  if (names_.empty()) {
    const config::Library& library = config::default_library();
    for (const std::string& name : library.names("models")) {
      const auto model = config::load<ModelConfig>(library.locate("models", name, {}), library);
      const std::string published = published_name(model.source);
      if (!published.empty() && !model.hf.empty()) names_.emplace(base_name(published), name);
    }
  }
  std::string best, found;
  for (const auto& [published, name] : names_) {
    if (!base_name(path).starts_with(published) || published.size() < best.size()) continue;
    best = published;
    found = name;
  }
  return found;
}

void ServingValidation::predict(const ServingRow& row, Intervals intervals,
                                ServingComparison& comparison) {
  const std::string model = model_of(row.model);
  if (model.empty()) {
    comparison.reason = "no configuration of " + row.model;
    return;
  }
  comparison.experts = has_experts(model);
  const bool in_step = row.varied_lengths() || !out_of_step_.contains(runs_of(row));
  const LoadedExperiment read =
      loaded(serving_experiment(row, model, comparison.experts, host_, in_step));
  const auto& experiment = read.as<ServingExperiment>();
  std::unique_ptr<ServingFleet>& fleet = fleets_[fleet_key(read)];
  if (!fleet) fleet = std::make_unique<ServingFleet>(experiment.fleet());
  // More than a tenth: how much engines leave to other things is not known to a part in ten.
  if (needed_tokens(row) > 1.1 * cached_tokens(*fleet, experiment)) {
    comparison.reason =
        "the caches of the requests that are answered at a time do not fit: more accelerators, or "
        "fewer requests at a time, than the row says";
    return;
  }
  RunRecord record;
  if (intervals == Intervals::kServed) {
    experiment.serve_with_intervals(*fleet, record);
  } else {
    experiment.serve(*fleet, record);
  }
  if (record.status != RunStatus::kOk) {
    comparison.reason = record.reason;
    return;
  }
  const Metric *ttft = record.find("mean_ttft_ms"), *tpot = record.find("mean_tpot_ms");
  comparison.ttft_ms = ttft->value;
  comparison.tpot_ms = tpot->value;
  comparison.ttft_interval = ttft->interval;
  comparison.tpot_interval = tpot->interval;
}

void ServingValidation::learn_protocols(const std::vector<ServingRow>& rows) {
  for (const ServingRow& row : rows) {
    if (row.backend != "sglang" || row.varied_lengths() || row.gpus < 1) continue;
    const std::string model = model_of(row.model);
    if (model.empty() || out_of_step_.contains(runs_of(row))) continue;
    const LoadedExperiment read = loaded(serving_experiment(row, model, has_experts(model), host_));
    const Seconds least = least_of_wave(row, read.as<ServingExperiment>());
    if (row.ttft_ms / 1e3 < least.base()) out_of_step_.insert(runs_of(row));
  }
}

ServingComparison ServingValidation::compare(const ServingRow& row, Intervals intervals) {
  ServingComparison comparison{row, {}};
  if (row.gpus < 1 || row.tpot_ms <= 0 || row.ttft_ms <= 0) {
    comparison.reason = "a row without accelerators or times";
    return comparison;
  }
  if (row.mostly_waits()) {
    comparison.reason =
        "two thirds of the clients wait for a first token: the server runs fewer "
        "requests at a time than the row says";
    return comparison;
  }
  try {
    predict(row, intervals, comparison);
  } catch (const config::ConfigError& error) {
    const std::string text = error.what();
    comparison.reason = text.substr(0, text.find('\n'));
  } catch (const std::overflow_error& error) {
    comparison.reason = error.what();
  }
  return comparison;
}

namespace {

/// Intervals beside the times that were measured.
class CoverageCount {
 public:
  void add(const std::optional<TimeInterval>& interval, double measured) {
    if (!interval) return;
    ++coverage_.all;
    if (interval->first <= measured && measured <= interval->second) ++coverage_.inside;
    widths_.push_back(interval->second / interval->first);
  }
  Coverage coverage() {
    if (widths_.empty()) return coverage_;
    const auto middle = widths_.begin() + static_cast<std::ptrdiff_t>(widths_.size() / 2);
    std::ranges::nth_element(widths_, middle);
    coverage_.width = *middle;
    return coverage_;
  }

 private:
  Coverage coverage_;
  std::vector<double> widths_;
};

}  // namespace

ServingTarget serving_target(const std::string& name,
                             const std::vector<const ServingComparison*>& of) {
  constexpr double kUs = 1e3;  // us of a ms
  std::vector<Comparison> tpot, ttft;
  CoverageCount tpot_inside, ttft_inside;
  for (const ServingComparison* c : of) {
    tpot.push_back({c->tpot_ms * kUs, c->row.tpot_ms * kUs});
    tpot_inside.add(c->tpot_interval, c->row.tpot_ms);
    if (!c->row.tells_ttft()) continue;
    ttft.push_back({c->ttft_ms * kUs, c->row.ttft_ms * kUs});
    ttft_inside.add(c->ttft_interval, c->row.ttft_ms);
  }
  return {name, summarise(tpot), summarise(ttft), tpot_inside.coverage(), ttft_inside.coverage()};
}

std::vector<ServingTarget> serving_targets(const std::vector<ServingComparison>& comparisons) {
  std::map<std::string, std::pair<double, double>> times;  // least and most of each key
  for (const ServingComparison& c : comparisons) {
    if (!is_r1(c.row) || c.row.tpot_ms <= 0) continue;
    const auto [entry, added] =
        times.try_emplace(key_of(c.row), std::pair(c.row.tpot_ms, c.row.tpot_ms));
    entry->second.first = std::min(entry->second.first, c.row.tpot_ms);
    entry->second.second = std::max(entry->second.second, c.row.tpot_ms);
  }
  std::vector<const ServingComparison*> dense, experts;
  std::map<std::string, std::vector<const ServingComparison*>> models;
  for (const ServingComparison& c : comparisons) {
    if (!c.reason.empty()) continue;
    if (!c.experts) dense.push_back(&c);
    if (!c.experts || c.row.version.empty()) continue;
    const auto known = times.find(key_of(c.row));
    if (known != times.end() && known->second.second > kSplit * known->second.first) continue;
    experts.push_back(&c);
    models[c.row.model].push_back(&c);
  }
  std::vector<ServingTarget> targets;
  if (!dense.empty()) targets.push_back(serving_target("dense models", dense));
  if (experts.empty()) return targets;
  targets.push_back(serving_target("experts, version known, no split keys", experts));
  for (const auto& [model, of] : models) targets.push_back(serving_target("  " + model, of));
  return targets;
}

}  // namespace orrery
