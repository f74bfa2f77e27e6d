// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "models/engines/whole_answers.h"

namespace orrery {
namespace {

/// Tenstorrent's TT-Transformers: tensors lie in tiles of 32 x 32, so that a decode of one user has
/// 32 rows in products, elementwise kernels and collectives alike (tt-metal models/
/// tt_transformers/tt/attention.py @00b769d, 2025: activations of 1, 1, 32, width, whose true batch
/// is kept beside them). Steps of new tokens are traces, prompts are filled up to sizes that are
/// compiled and run one by one.
struct TtTransformers final : WholeAnswers {
  TtTransformers() : WholeAnswers("tt_transformers", 0) {}

  std::unique_ptr<Scheduler> make() const override {
    return std::make_unique<IterationScheduler>(max_num_seqs);
  }
  std::int64_t padded(std::int64_t tokens, bool decodes) const override;

  static constexpr std::int64_t kTile = 32;

  static const config::Schema<TtTransformers>& schema() {
    static const config::Schema<TtTransformers> schema = whole_answers_schema<TtTransformers>(
        "tt_transformers", "Tenstorrent's TT-Transformers: rows are filled up to tiles of 32");
    return schema;
  }
};

/// Prompts by get_padded_prefill_len() of models/tt_transformers/tt/common.py (2025): 128, then the
/// lesser of a power of two and a multiple of 2,048.
std::int64_t TtTransformers::padded(std::int64_t tokens, bool decodes) const {
  const auto up = [](std::int64_t rows, std::int64_t to) { return (rows + to - 1) / to * to; };
  if (decodes) return up(tokens, kTile);
  constexpr std::int64_t kLeastPrompt = 128, kLongPrompt = 2048;
  if (tokens <= kLeastPrompt) return kLeastPrompt;
  const auto power = std::bit_ceil(static_cast<std::uint64_t>(tokens));
  return std::min(static_cast<std::int64_t>(power), up(tokens, kLongPrompt));
}

const config::Registered<SchedulerConfig>::Add<TtTransformers> added_tt_transformers(
    "tt_transformers", "Tenstorrent's TT-Transformers: rows are filled up to tiles of 32");

}  // namespace
}  // namespace orrery
