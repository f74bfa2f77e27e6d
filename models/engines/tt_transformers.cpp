// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <vector>

#include "models/engines/whole_answers.h"
#include "sim/serving/size_steps.h"

namespace orrery {
namespace {

/// Tenstorrent's TT-Transformers: tensors lie in tiles of 32 x 32, so that a decode of one user has
/// 32 rows in products, elementwise kernels and collectives alike (tt-metal models/
/// tt_transformers/tt/attention.py @00b769d, 2025: activations of 1, 1, 32, width, whose true batch
/// is kept beside them). Steps of new tokens are traces, prompts are filled up to sizes that are
/// compiled and run one by one.
struct TtTransformers final : WholeAnswers {
  TtTransformers() : WholeAnswers("tt_transformers", 0) {}

  std::int64_t padded(std::int64_t tokens, bool decodes) const override {
    return next_size(decodes ? decode_sizes : prefill_sizes, tokens);
  }

  std::vector<SizeStep> decode_sizes, prefill_sizes;

  static const config::Schema<TtTransformers>& schema() {
    using T = TtTransformers;
    static const config::Schema<T> schema =
        whole_answers_schema<T>("tt_transformers",
                                "Tenstorrent's TT-Transformers: rows are filled up to tiles of 32")
            .optional("decode_sizes", &T::decode_sizes, "rows that decodes are filled up to")
            .optional("prefill_sizes", &T::prefill_sizes, "tokens that prompts are filled up to")
            .check(
                kSizeStepsMustAscend, [](const T& t) { return ascends(t.decode_sizes); },
                "decode_sizes")
            .check(
                kSizeStepsMustAscend, [](const T& t) { return ascends(t.prefill_sizes); },
                "prefill_sizes");
    return schema;
  }
};

const config::Registered<SchedulerConfig>::Add<TtTransformers> added_tt_transformers(
    "tt_transformers", "Tenstorrent's TT-Transformers: rows are filled up to tiles of 32");

}  // namespace
}  // namespace orrery
