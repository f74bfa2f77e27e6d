// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <utility>

#include "models/engines/whole_answers.h"
#include "sim/config/schema.h"

namespace orrery {

/// What runs llama.cpp's operations.
enum class LlamaBackend : std::uint8_t { kCuda, kMetal };

namespace config {

template <>
struct EnumNames<LlamaBackend> {
  static constexpr std::pair<LlamaBackend, const char*> values[] = {
      {LlamaBackend::kCuda, "cuda"}, {LlamaBackend::kMetal, "metal"}};
};

}  // namespace config

namespace {

/// llama.cpp as it was in 2023 and 2024, without FlashAttention: a kernel for each operation that
/// build_llama() puts into the graph (llama.cpp), and by CUDA another that quantises the input of
/// each product of narrow weights to q8_1 (ggml-cuda.cu, ggml_cuda_op_mul_mat; Metal's read
/// floats). Its server gives each sequence a slot whose part of the cache is set aside.
struct LlamaCpp final : WholeAnswers {
  LlamaCpp() : WholeAnswers("llama_cpp", 1) {}

  std::unique_ptr<Scheduler> make() const override {
    return std::make_unique<IterationScheduler>(max_num_seqs);
  }
  /// Graphs are captured for single tokens alone (pull request 6766).
  bool runs_graph(std::int64_t tokens, bool decodes) const override {
    return decodes && tokens == 1;
  }
  bool operators_apart() const override { return true; }
  bool quantises_widened() const override { return backend == LlamaBackend::kCuda; }
  /// Metal's products go through the keys of a head for each head of queries (ggml-metal.metal,
  /// kernel_mul_mv: i12 / r2); so do CUDA's, to which the L2 gives them.
  bool decodes_by_head() const override { return backend == LlamaBackend::kMetal; }

  LlamaBackend backend = LlamaBackend::kCuda;

  static const config::Schema<LlamaCpp>& schema() {
    static const config::Schema<LlamaCpp> schema =
        whole_answers_schema<LlamaCpp>(
            "llama_cpp",
            "slots of llama.cpp's server, and a kernel for each operation of its graph")
            .optional("backend", &LlamaCpp::backend,
                      "what runs operations; cuda quantises the input of each product of narrow "
                      "weights by a kernel of its own, metal reads floats");
    return schema;
  }
};

const config::Registered<SchedulerConfig>::Add<LlamaCpp> added_llama_cpp(
    "llama_cpp", "slots of llama.cpp's server, and a kernel for each operation of its graph");

}  // namespace
}  // namespace orrery
