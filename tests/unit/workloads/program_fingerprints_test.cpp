// SPDX-License-Identifier: Apache-2.0
// Hashes of the programs of all shipped models and lists of layers, in programs.txt: a change of
// any kernel, transfer, dependency or tensor shows here. With ORRERY_UPDATE_GOLDEN=1 the test
// writes the file anew; with ORRERY_PROGRAM="llama_3_1_8b decode_tp2" it prints the text of one
// program, so that `diff` shows what changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <utility>

#include "sim/config/load.h"
#include "sim/graph/operator_graph_boost.h"
#include "sim/units/hash.h"
#include "workloads/layers/listed/layer_model.h"
#include "workloads/layers/listed/layer_step.h"
#include "workloads/models/config/model_config.h"
#include "workloads/software/engine_switches.h"
#include "workloads/steps/inference/inference.h"
#include "workloads/steps/training/training.h"

namespace orrery::program_fingerprints_test {
namespace {

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), " %.12g", value);
  return text.data();
}

template <class... T>
void line(std::string& out, const std::string& head, const T&... values) {
  out += head;
  (out.append(number(static_cast<double>(values))), ...);
  out += '\n';
}

void add(std::string& out, const Kernel& k) {
  line(out, "kernel " + k.name, int(k.kind), int(k.precision), k.batch, k.m, k.n, k.k);
  line(out, "", k.matrix_flops.base(), k.vector_flops.base(), k.exponentials.base(), k.read.base(),
       k.written.base(), k.host.base(), k.reuse.base(), k.rate, k.launches, int(k.start),
       k.issue.base(), k.host_waits, k.tile[0], k.tile[1], k.cluster);
  line(out, "", k.attention.sequences, k.attention.kv_heads, k.attention.window,
       k.attention.wide_queries, k.attention.backward, k.weights.bits, k.weights.sparse,
       k.weights.marlin, k.weights.scale_bits, k.load.active, k.load.rows, k.load.experts,
       k.load.expected, k.load.copies, k.load.choices);
  for (const std::int64_t length : k.attention.lengths) line(out, " length", length);
  for (const double blocks : k.load.blocks) out += number(blocks);
  out += '\n';
}

void add(std::string& out, const Transfer& t) {
  line(out, "transfer " + t.name + " " + t.purpose, int(t.kind), t.bytes.base(), t.participants,
       t.byte_sums, t.routing.has_value(), t.host.has_value());
  for (const Bytes bytes : t.pair_bytes) line(out, " pair", bytes.base());
  for (const auto& group : t.groups) {
    for (const int rank : group) out += number(rank);
    out += '\n';
  }
}

void add(std::string& out, const OperatorGraph& block) {
  for (OperatorId id = 0; id < block.size(); ++id) {
    const Operator& op = block[id];
    line(out, op.name, int(op.kind), int(op.category), op.stream, op.work);
  }
  for (auto [edge, end] = boost::edges(block.graph()); edge != end; ++edge)
    line(out, "after", boost::source(*edge, block.graph()), boost::target(*edge, block.graph()));
}

std::string text_of(const Program& program) {
  std::string out;
  for (const Kernel& kernel : program.kernels) add(out, kernel);
  for (const Transfer& transfer : program.transfers) add(out, transfer);
  for (const OperatorGraph& block : program.blocks) add(out, block);
  for (const std::string& name : program.block_names) out += name + "\n";
  for (const Role& role : program.roles) {
    line(out, "role " + role.name, role.ranks.size());
    for (const BlockId call : role.calls) line(out, " call", call);
    for (const HeldMemory& held : role.held) line(out, " holds " + held.what, held.bytes.base());
  }
  for (const Tensor& tensor : program.tensors)
    line(out, "tensor " + tensor.name, tensor.bytes.base(), int(tensor.role));
  for (const auto& events : program.tensor_events)
    for (const TensorEvent& event : events) line(out, " ", int(event.what), event.tensor, event.op);
  return out;
}

/// A model with one layer for each kind of layer that follows each other kind: what its long form
/// repeats.
LlmConfig shortened(LlmConfig model) {
  std::vector<std::pair<LayerConfig, LayerConfig>> seen;
  std::vector<LayerConfig> kept;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const std::pair pair(model.layers[i == 0 ? 0 : i - 1], model.layers[i]);
    if (i > 1 && std::find(seen.begin(), seen.end(), pair) != seen.end()) continue;
    seen.push_back(pair);
    kept.push_back(model.layers[i]);
  }
  if (kept.size() % 2 == 1) kept.push_back(kept.back());
  model.layers = kept;
  return model;
}

using Build = std::function<Program(const LlmConfig&)>;

Build inference(const std::function<void(InferenceConfig&)>& change) {
  return [change](const LlmConfig& model) {
    InferenceConfig config;
    config.micro_batch = 8;
    config.kv_length = 2048;
    change(config);
    return build_inference(model, config);
  };
}

Build training(const std::function<void(TrainingConfig&)>& change) {
  return [change](const LlmConfig& model) {
    TrainingConfig config;
    config.global_batch = 8;
    config.sequence = 512;
    change(config);
    return build_training(model, config, true).program;
  };
}

