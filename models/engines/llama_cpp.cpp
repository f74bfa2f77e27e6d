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

/// llama.cpp, whose server gives each sequence a slot whose part of the cache is set aside. Its
/// kernels are in configs/software/llama_cpp.yaml.
struct LlamaCpp final : WholeAnswers {
  LlamaCpp() : WholeAnswers("llama_cpp", 0) {}

  /// Graphs are captured for single tokens alone (pull request 6766).
  bool runs_graph(std::int64_t tokens, bool decodes) const override {
    return decodes && tokens == 1;
  }

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
