// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "models/engines/whole_answers.h"

namespace orrery {
namespace {

/// Whole prompts in one iteration, then a token each until all answers have ended; nobody joins in
/// between.
struct StaticBatch final : WholeAnswers {
  StaticBatch() : WholeAnswers("static", 8) {}

  std::unique_ptr<Scheduler> make() const override {
    return std::make_unique<IterationScheduler>(max_num_seqs, true);
  }

  static const config::Schema<StaticBatch>& schema() {
    static const config::Schema<StaticBatch> schema = whole_answers_schema<StaticBatch>(
        "static", "batches that are filled once and run to their end");
    return schema;
  }
};

const config::Registered<SchedulerConfig>::Add<StaticBatch> added_static_batch(
    "static", "batches that are filled once and run to their end");

}  // namespace
}  // namespace orrery
