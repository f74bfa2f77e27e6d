// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/serving/scheduler.h"

namespace orrery {

/// A measured run of a serving engine under so many clients, as tables of runs from end to end have
/// it (columns of SemiAnalysis InferenceX as AIConfigurator collects them).
struct ServingRow {
  std::string text;  ///< the row as it stands in the file
  std::string id;
  std::string model;    ///< published name: "meta-llama/Llama-3.1-70B"
  std::string system;   ///< accelerator: "h100_sxm"
  std::string backend;  ///< vllm, sglang or trtllm
  std::string version;  ///< version of the engine; empty: not known
  std::string image;    ///< container, or what else the run is known by
  std::string date;     ///< date of the measurement, "2026-01-14"; empty: not known
  std::string precision, gemm_quant;
  std::int64_t isl = 0, osl = 0;  ///< most tokens of prompts and answers
  std::int64_t concurrency = 0;
  int gpus = 0, attention_dp = 1, moe_tp = 1, moe_ep = 1;
  double ttft_ms = 0, tpot_ms = 0;  ///< mean times of the run

  /// Whether requests wait for their first token more than twice as long as they answer. With as
  /// many in flight as there are clients, less than a third of these are answered at a time then
  /// (Little's law), for a reason that the row does not tell.
  bool mostly_waits() const { return ttft_ms > 2 * tpot_ms * static_cast<double>(osl); }
  /// Requests that are answered at a time in the mean, by Little's law.
  double answered_at_a_time() const {
    const double answer = tpot_ms * static_cast<double>(osl);
    return static_cast<double>(concurrency) * answer / (ttft_ms + answer);
  }
  /// Whether its lengths and arrivals are known: runs of InferenceX, which name an image.
  bool known_protocol() const { return image.find('/') != std::string::npos; }
  /// Whether its time to first token can be judged. Not where the protocol is not known, in two
  /// groups of TensorRT-LLM (of Llama-70B first tokens come 11 to 18 token times too late at any
  /// number of clients; of Llama-8B one request always waits), and where requests wait in line.
  bool tells_ttft() const;
  /// Whether lengths vary: in those, and in older ones by the same benchmark, which are marked so.
  bool varied_lengths() const { return known_protocol() || image.starts_with("wip="); }
};

/// A table of runs, with the header.
struct ServingRows {
  std::string columns;
  std::vector<ServingRow> rows;
};

/// @throws config::ConfigError with file, line and column
ServingRows read_serving_rows(const std::string& path);

/// The row as an experiment in YAML: clients that ask ten times as often as they are many, lengths
/// drawn between 0.8 and 1.0 of isl and osl, and the engine of the row.
/// @param model a name of the library, or a path
/// @param experts the model has some, which the row says how to spread
/// @param host what the engine's host takes; none: what it does by itself
/// @param in_step answers are of one length where no protocol says otherwise; else they vary by a
/// fifth around it
std::string serving_experiment(const ServingRow& row, const std::string& model, bool experts,
                               const std::optional<HostCosts>& host = std::nullopt,
                               bool in_step = true);

}  // namespace orrery