void add_inference(std::map<std::string, Build>& all) {
  const auto with = [&all](const char* name, void (*change)(InferenceConfig&)) {
    all[name] = inference(change);
  };
  with("prefill", [](InferenceConfig& c) {
    c.phase = Phase::kPrefill;
    c.sequence = 512;
    c.kv_length = 0;
  });
  with("decode_tp2", [](InferenceConfig& c) { c.parallel.tp = 2; });
  with("decode_fp8_pp2", [](InferenceConfig& c) {
    c.parallel.pp = 2;
    c.precision = Precision::kFp8;
  });
  with("decode_ep4", [](InferenceConfig& c) { c.parallel.dp = c.parallel.ep = 4; });
  with("mixed_tp2_engine", [](InferenceConfig& c) {
    c.parallel.tp = 2;
    c.phase = Phase::kMixed;
    c.batch = {{{256, 512, 1, true}}, {{1024, 16}}};
    c.kernels.set(kQuantFusion, false);
    c.precision = Precision::kFp8;
    c.normed_all_reduce = Bytes(64.0 * 1024 * 1024);
  });
}

void add_training(std::map<std::string, Build>& all) {
  const auto with = [&all](const char* name, void (*change)(TrainingConfig&)) {
    all[name] = training(change);
  };
  with("training", [](TrainingConfig&) {});
  with("training_tp2_sp_selective", [](TrainingConfig& c) {
    c.parallel.tp = 2;
    c.parallel.sp = true;
    c.recompute = Recompute::kSelective;
  });
  with("training_tp2_pp2_full", [](TrainingConfig& c) {
    c.parallel.tp = c.parallel.pp = 2;
    c.parallel.sp = true;
    c.recompute = Recompute::kFull;
  });
  with("training_fp8_dp2_ep2_zero3", [](TrainingConfig& c) {
    c.parallel.dp = c.parallel.ep = 2;
    c.parallel.zero = 3;
    c.precision = Precision::kFp8;
  });
}

const std::map<std::string, Build>& cases() {
  static const std::map<std::string, Build> all = [] {
    std::map<std::string, Build> made;
    add_inference(made);
    add_training(made);
    return made;
  }();
  return all;
}

/// The text of a program, or why there is none.
std::string program_text(const LlmConfig& model, const Build& build) {
  try {
    return text_of(build(model));
  } catch (const config::ConfigError& error) {
    return std::string("refused: ") + error.what();
  }
}

struct ListedCase {
  const char* label;
  PassContext pass;
  int dp;
  OptimizerKind optimizer;
};
const ListedCase kListedCases[] = {
    {"inference", {.samples = 8, .precision = Precision::kFp16, .fuses = true}, 1, {}},
    {"inference_int8_apart", {.precision = Precision::kInt8}, 1, {}},
    {"training", {.samples = 2, .precision = Precision::kFp32, .training = true}, 1, {}},
    {"training_bf16_dp8_adam",
     {.samples = 8, .precision = Precision::kBf16, .training = true},
     8,
     OptimizerKind::kAdam},
};

/// Its program, sizes and memory.
std::string step_text(const LayerModelConfig& model, const ListedCase& listed) {
  const LayerStepConfig config{.dp = listed.dp, .optimizer = listed.optimizer};
  const LayerGraph graph = model.build(listed.pass);
  std::string text = text_of(layer_program(graph, config));
  const MemoryUse use = layer_step_memory(graph, config);
  line(text, "sizes", graph.parameters(), graph.multiply_adds(), layer_flops(graph, config).base());
  line(text, "memory", use.weights.base(), use.gradients.base(), use.optimizer.base(),
       use.activations.base(), use.working.base());
  return text;
}

std::string fingerprint(const std::string& text) {
  if (text.starts_with("refused: ")) return text.substr(0, text.find('\n'));
  std::array<char, 24> hash{};
  std::snprintf(hash.data(), hash.size(), "%016" PRIx64, stable_hash(text));
  return hash.data();
}

/// A line of programs.txt; prints the text where somebody asks for it.
std::string entry(const std::string& name, const std::string& text) {
  const char* wanted = std::getenv("ORRERY_PROGRAM");
  if (wanted != nullptr && name == wanted) std::cout << text;
  return name + " " + fingerprint(text) + "\n";
}

TEST(Programs, OfShippedModelsDoNotMoveUnnoticed) {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  std::string actual;
  for (const std::string& name : library.names("models")) {
    const LlmConfig model =
        shortened(config::load<ModelConfig>(library.locate("models", name, ""), library).build());
    for (const auto& [label, build] : cases())
      actual += entry(name + " " + label, program_text(model, build));
  }
  for (const std::string& name : library.names("layer_models")) {
    const auto model = config::load<LayerModelConfig>(library.locate("layer_models", name, ""),
                                                      library, "layer_models");
    for (const ListedCase& listed : kListedCases)
      actual += entry(name + " " + listed.label, step_text(model, listed));
  }
  const std::string path = ORRERY_SOURCE_DIR "/tests/golden/programs.txt";
  if (std::getenv("ORRERY_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << actual;
  std::ifstream stream(path);
  std::istringstream computed(actual);
  std::string expected, got;
  while (std::getline(computed, got)) {
    std::getline(stream, expected);
    EXPECT_EQ(got, expected);
  }
  EXPECT_FALSE(std::getline(stream, expected)) << expected;
}

}  // namespace
}  // namespace orrery::program_fingerprints_test
